"""The command line: one thin command a stage; every rule of the workflow calls one.

Imports are inside the commands: `plumbline --help` must not wait for torch, and a job that aggregates never loads it.
"""

import sys

import typer

from plumbline.cli import listings, pipeline, results, trial  # noqa: F401 - they enter their commands
from plumbline.cli.app import app
from plumbline.core.errors import PlumblineError, describe_os_error


def main() -> None:
    """Run the command line; errors for users are one line, without a traceback."""
    try:
        app(standalone_mode=False)
    except PlumblineError as error:
        _fail(str(error))
    except OSError as error:
        if error.errno is None:
            raise
        _fail(describe_os_error(error))
    except typer.Exit as error:
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        _fail(f"{error.format_message()} (see --help)")  # a mistake on the command line


def _fail(message: str) -> None:
    print(f"plumbline: error: {message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
