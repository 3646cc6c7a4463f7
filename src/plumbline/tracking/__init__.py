"""Records -> MLflow: the files are the truth, and MLflow is a window on them.

`importing.import_trials` writes finished trials to a store, as its only writer: of many processes that open a new
SQLite database at once, most die in its schema migration. `live.LiveRun` streams a trial to a tracking server while it
runs. `serving.serving` shows a local database. This module loads no MLflow: it says how that is to behave.
"""

import logging
import os

# How a study is run is nobody else's business, and jobs on a cluster often have no way out. MLflow reads this
# when it is imported.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
# Two lines on stdout for every run that ends are too many for an import of a thousand.
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

# It raises what it logs here, and the log has the traceback.
logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
