"""Connections to PostgreSQL, shared by all its backends: a small pool, deadlines, translated errors.

Behind a pooler in transaction mode (`pooled`) nothing is kept in a session: no prepared statements, and settings are
made for each transaction. On a server's own connections, those that write have them from the start.
"""

import contextlib
import functools
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from rushes.domain.errors import Refused, RushesError, StoreAway
from rushes.postgres.errors import translate_errors
from rushes.postgres.transaction import Notifier, Row, Settings, Transaction
from rushes.telemetry import effect, log

logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of what it ignores after an error that we have heard

T = TypeVar("T")

CONNECT_SECONDS = 5
DEADLINE_SECONDS = 15.0  # of a server that accepts and says nothing; its own limits below come first
IDLE_SECONDS = 5.0  # after which the server ends the transaction of a client that froze
PATIENCE = "5s"  # for a lock
_NAME_BYTES = 63  # of a name in PostgreSQL
# Every write finds its rows by an index, and says so: in young tables the planner has no figures and would look through
# all of them. No plan here depends on a value; and a way that is switched off counts as dear, and what is dear is
# compiled.
_SETTINGS = {
    "statement_timeout": "10s",
    "lock_timeout": PATIENCE,
    **{f"enable_{way}": "off" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin")},
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}
# The last says only that something before it failed: it hides what when both come with the end of a pipeline.
_AGAIN = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation, errors.PipelineAborted)
_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


class Postgres:
    """A database, and a few connections to it that threads borrow."""

    def __init__(
        self,
        url: str,
        *,
        size: int = 10,
        pooled: bool = False,
        deadline: float = DEADLINE_SECONDS,
        idle: float = IDLE_SECONDS,
    ) -> None:
        self.url = url
        self.notifier: Notifier | None = None
        self._pooled, self._deadline, self._size = pooled, deadline, size
        self._settings = {**_SETTINGS, "idle_in_transaction_session_timeout": f"{idle}s"}
        self._free_places = threading.BoundedSemaphore(size)
        self._open: set[_Timed] = set()
        weakref.finalize(self, _close_each, self._open).atexit = False  # those of threads that went on after close()
        self._free: dict[bool, list[_Timed]] = {True: [], False: []}  # those that write, and those that only ask

    def write(
        self,
        name: str,
        sql: Mapping[str, str],
        body: Callable[[Transaction], T],
        wall: int | None = None,
        patience: str = PATIENCE,
    ) -> T:
        """A transaction that is committed at the end, or leaves no trace.

        After a conflict with another transaction (a deadlock, the same row), it is tried again.
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
        for free in self._free.values():
            while free:
                self._close(free.pop())

    def _write(
        self, name: str, sql: Mapping[str, str], body: Callable[[Transaction], T], wall: int | None, patience: str
    ) -> T:
        settings = self._settings if self._pooled else {}
        if patience != PATIENCE:
            settings = {**settings, "lock_timeout": patience}
        ended: tuple[Transaction, T] | None = None
        try:
            with self._borrowed(writes=True) as db, contextlib.ExitStack() as line:
                tx = Transaction(db, line, sql, wall, tuple(settings.items()))
                value = body(tx)
                with effect(name):
                    ended = tx, value
                    tx.commit()
                tx.confirm_notification()
                return value
        except RushesError as e:
            if ended and ended[0].failed_to_notify():
                log.warning("hints were not sent: %s", e)
                return ended[1]
            raise

    @contextlib.contextmanager
    def _borrowed(self, *, writes: bool = False) -> Iterator["_Timed"]:
        with translate_errors():
            if not self._free_places.acquire(timeout=self._deadline):
                raise StoreAway("every connection to the database is in use")
            try:
                db, whole = self._connection(writes), True
                try:
                    yield db
                except psycopg.Error:
                    whole = False
                    raise
                finally:
                    self._give_back(db, writes, whole=whole)
            finally:
                self._free_places.release()

    def _connection(self, writes: bool) -> "_Timed":
        with contextlib.suppress(IndexError):
            return self._free[writes].pop()
        if len(self._open) >= self._size:
            with contextlib.suppress(IndexError):
                self._close(self._free[not writes].pop())
        settings = tuple(self._settings.items()) if writes and not self._pooled else ()
        db = _Timed.connect(_with_settings(self.url, settings), autocommit=True, connect_timeout=CONNECT_SECONDS)
        self._open.add(db)
        db.deadline = self._deadline
        db.prepare_threshold = None if self._pooled else 2
        return db

    def _close(self, db: "_Timed") -> None:
        self._open.discard(db)
        db.close()

    def _give_back(self, db: "_Timed", writes: bool, *, whole: bool) -> None:
        """Keep a connection that is whole; one that broke means that the idle ones are no better.

        Where a statement failed in a pipeline, those after it may be taken for prepared and are not: it is let go.
        """
        if db.info.transaction_status in _OPEN:
            with contextlib.suppress(psycopg.Error):
                db.execute("ROLLBACK")
        if not db.closed and db.info.transaction_status is TransactionStatus.IDLE:
            return self._free[writes].append(db) if whole else self._close(db)
        self._close(db)
        return self.close()


class _Timed(psycopg.Connection[Row]):
    """A connection on which nothing takes longer than its deadline: a frozen server breaks no promise of ours."""

    deadline = DEADLINE_SECONDS

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for an answer."""
        return super().wait(gen, interval, self.deadline if timeout is None else timeout)


def _close_each(connections: set[_Timed]) -> None:
    for db in connections:
        db.close()


def named(url: str, name: str) -> str:
    """An address whose connections have a name in pg_stat_activity, unless it has one itself.

    Raises:
        Refused: it is no address.
    """
    try:
        return make_conninfo(url, fallback_application_name=name[:_NAME_BYTES])
    except psycopg.ProgrammingError as e:
        raise Refused(f"the store's URL cannot be read: {e}", "Write it as postgres://user:password@host/name.") from e


@functools.cache
def _with_settings(url: str, settings: Settings) -> str:
    """An address with settings for whoever connects to it, besides those that it has."""
    given = conninfo_to_dict(url).get("options") or ""
    options = " ".join([str(given), *(f"-c {name}={value}" for name, value in settings)])
    return make_conninfo(url, options=options) if settings else url
