"""Hints by PostgreSQL: LISTEN on one direct connection, NOTIFY only while a worker is idle.

A NOTIFY in every commit would make commits wait for each other (16 clients: 28,400 a second without, 7,600 with).
Whoever is idle holds a shared advisory lock: if it can be taken alone, nobody is, and nothing is sent. A hint that is
sent is not waited for to be on disk: whatever it tells of is.
"""

import contextlib
import json
import os
import secrets
import select
import threading
from collections.abc import Iterator, Sequence

import psycopg

from rushes.domain.errors import RushesError, StoreAway
from rushes.postgres.errors import translate_errors
from rushes.postgres.store import CONNECT_SECONDS, Postgres
from rushes.postgres.transaction import Notification
from rushes.telemetry import Outage, effect, log
from rushes.transport.poll import Poll

CHECK_SECONDS = 3.0
LOOK_SECONDS = 5.0  # how long an empty look is believed where no notification comes
LISTENING_SECONDS = 30.0  # and where they come: a connection that is lost is noticed, and then everybody looks
_CHANNEL = "rushes"
_LOCK = 7310029
_SEND = f"""SELECT CASE WHEN pg_try_advisory_lock({_LOCK}) THEN pg_advisory_unlock({_LOCK})::text
    ELSE set_config('synchronous_commit', 'off', true) || pg_notify('{_CHANNEL}', %(hint)s)::text END"""
_IDLE = {True: f"SELECT pg_advisory_lock_shared({_LOCK})", False: f"SELECT pg_advisory_unlock_shared({_LOCK})"}
_MAX_IDS = 100  # ids in one hint: PostgreSQL carries 8,000 bytes
_JOIN_SECONDS = 2.0  # for the listener to end
_TICK = 1.0  # seconds after which somebody who waits no more is busy; also between tries to connect


class Notify(Poll):
    """Wakes whoever waits in this process as `Poll` does, and whoever is idle in others."""

    def __init__(self, db: Postgres, listen: str) -> None:
        """`listen` is the URL of the server itself, because a pooler carries no LISTEN; without one, others look."""
        super().__init__()
        self._db, self._url = db, listen
        self.look_seconds = LISTENING_SECONDS if listen else LOOK_SECONDS
        db.notifier = self._notification  # a task that comes with a commit is told of in the same trip
        self._notified: set[tuple[str, str]] = set()  # those, until they are announced
        self._me = secrets.token_hex(8)
        self._starting = threading.Lock()
        self._listener: threading.Thread | None = None
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._waits = 0
        self._idle = False  # this process holds the lock
        self._closed = False
        self._not_sent, self._not_heard = Outage("hints cannot be sent"), Outage("hints are not received")

    def announce(self, lane: str, tasks: Sequence[str], attempt: int = 1) -> None:
        super().announce(lane, tasks, attempt)
        if self._was_notified(lane, tasks):
            return None
        try:
            with effect("hint"):
                self._db.ask(_SEND, self._hint(lane, tasks))
        except RushesError as e:
            return self._not_sent.began(e)
        return self._not_sent.ended()

    def wait(self, lanes: Sequence[str], seconds: float, n: int = 10) -> tuple[str, ...]:
        """The first wait after this process becomes idle ends at once: it claims again."""
        if seconds <= 0 or not self._url:
            return super().wait(lanes, seconds, n)
        self._listen()
        with self._changed:  # until it sleeps, so that it is not woken before
            self._waits += 1
            self._poke()
            try:
                return super().wait(lanes, seconds, n)
            finally:
                self._waits -= 1

    def check(self, _lanes: Sequence[str]) -> str:
        """Listen on a channel of its own and send a ping there."""
        if not self._url:
            return f"no LISTEN; workers poll every {self.look_seconds:.0f} s"
        channel = f"{_CHANNEL}_{secrets.token_hex(8)}"
        with translate_errors(), psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_SECONDS) as db:
            db.execute(f"LISTEN {channel}")
            self._db.ask("SELECT pg_notify(%(channel)s, 'ping')", {"channel": channel})
            if not list(db.notifies(timeout=CHECK_SECONDS, stop_after=1)):
                hint = "Set listen to the address of the server itself: LISTEN does not work through a pooler."
                raise StoreAway("NOTIFY does not arrive", hint)
        return "LISTEN/NOTIFY"

    def close(self) -> None:
        with self._starting:
            closed, self._closed = self._closed, True
        if closed:
            return
        self._poke()
        super().close()
        self._db.close()
        if self._listener:
            self._listener.join(_JOIN_SECONDS)
            if self._listener.is_alive():
                return  # the server is frozen: the thread, and the pipe that it reads, end with the process
        os.close(self._out)
        os.close(self._in)

    def _notification(self, lane: str, task: str) -> Notification:
        return Notification(_SEND, self._hint(lane, [task]), lambda: self._notified.add((lane, task)))

    def _was_notified(self, lane: str, tasks: Sequence[str]) -> bool:
        """Whether others were told of each of these with a commit."""
        these = {(lane, task) for task in tasks}
        notified = these & self._notified
        self._notified -= notified
        return bool(these) and notified == these

    def _hint(self, lane: str, tasks: Sequence[str]) -> dict[str, str]:
        return {"hint": json.dumps([self._me, lane, list(tasks[:_MAX_IDS])])}

    def _listen(self) -> None:
        with self._starting:
            if self._listener is None and not self._closed:
                self._listener = threading.Thread(target=self._serve, name="notify", daemon=True)
                self._listener.start()

    def _poke(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._in, b".")

    def _serve(self) -> None:
        """Listen until closed; after every loss look again, because hints were lost with it."""
        while not self._closed:
            try:
                with self._connected() as db:
                    while not self._closed:
                        self._listen_once(db)
            except psycopg.Error as e:
                self._not_heard.began(e)
                self._sleep(_TICK)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[psycopg.Connection]:
        with psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_SECONDS, keepalives_idle=10) as db:
            db.execute(f"LISTEN {_CHANNEL}")
            self._not_heard.ended()
            try:
                yield db
            finally:
                self._idle = False

    def _listen_once(self, db: psycopg.Connection) -> None:
        """Become idle or busy, then sleep until a hint comes, a wait begins or a while is over."""
        idle = self._waits > 0
        if idle != self._idle:
            db.execute(_IDLE[idle])
            self._idle = idle
            if idle:
                self.wake()
        for notification in db.notifies(timeout=0):
            self._receive(notification)
        self._sleep(_TICK if idle else None, db.fileno())

    def _sleep(self, seconds: float | None, *also: int) -> None:
        select.select([self._out, *also], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._out, 4096)

    def _receive(self, notification: psycopg.Notify) -> None:
        try:
            sender, lane, tasks = json.loads(notification.payload)
            hint = str(lane), [str(task) for task in tasks]
        except (ValueError, TypeError, RecursionError) as e:
            return log.warning("ignored a notification that is not a hint: %s", e)
        return super().announce(*hint) if sender != self._me else None
