"""Addresses of MLflow: a local database or a server, and what is to be seen there."""

from pathlib import Path
from shlex import quote as shell_quote
from urllib.parse import quote, urlsplit

from plumbline.core.errors import PlumblineError
from plumbline.core.places import CHECKOUT, own

ARTIFACTS = "mlartifacts"
"""The folder of artifacts beside the database: what `mlflow-artifacts:/` stands for."""

LOCAL = "sqlite:///results/mlflow.db"
"""The database of a checkout."""


def local() -> str:
    """The URI of the workspace's database: LOCAL, from its own folder."""
    return f"sqlite:///{own(Path(LOCAL.removeprefix('sqlite:///')))}"


HOST, PORT = "127.0.0.1", 5000
"""Where `plumbline ui` shows a local database."""

TAG = "mlflow.sharedViewState."
"""What the tags of an experiment begin with that hold its views."""
OURS = "plumbline."
"""What the keys of our views begin with: those of other views are left alone."""
FIRST = "trials"
"""The key of the view that addresses of an experiment lead to."""


def server_of(uri: str) -> str:
    """Return the address of the server that shows the runs."""
    return f"http://{HOST}:{PORT}" if database_of(uri) else uri.rstrip("/")


def command_of(uri: str) -> str:
    """Return the command that shows a local database: in the checkout that of its Makefile."""
    if uri != local():
        return f"plumbline ui --uri {shell_quote(uri)}"
    return "make ui" if Path.cwd().resolve() == CHECKOUT.resolve() else "plumbline ui"


def database_of(uri: str) -> Path | None:
    """The file of a SQLite URI, None of the address of a server.

    Raises:
        PlumblineError: a URI that is neither.
    """
    wrong = PlumblineError(f"MLflow at {uri!r}: give sqlite:///FILE or the http(s)://HOST of a server")
    scheme, separator, rest = uri.partition("://")
    if scheme == "sqlite" and separator:
        if not rest.startswith("/"):
            raise wrong
        path = Path(rest[1:])
        if "?" in rest:
            raise PlumblineError(f"MLflow at {uri!r}: a name with ? is cut there in a URI: name another file")
        if rest.endswith("/") or not path.name or path.name.startswith(":") or path.is_dir():
            raise PlumblineError(f"MLflow at {uri!r}: name a file, as in sqlite:///results/mlflow.db")
        return path
    try:
        parts = urlsplit(uri)
        known = scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that are no IPv6 address, or a port that is no number
        known = False
    if not known:
        raise wrong
    return None


def view_address(experiment: str | int, key: str, charts: bool = False) -> str:
    """Return where a view of an MLflow experiment is, after the address of the server: its list, or its charts."""
    mode = "&compareRunsMode=CHART" if charts else ""
    return f"{runs_page(experiment)}&viewStateShareKey={quote(OURS + key)}{mode}"


def runs_page(experiment: str | int) -> str:
    """Return where the runs of an MLflow experiment are; without the workflow type MLflow may show traces."""
    return f"#/experiments/{experiment}/runs?workflowType=machine_learning"
