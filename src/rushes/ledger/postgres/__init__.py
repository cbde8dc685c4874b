"""The ledger on PostgreSQL: any number of processes and machines, by the database's clock."""

import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rushes.domain.errors import RushesError, WrongHome
from rushes.domain.job import NewJob
from rushes.domain.task import Draft, Lease
from rushes.domain.worker import Incarnation
from rushes.ledger.clock import Millis
from rushes.ledger.port import Renewed
from rushes.ledger.postgres.claims import UnconfirmedClaims
from rushes.ledger.process import is_gone_from_here
from rushes.ledger.rules import lease_over
from rushes.ledger.sql import STATEMENTS, SqlLedger, intake, queries, work
from rushes.postgres import changes
from rushes.postgres.schema import migrate
from rushes.postgres.store import Postgres
from rushes.postgres.transaction import Row, Transaction
from rushes.statements import statements

T = TypeVar("T")
_HERE = Path(__file__).parent
MIGRATIONS = _HERE / "migrations"
_VALUES = re.compile(r"(?<!:):(\w+)")
SQL: Mapping[str, str] = {  # values as psycopg writes them
    name: _VALUES.sub(r"%(\1)s", text) for name, text in statements(*STATEMENTS, _HERE / "dialect.sql").items()
}


class PostgresLedger(SqlLedger):
    """Jobs, tasks, leases, results, events and workers in one database."""

    def __init__(
        self, db: Postgres, *, wall: Millis | None = None, is_gone: Callable[[Incarnation], bool] = is_gone_from_here
    ) -> None:
        """`wall` stands for the database's clock in tests."""
        super().__init__(is_gone)
        self._db, self._wall = db, wall
        self._schema = migrate(db, "ledger", MIGRATIONS)
        self._unconfirmed = UnconfirmedClaims()
        db.ask(SQL["restored"], {})

    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        """Up to n ready tasks in those lanes; first those of a call whose answer was lost."""
        at = self._wall and self._wall()
        claim = secrets.randbits(62)
        asked: dict[str, Any] = {"worker": worker, "at": at, "now": at and at / 1000, "n": min(n, self.batch)}
        asked |= {"claim": claim, "lanes": list(lanes), "ids": list(hinted), "every": not hinted}
        try:
            rows = self._claim_again(asked) or self._claim("claim", asked)
        except RushesError:
            self._unconfirmed.add(claim, worker)
            raise
        if not rows and not self._db.ask(SQL["worker_lease"], asked):
            raise lease_over(worker)
        return work.leases(rows)

    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        """Enter or keep the worker's row for a lease, unless a newer version has changed the schema."""

        def body(tx: Transaction) -> Renewed:
            self._check_schema(tx.column("schema")[0])
            return work.renew(tx, worker, holding, progress, note)

        return self._write("renew", body)

    def changed(self, cursor: str = "") -> tuple[tuple[str, ...], str]:
        """Jobs whose event number moved since the cursor; call again until there are none."""
        rows = self._db.ask(SQL["changed"], {**changes.place(cursor), "limit": queries.CHANGES})
        return tuple(row[0] for row in rows), changes.after(cursor, rows)

    # Beside the port
    def check_schema(self) -> None:
        """Ask whether the schema is still the one that this process knows.

        Raises:
            WrongHome: a newer rushes has changed it.
        """
        self._check_schema(self._db.ask(SQL["schema"], {})[0][0])

    def _check_schema(self, number: int) -> None:
        if number > self._schema:
            hint = "Restart this process with the newer version."
            raise WrongHome("a newer rushes has changed this database", hint)

    def close(self) -> None:
        """Close idle connections."""
        self._db.close()

    def _write(self, verb: str, body: Callable[[Transaction], T]) -> T:
        patience = "1s" if verb == "sweep" else "5s"  # what a sweep cannot lock, the next one finds again
        return self._db.write(f"ledger.{verb}", SQL, body, self._wall and self._wall(), patience)

    def _read(self, body: Callable[["Reader"], T]) -> T:
        return body(Reader(self._db, self._wall and self._wall()))

    def _submit(self, new: NewJob, first: Draft) -> list[Row]:
        """Idle workers are notified of a first task that is ready with the commit."""

        def body(tx: Transaction) -> Callable[[], list[Row]]:
            if self._db.notifier and not first.needs and not first.adopted:
                tx.notify(self._db.notifier(first.lane, first.id))
            return intake.submit(tx, new, first)

        return self._write("submit", body)()

    def _claim(self, name: str, asked: Mapping[str, Any]) -> list[Row]:
        return self._write("claim", lambda tx: tx.send(name, **asked))()  # the answer came with the commit

    def _claim_again(self, asked: Mapping[str, Any]) -> list[Row]:
        worker, begun = asked["worker"], time.monotonic()
        if not (unconfirmed := self._unconfirmed.of(worker)):
            return []
        rows = self._claim("claim_again", {**asked, "unconfirmed": unconfirmed})
        if not rows:
            self._unconfirmed.looked(worker, begun)
        return rows


class Reader:
    """Looks at what is committed, each by a statement of its own."""

    def __init__(self, db: Postgres, wall: int | None) -> None:
        self._db, self.at = db, wall
        self.now = self.awake = None if wall is None else wall / 1000

    def all(self, name: str, /, **values: object) -> list[Row]:
        """All rows that a statement answers."""
        return self._db.ask(SQL[name], values)

    def one(self, name: str, /, **values: object) -> Row | None:
        """Its first row."""
        return next(iter(self.all(name, **values)), None)

    def column(self, name: str, /, **values: object) -> list[Any]:
        """The first value of each row."""
        return [row[0] for row in self.all(name, **values)]
