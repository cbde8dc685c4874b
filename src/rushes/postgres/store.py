"""Connections to PostgreSQL for every room that keeps rows there: a small pool, deadlines, errors translated.

Nothing is kept in a session, so that a pooler in transaction mode may stand in between (then `prepared` is False).
"""

import contextlib
import functools
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from rushes.domain.errors import NoRoom, NotAllowed, RushesError, StoreAway, StoreMissing, StoreRefuses
from rushes.telemetry import effect, log

logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of what it ignores after an error that we have heard

Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]
Cursor = psycopg.Cursor[Row]
T = TypeVar("T")

CONNECT_SECONDS = 5
DEADLINE_SECONDS = 15.0  # of a server that accepts and says nothing; its own limits below come first
IDLE_SECONDS = 5.0  # after which the server ends the transaction of a client that froze
# Every write finds its rows by an index, and says so: in young tables the planner has no figures and would look through
# all of them. Set for the transaction only, because a session may not be ours.
_PINS = ("seqscan", "bitmapscan", "hashjoin", "mergejoin")
_LIMITS = """SELECT (extract(epoch FROM now()) * 1000)::bigint, set_config('statement_timeout', '10s', true),
    set_config('idle_in_transaction_session_timeout', %(idle)s, true), set_config('lock_timeout', %(lock)s, true), """
_LIMITS += ", ".join(f"set_config('enable_{way}', 'off', true)" for way in _PINS)
_LIMITS += ", set_config('plan_cache_mode', 'force_generic_plan', true)"  # no plan here depends on a value
_LIMITS += ", set_config('jit', 'off', true)"  # a way that is switched off counts as dear, and what is dear is compiled
# The last says only that something before it failed: it hides what when both come with the end of a pipeline.
_AGAIN = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation, errors.PipelineAborted)
_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, errors.IdleInTransactionSessionTimeout,
         errors.ReadOnlySqlTransaction)  # fmt: skip
_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


class Notification(NamedTuple):
    """A statement that notifies others of work, its values, and what to call when it was sent."""

    statement: str
    values: Mapping[str, str]
    sent: Callable[[], None]


Notifier = Callable[[str, str], Notification]  # makes that of a lane and a task that becomes ready with a commit


class Transaction:
    """One transaction: its moment, and the statements that it runs.

    Statements are sent without waiting; only an answer that is asked for takes a round trip, and ends with a sync:
    without one the server does not count us as idle, and would wait for a client that froze for ever. What lies between
    two syncs is a transaction by itself, so that one which asks for nothing needs neither BEGIN nor COMMIT.
    """

    __slots__ = (
        "_begun",
        "_commit",
        "_db",
        "_inserts",
        "_notification",
        "_open",
        "_pipeline",
        "_sent",
        "_sql",
        "_wall",
    )

    def __init__(
        self,
        db: Connection,
        pipeline: psycopg.Pipeline,
        sql: Mapping[str, str],
        wall: int | None,
        limits: Mapping[str, str],
    ) -> None:
        self._db, self._pipeline, self._sql, self._wall = db, pipeline, sql, wall
        self._open = False
        self._notification: Notification | None = None
        self._commit: Cursor | None = None
        self._begun = db.execute(_LIMITS, limits)
        self._sent = [self._begun]  # since the last sync
        self._inserts: dict[str, tuple[str, Sequence[Mapping[str, object]]]] = {}

    @property
    def wall(self) -> int:
        """Its moment by the database's clock (or the one that tests gave), in milliseconds."""
        if self._wall is None:
            self.rows(self._begun)
        assert self._wall is not None
        return self._wall

    @property
    def now(self) -> float:
        """The same in seconds."""
        return self.wall / 1000

    @property
    def awake(self) -> float:
        """The same: the database does not sleep."""
        return self.wall / 1000

    def run(self, name: str, /, **values: object) -> Cursor:
        """Run a statement; nobody waits for it."""
        self._flush()
        self._sent.append(self._db.execute(self._sql[name], values))
        return self._sent[-1]

    def run_text(self, statement: str) -> None:
        """Run a statement that has no name, once."""
        self._db.execute(statement, prepare=False)

    def insert(self, table: str, rows: Sequence[Mapping[str, object]], *, skip_existing: bool = False) -> None:
        """Insert rows with the same columns into a table of the ledger, by one statement with inserts just before."""
        if rows:
            values = f"rows{len(self._inserts)}"
            self._inserts[_insert(table, tuple(rows[0]), values, skip_existing)] = values, rows

    def all(self, name: str, /, **values: object) -> list[Row]:
        """All its rows."""
        return self.rows(self.run(name, **values))

    def one(self, name: str, /, **values: object) -> Row | None:
        """Its first row."""
        return next(iter(self.all(name, **values)), None)

    def column(self, name: str, /, **values: object) -> list[Any]:
        """The first value of each row."""
        return [row[0] for row in self.all(name, **values)]

    def rows(self, cursor: Cursor) -> list[Row]:
        """What a statement answers; those that were sent before the last sync have answered."""
        if cursor in self._sent:
            self.hold()
            self._pipeline.sync()
            self._sent.clear()
        if self._wall is None:
            self._wall = int(self._begun.fetchall()[0][0])
        return [] if cursor is self._begun else cursor.fetchall()

    def hold(self) -> None:
        """A sync does not end it any more; what was run before belongs to it."""
        if not self._open:
            self._db.execute("BEGIN")
            self._open = True

    def notify(self, notification: Notification) -> None:
        """Notify others with the commit, by a transaction of its own behind it: one trip for both."""
        self.hold()
        self._notification = notification

    def commit(self) -> None:
        """Let the next sync end it."""
        self._flush()
        if self._open:
            self._commit = self._db.execute("COMMIT")
        if self._notification:
            self._db.execute(self._notification.statement, self._notification.values)
        self._open = True  # nothing is left to hold

    def _flush(self) -> None:
        """Send the inserts that have gathered: a statement costs the client more than a row."""
        if self._inserts:
            *others, last = self._inserts
            these = ", ".join(f"i{n} AS ({insert})" for n, insert in enumerate(others))
            values = {name: json.dumps(rows) for name, rows in self._inserts.values()}
            self._sent.append(self._db.execute(f"WITH {these} {last}" if these else last, values))
            self._inserts.clear()

    def confirm_notification(self) -> None:
        """All of it went through, the notification too."""
        if self._notification:
            self._notification.sent()

    def failed_to_notify(self) -> bool:
        """Whether it is committed, so that what failed can only be the notification."""
        return bool(self._notification and self._commit and self._commit.statusmessage == "COMMIT")


class Postgres:
    """A database, and a few connections to it that threads borrow."""

    def __init__(
        self,
        url: str,
        *,
        size: int = 10,
        prepared: bool = True,
        deadline: float = DEADLINE_SECONDS,
        idle: float = IDLE_SECONDS,
    ) -> None:
        self.url = url
        self.notifier: Notifier | None = None
        self._prepared, self._deadline, self._idle = prepared, deadline, idle
        self._free_places = threading.BoundedSemaphore(size)
        self._free: list[_Timed] = []

    def write(
        self,
        name: str,
        sql: Mapping[str, str],
        body: Callable[[Transaction], T],
        wall: int | None = None,
        patience: str = "5s",
    ) -> T:
        """A transaction that is committed at the end, or leaves no trace.

        If another was in the way (a deadlock, the same row at once), it is tried once more.
        """
        try:
            return self._write(name, sql, body, wall, patience)
        except RushesError as e:
            if not isinstance(e.__cause__, _AGAIN):
                raise
            return self._write(name, sql, body, wall, patience)

    def ask(self, query: str, values: Mapping[str, object], name: str = "") -> list[Row]:
        """One statement that is a transaction by itself; it has a name if it is an effect."""
        with self._borrowed() as db, effect(name) if name else contextlib.nullcontext():
            return db.execute(query, values).fetchall()

    @contextlib.contextmanager
    def alone(self, lock: int, patience: float) -> Iterator[bool]:
        """Hold a right that only one has at a time; False if another still has it after that many seconds.

        It is over with this process, or ten minutes after it froze.
        """
        until = time.monotonic() + patience
        with self._borrowed() as db:
            db.execute("BEGIN")
            db.execute("SET LOCAL idle_in_transaction_session_timeout = '10min'")
            while not (mine := db.execute("SELECT pg_try_advisory_xact_lock(%s)", (lock,)).fetchall()[0][0]):
                if time.monotonic() >= until:
                    break
                time.sleep(0.02)
            yield mine

    def close(self) -> None:
        """Close idle connections; whoever asks again gets new ones."""
        while self._free:
            self._free.pop().close()

    def _write(
        self, name: str, sql: Mapping[str, str], body: Callable[[Transaction], T], wall: int | None, patience: str
    ) -> T:
        ended: tuple[Transaction, T] | None = None
        try:
            with self._borrowed() as db, contextlib.ExitStack() as line:
                pipeline = line.enter_context(db.pipeline())
                tx = Transaction(db, pipeline, sql, wall, {"lock": patience, "idle": f"{self._idle}s"})
                line.callback(tx.hold)  # whatever ends it before its commit: the sync at the end of the line must not
                value = body(tx)
                with effect(name):
                    ended = tx, value
                    tx.commit()
                    _end(line)  # which syncs: to do so before would take one more round trip
                tx.confirm_notification()
                return value
        except RushesError as e:
            if ended and ended[0].failed_to_notify():
                log.warning("hints were not sent: %s", e)
                return ended[1]
            raise

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator["_Timed"]:
        with translate_errors():
            if not self._free_places.acquire(timeout=self._deadline):
                raise StoreAway("every connection to the database is in use")
            try:
                db, whole = self._connection(), True
                try:
                    yield db
                except psycopg.Error:
                    whole = False
                    raise
                finally:
                    self._give_back(db, whole=whole)
            finally:
                self._free_places.release()

    def _connection(self) -> "_Timed":
        with contextlib.suppress(IndexError):
            return self._free.pop()
        db = _Timed.connect(self.url, autocommit=True, connect_timeout=CONNECT_SECONDS)
        db.deadline = self._deadline
        db.prepare_threshold = 2 if self._prepared else None
        return db

    def _give_back(self, db: "_Timed", *, whole: bool) -> None:
        """Keep a connection that is whole; one that broke means that the idle ones are no better.

        Where a statement failed in a pipeline, those after it may be taken for prepared and are not: it is let go.
        """
        if db.info.transaction_status in _OPEN:
            with contextlib.suppress(psycopg.Error):
                db.execute("ROLLBACK")
        if not db.closed and db.info.transaction_status is TransactionStatus.IDLE:
            return self._free.append(db) if whole else db.close()
        db.close()
        return self.close()


class _Timed(psycopg.Connection[Row]):
    """A connection on which nothing takes longer than its deadline: a frozen server breaks no promise of ours."""

    deadline = DEADLINE_SECONDS

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for an answer."""
        return super().wait(gen, interval, self.deadline if timeout is None else timeout)


@functools.cache
def _insert(table: str, columns: Sequence[str], values: str, skip_existing: bool) -> str:
    names, ending = ", ".join(columns), " ON CONFLICT DO NOTHING" if skip_existing else ""
    source = f"json_populate_recordset(NULL::rushes.{table}, %({values})s)"
    return f"INSERT INTO rushes.{table} ({names}) SELECT {names} FROM {source}{ending}"  # noqa: S608 - names are ours


def _end(line: contextlib.ExitStack) -> None:
    """End a pipeline. One whose last sync is refused has an answer too many, which psycopg does not always expect."""
    try:
        line.close()
    except IndexError as e:
        raise psycopg.OperationalError("the commit was refused") from e


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Raise errors of psycopg as errors of the domain."""
    try:
        yield
    except errors.DiskFull as e:
        raise NoRoom(f"the database cannot be written: {e}") from e
    except errors.InsufficientPrivilege as e:
        raise NotAllowed(f"the database denies access: {e}", "Give this role the permission.") from e
    except _AWAY as e:
        raise _away(e) from e
    except psycopg.Error as e:
        raise RushesError(f"the database failed: {e}") from e


def _away(e: psycopg.Error) -> StoreAway:
    """A server that does not let us in says why in words only: what fails before a session has no code."""
    text = str(e)
    if re.search(r'database "[^"]*" does not exist|no such database', text):
        hint = "Create the database, or correct its name in the store's URL."
        return StoreMissing(f"the database does not exist: {text}", hint)
    if re.search(r'authentication failed|role "[^"]*" does not exist|no pg_hba.conf entry', text):
        return StoreRefuses(f"the database denies access: {text}", "Check user and password in the store's URL.")
    return StoreAway(f"the database does not respond: {text}")
