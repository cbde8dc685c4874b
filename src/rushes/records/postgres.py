"""Records on PostgreSQL."""

from collections.abc import Iterable
from pathlib import Path

from rushes.postgres import changes
from rushes.postgres.schema import migrate
from rushes.postgres.store import Postgres
from rushes.postgres.transaction import Row
from rushes.records.port import Record
from rushes.records.sql import CHANGES, SqlRecords, record_of
from rushes.statements import statements

_HERE = Path(__file__)
MIGRATIONS = _HERE.with_name("migrations")
SQL = statements(_HERE.with_name("postgres.sql"))


class PostgresRecords(SqlRecords):
    """Documents in a database."""

    def __init__(self, db: Postgres) -> None:
        self._db = db
        migrate(db, "records", MIGRATIONS)
        self._ask("restored")

    def changed(self, cursor: str = "") -> tuple[tuple[Record, ...], str]:
        rows = self._ask("changed", **changes.place(cursor), limit=CHANGES)
        return tuple(map(record_of, rows)), changes.after(cursor, rows)

    def close(self) -> None:
        """Close idle connections."""
        self._db.close()

    def _ask(self, name: str, verb: str = "", /, **values: object) -> list[Row]:
        return self._db.ask(SQL[name], values, f"records.{verb}" if verb else "")

    def _array(self, values: Iterable[str]) -> list[str]:
        return list(values)
