"""One transaction on PostgreSQL: statements combined into as few round trips as possible."""

import contextlib
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg

Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]
Cursor = psycopg.Cursor[Row]
Settings = tuple[tuple[str, str], ...]

_CLOCK = "SELECT (extract(epoch FROM now()) * 1000)::bigint"


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


@functools.cache
def _insert(table: str, columns: Sequence[str], skip_existing: bool) -> str:
    names, ending = ", ".join(columns), " ON CONFLICT DO NOTHING" if skip_existing else ""
    source = f"json_populate_recordset(NULL::rushes.{table}, %(rows)s)"
    return f"INSERT INTO rushes.{table} ({names}) SELECT {names} FROM {source}{ending}"  # noqa: S608 - names are ours


@functools.cache
def _limits(settings: Settings) -> str:
    """Settings for one transaction."""
    return "SELECT " + ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings)


def _end(line: contextlib.ExitStack) -> None:
    """End a pipeline. One whose last sync is refused has an answer too many, which psycopg does not always expect."""
    try:
        line.close()
    except IndexError as e:
        raise psycopg.OperationalError("the commit was refused") from e
