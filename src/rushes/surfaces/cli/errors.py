"""Errors as people and programs see them: what happened, what it means, what to do, and a stable exit code."""

import errno
import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

import click

from rushes.domain.errors import Interrupted, Refused, RushesError, Terminated
from rushes.surfaces.cli.screen import DONE, TROUBLE, Screen, hush
from rushes.surfaces.cli.session import Session

OK, FAILED, NO_RIGHT, NO_ROOM, INTERRUPTED = 0, 1, 4, 8, 130
_SYSTEM = {
    errno.EACCES: (NO_RIGHT, "Give this user the right to it, or choose another place."),
    errno.EPERM: (NO_RIGHT, "Give this user the right to it, or choose another place."),
    errno.EROFS: (NO_RIGHT, "It can only be read there: choose another place."),
    errno.ENOSPC: (NO_ROOM, "Free some space (rushes gc helps), then run the same command again."),
    errno.EDQUOT: (NO_ROOM, "Free some space (rushes gc helps), then run the same command again."),
}


def meaning(kind: type[BaseException]) -> str:
    """What an error means: the sentence its class is described by; none where the message says it all."""
    if kind.__subclasses__() or issubclass(kind, Refused):
        return ""
    sentence = (kind.__doc__ or "").strip().split("\n")[0].rstrip(".")
    return sentence[:1].lower() + sentence[1:]


def about(name: str, message: str) -> str:
    """A message that names what it is about."""
    return message if name in message else f"{name}: {message}"


def show(screen: Screen, error: str, why: str = "", means: str = "", do: str = "") -> None:
    """The four lines; empty ones are left out."""
    for label, words in (("error", error), ("why", why), ("means", means), ("do", do)):
        if words:
            screen.block(label, TROUBLE if label == "error" else DONE, words)


def tell_known(session: Session, error: RushesError) -> int:
    """An error that people are told about in plain words."""
    kind = type(error)
    if session.json:
        known = {"code": kind.exit_code, "kind": kind.__name__, "message": str(error), "hint": error.advice}
        session.message("exit_error", **known, resumable=isinstance(error, Interrupted | Terminated))
    else:
        show(session.err, str(error), _cause(error), meaning(kind), error.advice)
        session.remark((f"       {kind.__name__}, exit {kind.exit_code}", DONE))
    if session.verbose and not session.json:
        traceback.print_exception(error)
    return kind.exit_code


def tell_interrupt(session: Session) -> int:
    """Ctrl-C, before there was work that could be finished."""
    if session.json:
        tell_known(session, Interrupted("stopped before the work began"))
    session.remark("stopped; nothing is lost, and the same command goes on")
    return INTERRUPTED


def tell_usage(session: Session, error: click.ClickException) -> int:
    """Something was typed that cannot be understood."""
    if session.json:
        session.message("exit_error", code=error.exit_code, kind="Usage", message=error.format_message(), hint="")
        return error.exit_code
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "rushes"
    show(session.err, error.format_message(), do=f"{command} --help")
    return error.exit_code


def tell_bug(session: Session, error: BaseException, logs: Path | None) -> int:
    """Anything else is a bug: one line, and where its traceback lies."""
    kept = None if session.verbose else _write(error, logs)
    message = f"{type(error).__name__}: {error}"
    hint = f"This looks like a bug in rushes: please report it with {kept or 'what --verbose shows'}."
    if session.json:
        session.message("exit_error", code=FAILED, kind=type(error).__name__, message=message, hint=hint)
    else:
        show(session.err, message, do=hint)
    if session.verbose:
        traceback.print_exception(error)
    return FAILED


def tell_system(session: Session, error: OSError, logs: Path | None) -> int:
    """The system would not do it: told by its own words about the place, and kept like a bug, for it may be one."""
    if not error.strerror or error.filename is None:
        return tell_bug(session, error, logs)
    kept = None if session.verbose else _write(error, logs)
    code, hint = _SYSTEM.get(error.errno or 0, (FAILED, "Check that the place is there and may be used."))
    message = f"{os.fsdecode(error.filename)}: {error.strerror}"
    if session.json:
        session.message("exit_error", code=code, kind=type(error).__name__, message=message, hint=hint)
    else:
        show(session.err, message, do=f"{hint} More in {kept}." if kept else hint)
    if session.verbose:
        traceback.print_exception(error)
    return code


def unread() -> int:
    """The reader of a page that was only to be shown has seen enough."""
    for stream in (sys.stdout, sys.stderr):
        hush(stream)
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
        logs.mkdir(exist_ok=True)
        (logs / name).write_text("".join(traceback.format_exception(error)), "utf-8", "backslashreplace")
    except OSError:
        return None
    return logs / name
