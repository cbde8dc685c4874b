"""Schemas in PostgreSQL: numbered SQL files per part, each run once and in order, while work continues."""

from pathlib import Path

from rushes.postgres.store import Postgres
from rushes.postgres.transaction import Row, Transaction
from rushes.statements import Migrations

_SQL = {
    "alone": "SELECT pg_advisory_xact_lock(7310027), set_config('statement_timeout', '0', true)",
    "schema": "CREATE SCHEMA IF NOT EXISTS rushes",
    "parts": """CREATE TABLE IF NOT EXISTS rushes.part
        (name text PRIMARY KEY, version integer NOT NULL, needed integer NOT NULL DEFAULT 0)""",
    "there": """SELECT to_regclass('rushes.part') IS NOT NULL, EXISTS (SELECT FROM pg_attribute
        WHERE attrelid = to_regclass('rushes.part') AND attname = 'needed' AND NOT attisdropped)""",
    "version": "SELECT version, needed FROM rushes.part WHERE name = %(part)s",
    "keep": """INSERT INTO rushes.part (name, version, needed) VALUES (%(part)s, %(version)s, %(needed)s)
        ON CONFLICT (name) DO UPDATE SET version = excluded.version, needed = excluded.needed""",
}


def migrate(db: Postgres, part: str, folder: Path, *, breaking: bool = False) -> int:
    """Bring the schema of a part up to date in one transaction; answers the number that this code knows.

    Raises:
        WrongHome: versions as old as this cannot work here, it needs `rushes migrate`, or is too old.
    """
    steps = Migrations(folder, "database")
    if schema_of(db, part, steps) < steps.newest:
        db.write("migrate", _SQL, lambda tx: _migrate(tx, part, steps, breaking))
    return steps.newest


def schema_of(db: Postgres, part: str, steps: Migrations) -> int:
    """The number of a part's schema, 0 if it is not there.

    Raises:
        WrongHome: versions as old as this cannot work here, or it is too old.
    """
    there, of_a_release = db.ask(_SQL["there"], {})[0]
    if there and not of_a_release:
        raise steps.unreleased()
    rows = db.ask(_SQL["version"], {"part": part}) if there else []
    return _checked(rows[0], steps) if rows else 0


def breaking_changes(db: Postgres, part: str, folder: Path) -> tuple[str, ...]:
    """What `rushes migrate` would do with a part."""
    steps = Migrations(folder, "database")
    return steps.breaking_changes(schema_of(db, part, steps))


def scripted(tx: Transaction, file: Path) -> None:
    """Run every statement of a file; each ends with a semicolon at the end of a line."""
    bare = "\n".join(line for line in file.read_text("utf-8").splitlines() if not line.startswith("--"))
    for statement in bare.split(";\n"):
        if statement.strip():
            tx.run_text(statement)


def _migrate(tx: Transaction, part: str, steps: Migrations, breaking: bool) -> None:
    for name in ("alone", "schema", "parts"):
        tx.run(name)
    row = tx.one("version", part=part)
    at = _checked(row, steps) if row else 0
    for file in steps.pending(at, breaking=breaking):
        scripted(tx, file)
    if at < steps.newest:
        tx.run("keep", part=part, version=steps.newest, needed=steps.needed(steps.newest))


def _checked(row: Row, steps: Migrations) -> int:
    at, needed = row
    steps.check(at, needed)
    return int(at)
