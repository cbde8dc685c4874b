"""Storage events, heard while a server or a worker runs: uploads begin, films are taken in, answers wake their tasks.

An event says only where to look: doubled, late, forged or of another key, it changes nothing. One that is lost is made
up for by a look at the key of each job that still waits, which one process of the home does every minute.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rushes.domain.errors import Refused, RushesError, TryAgain
from rushes.domain.video import BUCKETS
from rushes.home import Home
from rushes.jobs.intake import JobRequest, take_in
from rushes.library.watching.watched_places import watched_places
from rushes.records.port import Conflict
from rushes.sources.event_messages import parse_events
from rushes.sources.port import EventMessage, StorageEvent, StorageEvents
from rushes.telemetry import BugLog, Outage, log
from rushes.uploads.bucket_puts import BucketPuts
from rushes.uploads.service import Uploads
from rushes.wiring.stage_services import answer_waker

LOOKED = "looked"  # the kind of record that says when promised uploads were last looked for
LOOK_SECONDS = 60.0
REST_SECONDS = 5.0  # after the queue or a store was away
LAST_SECONDS = 3.0  # that a request may still take at the end
Wake = Callable[[str, str], None]


def open_listener(home: Home) -> "EventListener":
    """The listener of a home, which wakes what waits for answers too."""
    return EventListener(home, answer_waker(home))


class EventListener:
    """Hears the storage events of a home. Any number of processes may, each event is dealt with by one or more."""

    def __init__(self, home: Home, wake: Wake | None = None) -> None:
        """`wake` is told of every key: it may be an answer that a task waits for."""
        self._home, self._wake = home, wake
        self._puts = BucketPuts(Uploads(home))
        self._outage, self._bugs = Outage("cannot receive storage events"), BugLog()
        self._over = threading.Event()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear the queue meanwhile, and look for what it may have lost."""
        threads = [threading.Thread(target=self._run, args=(step,), daemon=True) for step in self._steps()]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join(LAST_SECONDS)

    def deal(self, events: Iterable[StorageEvent]) -> None:
        """Look at each key that was named.

        Raises:
            TryAgain: a store is away: to be told again.
        """
        for event in events:
            expected = self._home.expected_uploads
            if expected and (key := expected.key_of(event)):
                self._puts.on_key(key)
            if self._wake:
                self._wake(event.bucket, event.key)
            self._take_in(event)

    def tell(self, message: bytes) -> None:
        """A storage says something by itself.

        Raises:
            Refused: it is no storage event.
            TryAgain: a store is away: to be told again.
        """
        self.deal(parse_events(message))

    def hear(self, queue: StorageEvents, wait: int) -> None:
        """Deal with the next messages; one that could not be dealt with comes again.

        Raises:
            TryAgain: the queue or a store is away.
        """
        away: TryAgain | None = None
        for message in queue.receive(wait):
            try:
                self._deal_with(queue, message)
            except TryAgain as e:
                away = e  # the others may be about something else
        if away:
            raise away

    def look(self) -> None:
        """Look for promised uploads, if no other process has done so within the last minute.

        Raises:
            TryAgain: a store is away.
        """
        home, now = self._home, time.time()
        record = home.records.get(LOOKED, home.owner, LOOKED)
        if record and 0 <= now - float(record.doc["at"]) < LOOK_SECONDS:
            return
        try:
            home.records.put(LOOKED, home.owner, LOOKED, {"at": now}, expected=record.version if record else 0)
        except Conflict:
            return
        self._puts.look_for_promised(old=True)

    def _steps(self) -> Iterator[Callable[[], float]]:
        """What is done again and again, each in a thread of its own; it answers how long to rest."""
        if self._home.settings.storage_events:
            yield self._hear_next
        if self._home.settings.blobs:
            yield self._look_now

    def _hear_next(self) -> float:
        if queue := self._home.storage_events:
            self.hear(queue, self._home.settings.sqs_wait_seconds)
        return 0.0

    def _look_now(self) -> float:
        self.look()
        return LOOK_SECONDS / 2

    def _run(self, step: Callable[[], float]) -> None:
        rest = 0.0
        while not self._over.wait(rest):
            try:
                rest = step()
                self._outage.ended()
            except RushesError as e:
                self._outage.began(f"{e}. {e.advice}")
                rest = REST_SECONDS
            except Exception as e:  # noqa: BLE001 - nothing that fails here ends the process
                if not self._over.is_set():  # else the home is closed already
                    self._bugs.add(e)
                rest = REST_SECONDS

    def _deal_with(self, queue: StorageEvents, message: EventMessage) -> None:
        try:
            self.deal(message.events)
        except TryAgain:
            raise
        except RushesError as e:
            log.warning("skipped a storage event: %s", e)
        queue.acknowledge([message])

    def _take_in(self, event: StorageEvent) -> None:
        for place, wanted in watched_places(self._home):
            try:
                if place.startswith(BUCKETS):
                    self._take_in_at(place, wanted, event)
            except Refused as e:  # what is asked there is not possible any more; other places may have the key
                log.warning("%s is not watched: %s", place, e)

    def _take_in_at(self, place: str, wanted: JobRequest, event: StorageEvent) -> None:
        if found := list(self._home.source(place).at(event.bucket, event.key)):
            for added in take_in(self._home, found, wanted):
                if isinstance(added.error, TryAgain):
                    raise added.error
                if added.created or added.error:
                    log.info("%s: %s", added.path, added.error or "added")
