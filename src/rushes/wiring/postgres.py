"""A fleet on PostgreSQL: ledger, records and index are tables; hints by NOTIFY or by Redis."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from rushes.domain.errors import Refused
from rushes.index.port import Index
from rushes.index.postgres import PostgresIndex
from rushes.index.sqlite import SqliteIndex
from rushes.ledger.port import Ledger
from rushes.ledger.postgres import MIGRATIONS as LEDGER_MIGRATIONS
from rushes.ledger.postgres import PostgresLedger
from rushes.model_settings import uses_stub
from rushes.postgres.schema import breaking_changes, migrate
from rushes.postgres.store import Postgres, named
from rushes.records.port import Records
from rushes.records.postgres import MIGRATIONS as RECORDS_MIGRATIONS
from rushes.records.postgres import PostgresRecords
from rushes.settings import Settings
from rushes.transport.notify import Notify
from rushes.transport.port import Describe, Transport
from rushes.wiring.setup import Setup, hints_of

POOLS, POOL = {"serve": 20}, 10  # connections of one process, at most


class PostgresSetup(Setup):
    """One database and a bucket (or a folder that every worker sees)."""

    def __init__(self, settings: Settings, home: Path, process: str = "") -> None:
        """`process` is what the database calls us, with host and process id."""
        super().__init__(settings, home)
        self._name = f"rushes {process} {platform.node()}:{os.getpid()}"
        self._pool = POOLS.get(process, POOL)

    @cached_property
    def _db(self) -> Postgres:
        return Postgres(named(self._settings.store, self._name), size=self._pool, pooled=self._settings.pgbouncer)

    def ledger(self) -> Ledger:
        """Tables."""
        return PostgresLedger(self._db)

    def records(self) -> Records:
        """Tables."""
        return PostgresRecords(self._db)

    def index(self) -> Index:
        """Tables; of made-up answers a file of this process, so that nobody else finds them."""
        return SqliteIndex(self._index_file) if uses_stub(self._settings) else PostgresIndex(self._db)

    def transport(self, _lanes: Sequence[str], describe: Describe = lambda _: {}) -> Transport:
        """Redis if it is named, else LISTEN on a direct connection, which a pooler is not."""
        s = self._settings
        if s.hints:
            return hints_of(s, describe)
        listen = s.listen or ("" if s.pgbouncer else s.store)
        return Notify(self._db, listen and named(listen, f"{self._name} LISTEN"))

    def snapshots(self, _ledger: Ledger, _records: Records, /) -> Mapping[str, Callable[[Path], None]]:
        """The server has its own backup."""
        raise Refused(
            "this home's ledger is a PostgreSQL database; rushes backup does not copy it",
            "Use pg_dump for the database and copy the bucket: see docs/guides/run-on-postgres.md.",
        )

    def check_schema(self, ledger: Ledger, /) -> None:
        """As the database says."""
        if isinstance(ledger, PostgresLedger):
            ledger.check_schema()

    def migrate(self, *, check: bool = False) -> tuple[str, ...]:
        """Ledger and records; an index is made again."""
        parts = {"ledger": LEDGER_MIGRATIONS, "records": RECORDS_MIGRATIONS}
        changes = [what for part, folder in parts.items() for what in breaking_changes(self._db, part, folder)]
        for part, folder in parts.items() if not check else ():
            migrate(self._db, part, folder, breaking=True)
        return tuple(changes)

    def clock(self) -> float:
        """The database's."""
        db = Postgres(named(self._settings.store, self._name), size=1)
        try:
            return float(db.ask("SELECT extract(epoch FROM clock_timestamp())", {})[0][0])
        finally:
            db.close()
