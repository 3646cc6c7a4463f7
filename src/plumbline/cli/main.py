"""The command line: one thin command a stage; every rule of the workflow calls one.

Imports are inside the commands: `plumbline --help` must not wait for torch, and a job that aggregates never loads it.
"""

import os
import select
import shlex
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.main import get_command

from plumbline.cli import atlas, bench, comparing, diagnosing, listings, new, pipeline, results, trial  # noqa: F401 - commands
from plumbline.cli.app import DEBUG, EVERY, WORKFLOW, app
from plumbline.core.errors import PlumblineError, describe_os_error

FAILURE, MISTAKE = 1, 2
"""Exit codes: of an accident that no code foresaw, and of what a user or the machine can put right."""

BY_SIGNAL = 128
"""Exit codes from here on say which signal ended the command, as in a shell."""


def main() -> None:
    """Run the command of `sys.argv`; whatever ends it early is one line on standard error, without a traceback."""
    _open_streams()
    with _terminable():
        code, line = _outcome()
    if _broken(sys.stdout) and not code:
        code = BY_SIGNAL + signal.SIGPIPE
    if line:
        with suppress(OSError):
            print("plumbline:", " ".join(line.splitlines()), file=sys.stderr, flush=True)
    _broken(sys.stderr)
    if code:
        sys.exit(code)


def _run() -> int:
    """Run the command and return its exit code; typer's own runner would swallow interrupts and broken pipes."""
    command = get_command(app)
    try:
        try:
            if "_PLUMBLINE_COMPLETE" in os.environ:
                app(prog_name="plumbline")
            context = command.make_context("plumbline", sys.argv[1:])
        except SystemExit as end:  # a shell has its words, or its completion
            return int(end.code or 0)
        with context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    return 0


def _outcome() -> tuple[int, str]:
    """Run the command: its exit code, and what to say of its end, empty if all went well."""
    try:
        code = _run()
        sys.stdout.flush()
        return code, ""
    except PlumblineError as error:
        if os.environ.get(DEBUG) == EVERY:
            traceback.print_exception(error)
        return MISTAKE, f"error: {error}"
    except KeyboardInterrupt as stop:
        return _interrupted(stop)
    except OSError as error:
        return _os_error(error)
    except UnicodeEncodeError as error:
        return MISTAKE, f"error: {_short(repr(error.object))} is not UTF-8: choose another name"
    except (Exception, SystemExit) as error:
        if hasattr(error, "format_message"):  # a mistake on the command line
            return MISTAKE, f"error: {_mistyped(error)} (see --help)"
        return FAILURE, f"error: {_unforeseen(error)}"


def _mistyped(error: Any) -> str:
    """Say what is wrong on the command line, in the words of typer, with the value where they have it not."""
    words = " ".join(error.format_message().split())
    found: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()  # pydantic's
    if not found or found[0]["type"] == "value_error":  # its own words
        return words.replace("Value error, ", "")
    return f"{words} (got {_short(' '.join(shlex.quote(str(found[0]['input'])).split()))})"


def _interrupted(stop: KeyboardInterrupt) -> tuple[int, str]:
    """Say that a signal ended the command, and how far it was where that is known."""
    number = next((one for one in stop.args if isinstance(one, signal.Signals)), signal.SIGINT)
    told = [*getattr(stop, "__notes__", []), "interrupted"][0]
    return BY_SIGNAL + number, f"{told}; the same command goes on"


def _os_error(error: OSError) -> tuple[int, str]:
    """Say what the machine refused; a reader of standard output that has left needs no words."""
    output = error.filename is None and _broken(sys.stdout)
    if isinstance(error, BrokenPipeError) and (output or any(map(_reader_has_left, (sys.stdout, sys.stderr)))):
        return BY_SIGNAL + signal.SIGPIPE, ""
    if error.errno is None:
        return FAILURE, f"error: {_unforeseen(error)}"
    described = describe_os_error(error, _elsewhere(error.filename))
    return MISTAKE, f"error: {described}{' (standard output)' if output else ''}"


WRITTEN = ("--output", "--store", "--trials", "--data", "--directory", "--artifacts")
"""Options by which commands say where they write; where a command has none of them, `--folder` is one."""


def _elsewhere(file: Any) -> str:
    """Say how a user names another place for a file that cannot be written: as this one was named, or by an option."""
    commands = get_command(app).commands  # type: ignore[attr-defined]
    command = next((commands[word] for word in sys.argv[1:] if word in commands), None)
    options = [one for parameter in command.params for one in parameter.opts] if command else []
    where = [one for one in WRITTEN if one in options] or [one for one in options if one == "--folder"]
    typed = [os.path.abspath(word.rpartition("=")[2] or ".") for word in sys.argv[1:]]
    path = os.path.abspath(os.fsdecode(file)) if isinstance(file, str | bytes | os.PathLike) else ""
    if path in typed:
        ways = [f"name another {'folder' if os.path.isdir(path) else 'file'}"]
    elif any(path.startswith(f"{one}{os.sep}") and os.path.isdir(one) for one in typed):
        ways = ["name another folder"]
    else:
        ways = [f"name another folder, with {' or '.join(where)}"] * bool(where)
    if getattr(command, "rich_help_panel", "") == WORKFLOW:  # Snakemake names the files
        ways.append("set `results` in the configuration")
    return ", or ".join(ways)


def _unforeseen(error: BaseException) -> str:
    """Describe an error that no code foresaw, with the place of its traceback; running out of memory needs none."""
    reason = _short(" ".join(f"{type(error).__name__}: {error}".split()))
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "alloc_cpu" in reason:
        return f"not enough memory ({reason}): completed work is kept; free some memory and run the same command again"
    return f"{reason}; {_traceback(error)}"


LONGEST = 300
"""Letters of an error's own words that are shown."""


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _traceback(error: BaseException) -> str:
    """Write the traceback to standard error with `--debug`, else to a file, and say where it is."""
    if os.environ.get(DEBUG):
        with suppress(OSError):
            traceback.print_exception(error)
        return "the traceback is above"
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="replace", prefix="plumbline-", suffix=".txt", delete=False
        ) as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return "`plumbline --debug` shows the traceback"
    return f"the traceback is in {file.name}"


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM interrupt a command as SIGINT does: files that are being written and locks are left in order."""

    def interrupt(number: int, _: Any) -> None:
        raise KeyboardInterrupt(signal.Signals(number))

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # a thread that is not the main one gets no signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _open_streams() -> None:
    """Open closed standard streams on the null device, and let no character be an error.

    A closed stream's number would be given to the next file that is opened, and what is printed would go there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace" if stream is sys.stdout else "backslashreplace")


def _broken(stream: Any) -> bool:
    """Whether a stream cannot take what is left in its buffer; if so that goes nowhere, or Python would try again."""
    try:
        stream.flush()
    except OSError:
        with suppress(OSError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
            stream.flush()
        return True
    return False


def _reader_has_left(stream: Any) -> bool:
    """Whether a stream is a pipe that nobody reads; without a buffer, no flush can tell."""
    poll = select.poll()
    try:
        poll.register(stream.fileno(), 0)
    except OSError:
        return False
    return any(event & select.POLLERR for _, event in poll.poll(0))


if __name__ == "__main__":
    main()
