"""Schemas in PostgreSQL: numbered SQL files per part, each run once and in order, while others go on working."""

from collections.abc import Mapping
from pathlib import Path

from rushes.domain.errors import WrongHome
from rushes.postgres.store import Postgres, Transaction

_SQL = {
    "alone": "SELECT pg_advisory_xact_lock(7310027), set_config('statement_timeout', '0', true)",
    "schema": "CREATE SCHEMA IF NOT EXISTS rushes",
    "parts": "CREATE TABLE IF NOT EXISTS rushes.part (name text PRIMARY KEY, version integer NOT NULL)",
    "there": "SELECT to_regclass('rushes.part') IS NOT NULL",
    "version": "SELECT version FROM rushes.part WHERE name = %(part)s",
    "keep": """INSERT INTO rushes.part VALUES (%(part)s, %(version)s)
        ON CONFLICT (name) DO UPDATE SET version = excluded.version""",
}


def migrate(db: Postgres, part: str, folder: Path) -> int:
    """Bring the schema of a part up to date in one transaction; answers its number.

    Raises:
        WrongHome: the schema is newer than this code, or from before its first file.
    """
    steps = {int(file.name[:4]): file for file in sorted(folder.glob("[0-9]*.sql"))}
    newest = max(steps)
    if db.ask(_SQL["there"], {})[0][0]:
        rows = db.ask(_SQL["version"], {"part": part})
        if rows and _checked(part, rows[0][0], steps) == newest:
            return newest
    db.write("migrate", _SQL, lambda tx: _migrate(tx, part, steps))
    return newest


def scripted(tx: Transaction, file: Path) -> None:
    """Run every statement of a file; each ends with a semicolon at the end of a line."""
    bare = "\n".join(line for line in file.read_text("utf-8").splitlines() if not line.startswith("--"))
    for statement in bare.split(";\n"):
        if statement.strip():
            tx.run_text(statement)


def _migrate(tx: Transaction, part: str, steps: Mapping[int, Path]) -> None:
    for name in ("alone", "schema", "parts"):
        tx.run(name)
    newest = max(steps)
    row = tx.one("version", part=part)
    at = _checked(part, row[0], steps) if row else 0
    for number in range(max(at + 1, min(steps)), newest + 1):
        scripted(tx, steps[number])
    tx.run("keep", part=part, version=newest)


def _checked(part: str, at: int, steps: Mapping[int, Path]) -> int:
    if at > max(steps):
        raise WrongHome(
            f"this database was written by a newer rushes ({part} schema {at}, this one knows {max(steps)})",
            "Use the newer version, or restore a backup made by this one.",
        )
    if at < min(steps):
        raise WrongHome(
            f"this database was written by a build before the first release ({part} schema {at})",
            "Use a new database: existing results in the bucket or folder are found and adopted.",
        )
    return at
