"""Numbered SQL files, each run once and in order; the number of the last one stands in the database itself."""

import sqlite3
from pathlib import Path

from rushes.domain.errors import WrongHome
from rushes.sqlite.file import run_script, whole

_FOLDER = Path(__file__).with_name("migrations")


def migrate(db: sqlite3.Connection, folder: Path = _FOLDER) -> int:
    """Bring the schema up to date in one transaction; answers its number.

    Raises:
        WrongHome: the schema is newer than this code, or from before its first file.
    """
    steps = _steps(folder)
    with whole(db):
        at = _checked(db, min(steps), max(steps))
        for number in range(max(at + 1, min(steps)), max(steps) + 1):
            run_script(db, steps[number].read_text("utf-8"))
        db.execute(f"PRAGMA user_version = {max(steps)}")
    return max(steps)


def check(db: sqlite3.Connection, folder: Path = _FOLDER) -> None:
    """Raises WrongHome: another version has changed the schema."""
    steps = _steps(folder)
    _checked(db, min(steps), max(steps))


def _steps(folder: Path) -> dict[int, Path]:
    return {int(file.name[:4]): file for file in sorted(folder.glob("[0-9]*.sql"))}


def _checked(db: sqlite3.Connection, oldest: int, newest: int) -> int:
    at = int(db.execute("PRAGMA user_version").fetchone()[0])
    if at > newest:
        raise WrongHome(
            f"this home was written by a newer rushes (schema {at}, this one knows {newest})",
            "Use the newer version, or restore a backup made by this one.",
        )
    if 0 < at < oldest:
        raise WrongHome(
            f"this home was written by a build before the first release (schema {at})",
            "Begin in a new home: rushes init",
        )
    return at
