"""A home on one machine: SQLite and a folder, no server. Each part is imported when it is opened."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from sqlite3 import Connection
from urllib.parse import quote

from rushes.domain.errors import Refused
from rushes.domain.text import clean_text
from rushes.home_folder import originals_of
from rushes.index.port import Index
from rushes.ledger.port import Ledger
from rushes.records.port import Records
from rushes.settings import Settings
from rushes.transport.port import Describe, Transport
from rushes.wiring.setup import Setup


class LocalSetup(Setup):
    """SQLite and a folder: no server at all."""

    def __init__(self, settings: Settings, home: Path, *, take_over: bool = False) -> None:
        super().__init__(settings, home)
        self._take_over = take_over

    def ledger(self) -> Ledger:
        """SQLite in the home."""
        from rushes.ledger.sqlite import SqliteLedger

        return SqliteLedger(self._home / "ledger.sqlite", take_over=self._take_over, places=self._places())

    def _places(self) -> Mapping[str, str]:
        s, home = self._settings, self._home.absolute()
        root = s.blobs.rstrip("/") or (home / "files").as_uri()
        transcripts = f"{root}/{quote(s.transcripts_prefix.strip('/'))}"
        return {"originals": clean_text(str(originals_of(home))), "transcripts": transcripts}

    def records(self) -> Records:
        """SQLite in the home."""
        from rushes.records.sqlite import SqliteRecords

        return SqliteRecords(self._home / "records.sqlite")

    def index(self) -> Index:
        """SQLite in the home."""
        from rushes.index.sqlite import SqliteIndex

        return SqliteIndex(self._index_file)

    def transport(self, _lanes: Sequence[str], _describe: Describe) -> Transport:
        """Looking again."""
        from rushes.transport.poll import Poll

        return Poll()

    def snapshots(self, ledger: Ledger, records: Records, /) -> Mapping[str, Callable[[Path], None]]:
        """SQLite copies itself while it is in use."""
        from rushes.ledger.sqlite import SqliteLedger
        from rushes.records.sqlite import SqliteRecords

        if not isinstance(ledger, SqliteLedger) or not isinstance(records, SqliteRecords):
            raise Refused("this home's ledger is not a file")
        return {"ledger.sqlite": ledger.backup, "records.sqlite": records.backup}

    def check_schema(self, ledger: Ledger, /) -> None:
        """As the number in the file says."""
        from rushes.ledger.sqlite import SqliteLedger

        if isinstance(ledger, SqliteLedger):
            ledger.check_schema()

    def migrate(self, *, check: bool = False) -> tuple[str, ...]:
        """The ledger's file; there is no other schema that changes."""
        from rushes.ledger.sqlite.schema import breaking_changes, migrate
        from rushes.sqlite.file import SqliteFile

        changes: list[str] = []

        def change(db: Connection) -> None:
            changes.extend(breaking_changes(db))
            if not check:
                migrate(db, breaking=True)

        SqliteFile(self._home / "ledger.sqlite", "ledger", change).close()
        return tuple(changes)

    def clock(self) -> None:
        """This machine's."""
