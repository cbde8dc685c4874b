"""What workers that are not ours tell of their attempts: kept as log lines of the attempt, numbered by its worker."""

import base64
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from rushes.domain.errors import Refused
from rushes.domain.event import EventType
from rushes.domain.grouping import grouped
from rushes.domain.job import FINAL
from rushes.domain.keys import task_id
from rushes.library.queues import STAGE, Queues

BATCH = 25  # lines written at once
MOST_EVENTS = 1000  # in one message: as many as are kept of an attempt
DATA_BYTES = 8 * 1024
LOOK_SECONDS = 0.25


class WorkEventType(StrEnum):
    """What a worker can tell; start and end are critical to it, output is best effort."""

    PROCESS_START = "process_start"
    OUTPUT_DATA = "output_data"
    PROCESS_END = "process_end"
    PROCESS_ERROR = "process_error"


@dataclass(frozen=True, slots=True)
class WorkEvent:
    """One thing that a worker tells of its attempt."""

    sequence: int
    timestamp: int  # milliseconds since 1970
    type: WorkEventType
    data: bytes
    attempt: int = 0


class JobEvents:
    """Publishing and following."""

    def __init__(self, queues: Queues, clock: Callable[[], float] = time.time) -> None:
        self._queues, self._ledger, self._clock = queues, queues.home.ledger, clock

    def publish(self, token: str, events: Iterable[WorkEvent]) -> int:
        """Keep them; repeats change nothing. Answers how many there were.

        Raises:
            ForgedToken, ExpiredToken, ForeignToken, StaleToken: the token cannot be used.
            Refused: a number or a text is out of range, or there are too many.
        """
        read, told = self._queues.held(token), list(islice(events, MOST_EVENTS + 1))
        if len(told) > MOST_EVENTS:
            raise Refused(f"a message has at most {MOST_EVENTS} events", "Send them in several messages.")
        found = {event.sequence: self._line(event) for event in told}
        runs = grouped(enumerate(sorted(found)), lambda place: place[1] - place[0])  # of neighbours
        for run in runs.values():
            numbers = [number for _, number in run]
            for at in range(0, len(run), BATCH):
                some = numbers[at : at + BATCH]
                self._ledger.log(read.task, read.fence, some[0], [found[n] for n in some])
        return len(found)

    def follow(
        self,
        job: str,
        from_sequence: int = 0,
        from_timestamp: int = 0,
        types: Collection[WorkEventType] = (),
        is_over: Callable[[], bool] = lambda: False,
    ) -> Iterator[WorkEvent]:
        """What was told of the latest attempt, then what comes, until the job is final.

        Raises:
            NotFound: there is no such job.
        """
        attempt, seen, over = self._attempt(job), max(0, from_sequence - 1), False
        while not over and not is_over():
            over = self._queues.job(job).state in FINAL  # before the look: what comes with the end is in it
            if (now := self._attempt(job)) != attempt:  # its worker begins to count again
                attempt, seen = now, 0
            while events := self._after(job, attempt, seen):
                seen = events[-1].sequence
                yield from (e for e in events if e.timestamp >= from_timestamp and (not types or e.type in types))
            if not over:
                time.sleep(LOOK_SECONDS)

    def _attempt(self, job: str) -> int:
        """The number of the latest attempt, 0 before the first."""
        tasks = self._ledger.tasks(self._queues.job(job).id).rows
        return tasks[0].fence if tasks else 0

    def _after(self, job: str, attempt: int, seen: int) -> list[WorkEvent]:
        lines = self._ledger.events(job, seen, {EventType.LOG}, task_id(job, STAGE, None))
        return [_event(e.number, attempt, str(e.data["line"])) for e in lines if e.data["fence"] == attempt]

    def _line(self, event: WorkEvent) -> str:
        if not 0 < event.sequence < 2**53 or len(event.data) > DATA_BYTES:
            raise Refused(f"an event has a number from 1 on and at most {DATA_BYTES} bytes")
        at = event.timestamp or int(self._clock() * 1000)
        return json.dumps([at, event.type.value, base64.b64encode(event.data).decode("ascii")])


def _event(number: int, fence: int, line: str) -> WorkEvent:
    at, type, data = json.loads(line)
    return WorkEvent(number, at, WorkEventType(type), base64.b64decode(data), fence)
