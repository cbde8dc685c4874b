"""Connections to PostgreSQL for every room that keeps rows there: a small pool, deadlines, errors translated.

Behind a pooler in transaction mode (`pooled`) nothing is kept in a session: no prepared statements, and settings are
made for each transaction. On a server's own connections, those that write have them from the start.
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
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from rushes.domain.errors import NoRoom, NotAllowed, Refused, RushesError, StoreAway, StoreMissing, StoreRefuses
from rushes.telemetry import effect, log

logging.getLogger("psycopg").setLevel(logging.ERROR)  # it warns of what it ignores after an error that we have heard

Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]
Cursor = psycopg.Cursor[Row]
Settings = tuple[tuple[str, str], ...]
T = TypeVar("T")

CONNECT_SECONDS = 5
DEADLINE_SECONDS = 15.0  # of a server that accepts and says nothing; its own limits below come first
IDLE_SECONDS = 5.0  # after which the server ends the transaction of a client that froze
PATIENCE = "5s"  # for a lock
_NAME_BYTES = 63  # of a name in PostgreSQL
_CLOCK = "SELECT (extract(epoch FROM now()) * 1000)::bigint"
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
_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, errors.IdleInTransactionSessionTimeout,
         errors.ReadOnlySqlTransaction)  # fmt: skip
_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


class Notification(NamedTuple):
    """A statement that notifies others of work, its values, and what to call when it was sent."""

    statement: str
    values: Mapping[str, str]
    sent: Callable[[], None]


Notifier = Callable[[str, str], Notification]  # makes that of a lane and a task that becomes ready with a commit


class _Statement:
    """A statement that waits for its trip, and then for whoever asks for its answer."""

    __slots__ = ("cursor", "text", "values")

    def __init__(self, text: str, values: Mapping[str, object]) -> None:
        self.text, self.values = text, values
        self.cursor: Cursor | None = None


class Transaction:
    """One transaction: its moment, and the statements that it runs.

    Statements wait until an answer is asked for; then all go in one trip. One statement by itself, or several of which
    nothing is asked, need neither BEGIN nor COMMIT. A trip ends with a sync: without one the server does not count us
    as idle, and would wait for a client that froze for ever.
    """

    def __init__(
        self, db: Connection, line: contextlib.ExitStack, sql: Mapping[str, str], wall: int | None, settings: Settings
    ) -> None:
        self._db, self._line, self._sql, self._wall, self._settings = db, line, sql, wall, settings
        self._pipeline: psycopg.Pipeline | None = None
        self._whole = False  # it has a BEGIN
        self._notification: Notification | None = None
        self._commit: Cursor | None = None
        self._waiting: list[_Statement] = []
        self._parts: list[str] = []  # statements about rows that have gathered,
        self._rows: dict[str, str] = {}  # and the rows

    @property
    def wall(self) -> int:
        """Its moment by the database's clock (or the one that tests gave), in milliseconds."""
        if self._wall is None:
            clock = self._wait_for(_Statement(_CLOCK, {}))
            self._wall = int(clock()[0][0])
        return self._wall

    @property
    def now(self) -> float:
        """The same in seconds."""
        return self.wall / 1000

    @property
    def awake(self) -> float:
        """The same: the database does not sleep."""
        return self.wall / 1000

    @property
    def at(self) -> int | None:
        """The same for a statement; None: the database's own clock counts."""
        return self._wall

    def run(self, name: str, /, **values: object) -> None:
        """Run a statement; nobody waits for it."""
        self.send(name, **values)

    def run_text(self, statement: str) -> None:
        """Run a statement that has no name."""
        self._wait_for(_Statement(statement, {}))

    def send(self, name: str, /, **values: object) -> Callable[[], list[Row]]:
        """Run a statement; its answer can be asked for once, also when all is committed."""
        return self._wait_for(_Statement(self._sql[name], values))

    def many(self, name: str, rows: Sequence[Mapping[str, object]], /) -> None:
        """Run a statement (or several) about rows; those that follow each other go as one."""
        if rows:
            self._gather(self._sql[name].split(";\n"), rows)

    def insert(self, table: str, rows: Sequence[Mapping[str, object]], *, skip_existing: bool = False) -> None:
        """Insert rows with the same columns into a table of the ledger, gathered as `many` are."""
        if rows:
            self._gather([_insert(table, tuple(rows[0]), skip_existing)], rows)

    def all(self, name: str, /, **values: object) -> list[Row]:
        """All its rows."""
        return self.send(name, **values)()

    def one(self, name: str, /, **values: object) -> Row | None:
        """Its first row."""
        return next(iter(self.all(name, **values)), None)

    def column(self, name: str, /, **values: object) -> list[Any]:
        """The first value of each row."""
        return [row[0] for row in self.all(name, **values)]

    def notify(self, notification: Notification) -> None:
        """Notify others with the commit, by a transaction of its own behind it: one trip for both."""
        self._notification = notification

    def commit(self) -> None:
        """Send what is left, and end it."""
        self._gathered()
        if not self._pipeline:
            if len(self._waiting) <= 1 and not self._settings and not self._notification:
                return self._execute()
            self._begin(whole=bool(self._notification))
        self._execute()
        if self._whole:
            self._commit = self._db.execute("COMMIT")
        if self._notification:
            self._db.execute(self._notification.statement, self._notification.values)
        return _end(self._line)  # which syncs: to do so before would take one more trip

    def confirm_notification(self) -> None:
        """All of it went through, the notification too."""
        if self._notification:
            self._notification.sent()

    def failed_to_notify(self) -> bool:
        """Whether it is committed, so that what failed can only be the notification."""
        return bool(self._notification and self._commit and self._commit.statusmessage == "COMMIT")

    def _wait_for(self, statement: _Statement) -> Callable[[], list[Row]]:
        self._gathered()
        self._waiting.append(statement)
        return lambda: self._answer(statement)

    def _answer(self, statement: _Statement) -> list[Row]:
        if statement.cursor is None:
            self._send()
        assert statement.cursor is not None
        return statement.cursor.fetchall()

    def _send(self) -> None:
        """Send what waits, and wait for the answers; the first time with BEGIN."""
        self._gathered()
        pipeline = self._pipeline or self._begin(whole=True)
        self._execute()
        pipeline.sync()

    def _begin(self, *, whole: bool) -> psycopg.Pipeline:
        """Open the line; if not `whole`, what follows is one trip, which is a transaction by itself."""
        self._pipeline, self._whole = self._line.enter_context(self._db.pipeline()), whole
        if whole:
            self._db.execute("BEGIN")
        if self._settings:
            self._db.execute(_limits(self._settings))
        return self._pipeline

    def _execute(self) -> None:
        for statement in self._waiting:
            statement.cursor = self._db.execute(statement.text, statement.values)
        self._waiting = []

    def _gather(self, parts: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
        values = f"rows{len(self._rows)}"
        self._parts += [part.replace("%(rows)s", f"%({values})s") for part in parts]
        self._rows[values] = json.dumps(rows)

    def _gathered(self) -> None:
        """What has gathered becomes one statement: each costs both sides more than ten rows."""
        if self._parts:
            *others, last = self._parts
            these = ", ".join(f"part{n} AS ({part})" for n, part in enumerate(others))
            self._waiting.append(_Statement(f"WITH {these} {last}" if these else last, self._rows))
            self._parts, self._rows = [], {}


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


@functools.cache
def _insert(table: str, columns: Sequence[str], skip_existing: bool) -> str:
    names, ending = ", ".join(columns), " ON CONFLICT DO NOTHING" if skip_existing else ""
    source = f"json_populate_recordset(NULL::rushes.{table}, %(rows)s)"
    return f"INSERT INTO rushes.{table} ({names}) SELECT {names} FROM {source}{ending}"  # noqa: S608 - names are ours


@functools.cache
def _limits(settings: Settings) -> str:
    """Settings for one transaction."""
    return "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings)


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
