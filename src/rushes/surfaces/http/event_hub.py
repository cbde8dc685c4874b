"""One follower per process feeds all event streams: each event is read and serialised once.

A stream registers before it reads the past, so that nothing falls between; it drops what it has shown already.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from rushes.domain.errors import RushesError
from rushes.domain.event import Event, EventType
from rushes.domain.job import Job
from rushes.library.jobs import Jobs
from rushes.metrics import Registry
from rushes.surfaces.http.schemas import JobShape
from rushes.surfaces.words import ActiveJobs, active_jobs
from rushes.telemetry import Outage

LOOK_SECONDS = 0.25  # while things happen
QUIET_SECONDS = 1.0  # reached step by step while nothing does
ALONE_SECONDS = 10.0  # without subscribers: only to stay near the end, so that none has to wait for the past
START_SECONDS = 5.0  # that a reader of all jobs waits at most until the past is skipped
MOST = 1000  # events that wait for one reader; then its stream is closed and replays


class Message(NamedTuple):
    """A message of a stream as it is sent; JSON contains no bare line ends."""

    text: str
    number: int = 0  # of a job's event
    last: bool = False  # the job is finished, unless somebody takes it up again
    type: str = ""
    at: str = ""

    @classmethod
    def of_event(cls, event: Event) -> "Message":
        """One of a job's events."""
        text = f"id: {event.number}\nevent: {event.type.value}\ndata: {json.dumps(asdict(event))}\n\n"
        return cls(text, event.number, event.type is EventType.FINISHED, event.type, event.at)

    @classmethod
    def of_row(cls, row: Job, active: ActiveJobs) -> "Message":
        """The current row of a job."""
        return cls(f"event: job\ndata: {json.dumps(asdict(JobShape.of(row, active)))}\n\n")


@dataclass(slots=True, eq=False)
class Subscriber:
    """One stream and what it has not sent yet. Used only in the event loop."""

    job: str  # "" gets every job's row
    messages: list[Message] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    def put(self, messages: Sequence[Message]) -> bool:
        """Take more; False if that was too much, then it is over."""
        self.messages += messages
        if len(self.messages) > MOST:
            self.messages.clear()
            self.closed = True
        self.news.set()
        return not self.closed

    def take(self) -> Sequence[Message]:
        """What came since the last time."""
        messages, self.messages = self.messages, []
        return messages

    def close(self) -> None:
        """Nothing more comes."""
        self.closed = True
        self.news.set()


class EventHub:
    """Reads changes from the ledger, a few times a second while a client listens, and passes them on."""

    def __init__(self, jobs: Jobs, metrics: Registry | None = None) -> None:
        self._jobs, self._metrics = jobs, metrics or Registry()
        self._metrics.add("rushes_channels_overflow_total", 0)  # alerts need a first sample
        for reason in ("slow_reader", "not_kept"):
            self._metrics.add("rushes_events_dropped_total", 0, reason=reason)
        self.streams = 0
        self.watches = 0  # streams of what attempts tell, which look for themselves
        self._subscribers: dict[str, set[Subscriber]] = {}
        self._seen: dict[str, int] = {}  # the last event handed on, of jobs that somebody listens to
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._nudge = threading.Event()
        self._current = threading.Event()  # the past is skipped
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.closing = False
        self._outage = Outage("cannot follow the ledger")

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to follow."""
        self._loop = loop
        self._thread = threading.Thread(target=self._run, name="hub", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End every stream and the follower."""
        self.hang_up()
        self._over.set()
        self._nudge.set()
        if self._thread:
            self._thread.join(10)

    def hang_up(self) -> None:
        """End every stream, from any thread or a signal: their readers come back elsewhere and replay."""
        self.closing = True
        self._in_loop(self._close_all)

    def wait_until_current(self) -> None:
        """Wait until the past is skipped, but not for ever: who listens to all jobs before is told to come again."""
        self._current.wait(START_SECONDS)

    def listen(self, job: str, last_event: int) -> Subscriber:
        """A new stream of a job whose row said `last_event` a moment ago (or of all jobs); called in the loop."""
        subscriber = Subscriber(job)
        with self._guard:
            self._subscribers.setdefault(job, set()).add(subscriber)
            if job:
                self._seen[job] = min(self._seen.get(job, last_event), last_event)
        self._nudge.set()
        self.streams += 1
        if self.closing:
            subscriber.close()
        return subscriber

    def leave(self, subscriber: Subscriber) -> None:
        """A stream is over; called in the loop."""
        with self._guard:
            subscribers = self._subscribers.get(subscriber.job, set())
            subscribers.discard(subscriber)
            if not subscribers:
                self._subscribers.pop(subscriber.job, None)
                self._seen.pop(subscriber.job, None)
        self.streams -= 1

    def replayed(self, events: int, seconds: float) -> None:
        """A stream has sent the past."""
        self._metrics.add("rushes_streams_historical_replay_events_total", events)
        self._metrics.observe("rushes_streams_historical_replay_duration_seconds", seconds)

    def _run(self) -> None:
        cursor, pause = self._now(), LOOK_SECONDS
        self._current.set()
        while not self._over.is_set():
            before = cursor
            try:
                cursor = self._look(cursor)
                self._outage.ended()
            except RushesError as e:  # a busy or absent store: the next look goes on from the same cursor
                self._outage.began(e)
            pause = pause_after(pause, news=cursor != before, heard=bool(self._subscribers))
            if self._nudge.wait(pause) and not self._over.is_set():
                self._nudge.clear()

    def _now(self) -> str:
        cursor = ""
        while not self._over.is_set():
            try:
                more, cursor = self._jobs.skip_changes(cursor)
                if not more:
                    self._catch_up()
                    return cursor
            except RushesError as e:
                self._outage.began(e)
                self._over.wait(LOOK_SECONDS)
        return cursor

    def _look(self, cursor: str) -> str:
        if not self._subscribers:
            after = self._jobs.skip_changes(cursor)[1]
            if not self._subscribers:  # else some of it is theirs
                return after
        rows, after = self._jobs.changed(cursor)
        active = active_jobs(self._jobs.workers()) if rows else ActiveJobs()
        for row in rows:
            self._tell(row, active)
        return after

    def _catch_up(self) -> None:
        """Streams that began while the past was skipped: some of it was theirs; readers of all jobs come again."""
        with self._guard:
            begun = dict(self._seen)
        for job, seen in begun.items():
            self._tell_events(job, seen)
        self._in_loop(self._close, "")

    def _tell(self, row: Job, active: ActiveJobs) -> None:
        with self._guard:
            seen, everywhere = self._seen.get(row.id), "" in self._subscribers
        if seen is not None:
            self._tell_events(row.id, seen)
        if everywhere:
            self._hand("", [Message.of_row(row, active)])

    def _tell_events(self, job: str, seen: int) -> None:
        while events := self._jobs.events(job, seen):
            self._hand(job, list(map(Message.of_event, events)))
            seen = events[-1].number
        with self._guard:
            if job in self._seen:
                self._seen[job] = seen

    def _hand(self, job: str, messages: Sequence[Message]) -> None:
        self._in_loop(self._deliver, job, messages)

    def _in_loop(self, do: Callable[..., None], *args: object) -> None:
        if self._loop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(do, *args)

    def _deliver(self, job: str, messages: Sequence[Message]) -> None:
        for subscriber in list(self._subscribers.get(job, ())):
            if not subscriber.closed:
                self._metrics.add("rushes_streams_events_total", len(messages))
                waiting = len(subscriber.messages) + len(messages)
                if not subscriber.put(messages):
                    self._metrics.add("rushes_channels_overflow_total")
                    self._metrics.add("rushes_events_dropped_total", waiting, reason="slow_reader")

    def _close_all(self) -> None:
        for job in list(self._subscribers):
            self._close(job)

    def _close(self, job: str) -> None:
        for subscriber in list(self._subscribers.get(job, ())):
            subscriber.close()


def pause_after(pause: float, *, news: bool, heard: bool) -> float:
    """Seconds until the next look, after one that followed a pause: longer and longer while nothing happens."""
    if not heard:
        return ALONE_SECONDS
    return LOOK_SECONDS if news else min(QUIET_SECONDS, max(LOOK_SECONDS, 1.25 * pause))
