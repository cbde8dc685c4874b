"""The schema of a ledger on SQLite: its number, and the oldest version that can work with it."""

import sqlite3
from pathlib import Path

from rushes.sqlite.file import run_script, whole
from rushes.statements import Migrations

_FOLDER = Path(__file__).with_name("migrations")


def migrate(db: sqlite3.Connection, folder: Path = _FOLDER, *, breaking: bool = False) -> int:
    """Bring the schema up to date in one transaction; answers its number, which may be newer than this code.

    Raises:
        WrongHome: versions as old as this cannot work here, it needs `rushes migrate`, or is too old.
    """
    steps = Migrations(folder, "home")
    with whole(db):
        at = _checked(db, steps)
        for file in steps.pending(at, breaking=breaking):
            run_script(db, file.read_text("utf-8"))
        if at < steps.newest:
            db.execute(f"PRAGMA user_version = {steps.newest}")
            db.execute("INSERT OR REPLACE INTO home VALUES ('needed', ?)", [str(steps.needed(steps.newest))])
    return max(at, steps.newest)


def check(db: sqlite3.Connection, folder: Path = _FOLDER) -> None:
    """Raises WrongHome: another version has changed the schema so that this one cannot work with it."""
    _checked(db, Migrations(folder, "home"))


def breaking_changes(db: sqlite3.Connection, folder: Path = _FOLDER) -> tuple[str, ...]:
    """What `rushes migrate` would do."""
    steps = Migrations(folder, "home")
    return steps.breaking_changes(_checked(db, steps))


def _checked(db: sqlite3.Connection, steps: Migrations) -> int:
    at = int(db.execute("PRAGMA user_version").fetchone()[0])
    row = db.execute("SELECT value FROM home WHERE name = 'needed'").fetchone() if at > 1 else None
    steps.check(at, int(row[0]) if row else 0)
    return at
