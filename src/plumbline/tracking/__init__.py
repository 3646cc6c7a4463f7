"""Records -> MLflow: the files are the truth, and MLflow is a window on them.

`import_trials` writes finished trials to a store, as its only writer: of many processes that open a new
SQLite database at once, most die in its schema migration. `LiveRun` streams a trial to a tracking server
while it runs. Both make the same run of the same trial, found again by its key in the tag `plumbline.trial`.
"""

import logging
import os

# How a study is run is nobody else's business, and jobs on a cluster often have no way out. MLflow reads this
# when it is imported.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
# Two lines on stdout for every run that ends are too many for an import of a thousand.
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

from plumbline.tracking.importing import import_trials
from plumbline.tracking.live import LiveRun

# It raises what it logs here, and the log has the traceback.
logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)

__all__ = ["LiveRun", "import_trials"]
