"""Records on SQLite."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rushes.domain.errors import WrongHome
from rushes.records.port import Record
from rushes.records.sql import CHANGES, SqlRecords, record_of
from rushes.sqlite.file import SqliteFile, run_script, translate_errors, whole
from rushes.statements import statements

SCHEMA = 1
_HERE = Path(__file__)
SQL = statements(_HERE.with_name("sqlite.sql"))


class SqliteRecords(SqlRecords):
    """Documents in a SQLite file; one thread writes at a time."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, "records", _create)
        self.backup, self.close = self._file.backup, self._file.close

    def changed(self, cursor: str = "") -> tuple[tuple[Record, ...], str]:
        rows = self._ask("changed", after=int(cursor or 0), limit=CHANGES)
        return tuple(map(record_of, rows)), str(rows[-1][6]) if rows else cursor

    # Beside the port: a copy in memory
    def dump(self) -> bytes:
        """All of it as one file."""
        with self._file.read() as db:
            return db.serialize()

    def load(self, data: bytes) -> None:
        """What `dump` gave, instead of all that is here."""
        with translate_errors("records"):
            self._file.db.deserialize(data)
            _create(self._file.db)

    def _ask(self, name: str, verb: str = "", /, **values: object) -> list[tuple[Any, ...]]:
        with self._file.write(verb) if verb else self._file.read() as db:
            return db.execute(SQL[name], values).fetchall()

    def _array(self, values: Iterable[str]) -> str:
        return json.dumps(list(values))


def _create(db: sqlite3.Connection) -> None:
    with whole(db):
        run_script(db, _HERE.with_name("sqlite_schema.sql").read_text("utf-8"))
        ((version,),) = db.execute(SQL["version"])
        if version > SCHEMA:
            raise WrongHome(
                f"these records were written by a newer rushes (schema {version}, this one knows {SCHEMA})",
                "Use the newer version, or restore a backup made by this one.",
            )
