"""Errors for people and programs: what happened, its meaning, what to do, and a stable exit code."""

import errno
import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

import click

from rushes.domain.errors import Interrupted, Refused, Requested, RushesError, Terminated
from rushes.domain.redaction import redact
from rushes.files import make_private, write_whole
from rushes.surfaces.cli.screen import DONE, TROUBLE, silence
from rushes.surfaces.cli.session import Session

OK, FAILED, NO_RIGHT, NO_ROOM, INTERRUPTED = 0, 1, 4, 8, 130
_SYSTEM = {
    errno.EACCES: (NO_RIGHT, "Give this user permission, or choose another folder."),
    errno.EPERM: (NO_RIGHT, "Give this user permission, or choose another folder."),
    errno.EROFS: (NO_RIGHT, "The file system is read-only: choose another folder."),
    errno.ENOSPC: (NO_ROOM, "Free some space (rushes gc helps), then run the same command again."),
    errno.EDQUOT: (NO_ROOM, "Free some space (rushes gc helps), then run the same command again."),
}


def meaning_of(kind: type[BaseException]) -> str:
    """What an error means: the sentence that describes its class; "" where the message says enough."""
    if kind.__subclasses__() or issubclass(kind, Refused):
        return ""
    sentence = (kind.__doc__ or "").strip().split("\n")[0].rstrip(".")
    return sentence[:1].lower() + sentence[1:]


def about(name: str, message: str) -> str:
    """A message that names what it is about."""
    return message if name in message else f"{name}: {message}"


def show(session: Session, error: str, why: str = "", means: str = "", do: str = "") -> None:
    """The four lines for people, not with --json; empty ones are left out."""
    for label, words in (("error", error), ("why", why), ("means", means), ("do", do)):
        if words and not session.json:
            session.err.block(label, TROUBLE if label == "error" else DONE, words)


def _report(session: Session, error: BaseException, code: int, message: str, hint: str, do: str = "") -> int:
    """For people or for programs, with the traceback if it is wanted."""
    message = redact(message)
    session.message("exit_error", code=code, kind=type(error).__name__, message=message, hint=hint)
    show(session, message, do=do or hint)
    if session.verbose:
        _print_traceback(error)
    return code


def _print_traceback(error: BaseException) -> None:
    print(redact("".join(traceback.format_exception(error))), end="", file=sys.stderr)


def report_known(session: Session, error: RushesError) -> int:
    """An error of ours, in plain words."""
    kind = type(error)
    if isinstance(error, Requested):
        session.document({"requested": str(error)})
        session.line(str(error))
        return kind.exit_code
    known = {"code": kind.exit_code, "kind": kind.__name__, "message": str(error), "hint": error.advice}
    session.message("exit_error", **known, resumable=isinstance(error, Interrupted | Terminated))
    show(session, str(error), _cause(error), meaning_of(kind), error.advice)
    session.remark((f"       {kind.__name__}, exit {kind.exit_code}", DONE))
    if session.verbose and not session.json:
        _print_traceback(error)
    return kind.exit_code


def report_interrupt(session: Session) -> int:
    """Ctrl-C before any work started."""
    if session.json:
        report_known(session, Interrupted("stopped before any work started"))
    session.remark("stopped; nothing is lost. Run the same command again to continue")
    return INTERRUPTED


def report_usage(session: Session, error: click.ClickException) -> int:
    """The command line could not be parsed."""
    message = redact(error.format_message())
    session.message("exit_error", code=error.exit_code, kind="Usage", message=message, hint="")
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "rushes"
    show(session, message, do=f"{command} --help")
    return error.exit_code


def report_bug(session: Session, error: BaseException, logs: Path | None) -> int:
    """Anything else is a bug: one line, and the file with its traceback."""
    kept = None if session.verbose else _write(error, logs)
    hint = f"This looks like a bug in rushes. Please report it with {kept or 'the output of --verbose'}."
    return _report(session, error, FAILED, f"{type(error).__name__}: {error}", hint)


def report_os_error(session: Session, error: OSError, logs: Path | None) -> int:
    """The system refused: its own words and the path; the traceback is kept, because it may be a bug."""
    if not error.strerror or error.filename is None:
        return report_bug(session, error, logs)
    kept = None if session.verbose else _write(error, logs)
    code, hint = _SYSTEM.get(error.errno or 0, (FAILED, "Check that the path exists and that this user may use it."))
    message = f"{os.fsdecode(error.filename)}: {error.strerror}"
    return _report(session, error, code, message, hint, do=f"{hint} Details: {kept}" if kept else hint)


def stop_writing() -> int:
    """The reader of the pipe has closed it: write no more."""
    for stream in (sys.stdout, sys.stderr):
        silence(stream)
    return OK


def _cause(error: RushesError) -> str:
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.strerror and cause.strerror not in str(error):
        return cause.strerror
    return ""


def _write(error: BaseException, logs: Path | None) -> Path | None:
    """Keep the traceback in a file of the home, if there is a home."""
    if logs is None or not logs.parent.is_dir():
        return None
    name = f"bug-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    try:
        make_private(logs)
        write_whole(logs / name, redact("".join(traceback.format_exception(error))).encode("utf-8", "backslashreplace"))
    except OSError:
        return None
    return logs / name
