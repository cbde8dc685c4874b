"""What workers that are not ours tell of their attempts: kept as log lines of the attempt, numbered by its worker."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from itertools import islice

from rushes.domain.errors import LeaseLost, Refused
from rushes.domain.grouping import grouped
from rushes.library.access.task_tokens import TaskToken
from rushes.library.job_events.work_event import WorkEvent
from rushes.library.queues import Queues
from rushes.metrics import PROCESS
from rushes.tracing import span

BATCH = 25  # lines written at once
REFUSED, NOT_PERSISTED = "refused", "persistence_failed"
MOST_EVENTS = 1000  # in one message: as many as are kept of an attempt


class EventPublisher:
    """Keeps what workers tell."""

    def __init__(self, queues: Queues, clock: Callable[[], float] = time.time) -> None:
        self._queues, self._ledger, self._clock = queues, queues.home.ledger, clock
        for error in (REFUSED, NOT_PERSISTED):  # alerts need a first sample
            PROCESS.add("rushes_events_publish_errors_total", 0, error_type=error)

    def publish(self, token: str, events: Iterable[WorkEvent]) -> int:
        """Keep them; repeats change nothing. Answers how many there were.

        Raises:
            ForgedToken, ExpiredToken, ForeignToken, StaleToken: the token cannot be used.
            Refused: a number or a text is out of range, or there are too many.
        """
        begun = time.monotonic()
        try:
            kept = self._publish(token, events)
        except Exception as e:
            error = REFUSED if isinstance(e, Refused | LeaseLost) else NOT_PERSISTED
            PROCESS.add("rushes_events_publish_errors_total", error_type=error)
            PROCESS.add("rushes_events_publish_total", success="false")
            raise
        PROCESS.add("rushes_events_publish_total", success="true")
        PROCESS.observe("rushes_events_publish_duration_seconds", time.monotonic() - begun)
        PROCESS.add("rushes_events_persisted_total", kept)
        return kept

    def _publish(self, token: str, events: Iterable[WorkEvent]) -> int:
        read, told = self._queues.held(token), list(islice(events, MOST_EVENTS + 1))
        if len(told) > MOST_EVENTS:
            raise Refused(f"a message can have at most {MOST_EVENTS} events", "Send them in several messages.")
        found = {event.sequence: event.to_line(self._clock) for event in told}
        if len(found) < len(told):
            raise Refused("two events of a message have the same number", "Number them one by one, from 0 or 1.")
        with span("events.publish", read.trace, events=len(found)) if read.trace else nullcontext():
            self._keep(read, found)
        return len(found)

    def _keep(self, read: TaskToken, found: Mapping[int, str]) -> None:
        runs = grouped(enumerate(sorted(found)), lambda place: place[1] - place[0])  # of neighbours
        for run in runs.values():
            numbers = [number for _, number in run]
            for at in range(0, len(run), BATCH):
                some = numbers[at : at + BATCH]
                self._ledger.log(read.task, read.fence, some[0], [found[n] for n in some])
