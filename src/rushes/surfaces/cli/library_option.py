"""Opens the library that a command works with; a module of its own, because the import is heavy."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from rushes.library import Library
from rushes.surfaces.cli.session import Session
from rushes.telemetry import log, log_to

LOG_BYTES = 5_000_000


Overrides = Mapping[str, tuple[str, Any]]  # option -> setting and value; None leaves it as it is
NO_OVERRIDES: Overrides = MappingProxyType({})


def open_library(
    session: Session, *, create: bool = False, logs_to_stderr: bool = False, over: Overrides = NO_OVERRIDES
) -> Library:
    """Open the chosen home; logs go to a file there, so that they do not disturb progress bars.

    A home that was named with --home and does not exist is not created by commands that only read.
    """
    create = create or not session.home
    options = {name: (value, option) for option, (name, value) in over.items()}
    library = session.closing.enter_context(Library(session.home or None, create=create, options=options))
    level = "debug" if session.verbose else library.settings.log_level
    to = sys.stderr if logs_to_stderr or session.verbose else _log_file(library.folder / "logs")
    if to is not sys.stderr:
        session.closing.enter_context(to)
    log_to(to, level)
    session.closing.callback(log.handlers.clear)
    return library


def _log_file(folder: Path) -> TextIO:
    try:
        folder.mkdir(exist_ok=True)
        file = folder / "rushes.log"
        if file.exists() and file.stat().st_size > LOG_BYTES:
            file.replace(folder / "rushes.1.log")
        return file.open("a", encoding="utf-8", errors="backslashreplace")
    except OSError:
        return sys.stderr
