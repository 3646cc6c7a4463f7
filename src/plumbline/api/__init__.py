"""The Python interface, on which the command line is built: `import plumbline as pb`.

Every function returns a pandas DataFrame, except `show`, which prints. A method or a task is an entry of the YAML files
in `config/methods` and `config/tasks`; a class is registered code; an entry names a class and sets its options.
"""

from plumbline.api.benching import bench
from plumbline.api.comparing import compare, seeds
from plumbline.api.diagnosing import diagnose
from plumbline.api.editions import atlas
from plumbline.api.experiment_runs import runs
from plumbline.api.listings import claims, classes, experiments, methods, tasks
from plumbline.api.running import run
from plumbline.api.showing import show
from plumbline.core.errors import PlumblineError

__all__ = [
    "PlumblineError",
    "atlas",
    "bench",
    "claims",
    "classes",
    "compare",
    "diagnose",
    "experiments",
    "methods",
    "run",
    "runs",
    "seeds",
    "show",
    "tasks",
]
