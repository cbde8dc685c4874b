"""The attempts of our own slots as a worker would tell of them: start, output, and an end or an error."""

import json
from collections.abc import Iterator, Mapping

from rushes.domain.event import Event, EventType
from rushes.domain.job import FINAL
from rushes.domain.keys import JSON
from rushes.domain.task import Task, TaskState
from rushes.ledger.port import Ledger
from rushes.library.job_events.work_event import EventFilter, Truncation, WorkEvent, WorkEventType, millis

PAGE = 20  # outcomes of one look, each with up to 1000 lines
_OUTCOMES: Mapping[EventType, WorkEventType] = {
    EventType.DONE: WorkEventType.PROCESS_END,
    EventType.GIVEN_BACK: WorkEventType.PROCESS_END,
    EventType.FAILED: WorkEventType.PROCESS_ERROR,
    EventType.LOST: WorkEventType.PROCESS_ERROR,
}


class FootageWatch:
    """The attempts of a job: those that are over by the job's history, those that run by the rows of its tasks.

    The number in the history comes with the outcome, and is where to go on: whatever has none yet is told again.
    """

    def __init__(self, ledger: Ledger, job: str, seen: int, wanted: EventFilter) -> None:
        self._ledger, self._job, self._seen, self._wanted = ledger, job, seen, wanted
        self._open: dict[tuple[str, int], int] = {}  # attempts that were begun here, and the last line of each
        self._ended: dict[str, int] = {}  # the last attempt of each task that is over
        self._truncation = Truncation()
        self.more = self.over = False

    def look(self) -> Iterator[WorkEvent]:
        """What is new."""
        job = self._ledger.job(self._job)  # before the look: what ends it is among the events
        leased = self._ledger.tasks(self._job, TaskState.LEASED).rows
        events = self._ledger.events(self._job, self._seen, limit=PAGE)
        for event in events:
            if event.type is EventType.TRUNCATED:
                self._truncation.note(int(str(event.data["before"])))
            yield from map(self._truncation.told, filter(self._wanted.wants, self._outcome(event)))
            self._seen = event.number
        for task in leased:
            if task.fence > self._ended.get(task.id, 0):
                yield from map(self._truncation.told, filter(self._wanted.wants, self._running(task)))
        self.more, self.over = bool(events), not events and job.state in FINAL

    def _outcome(self, event: Event) -> Iterator[WorkEvent]:
        if event.type not in _OUTCOMES or not event.task or "fence" not in event.data:
            return
        task, fence, at = event.task, int(str(event.data["fence"])), millis(event.at)
        if (task, fence) not in self._open:
            seconds = float(str(event.data.get("seconds") or 0.0))
            yield self._start(task, fence, at - round(seconds * 1000))
        yield from self._output(task, fence)
        last = self._open.pop((task, fence))
        self._ended[task] = fence
        yield WorkEvent(last + 2, at, _OUTCOMES[event.type], _data(event.data), fence, task, event.number,
                        place=str(event.number))  # fmt: skip

    def _running(self, task: Task) -> Iterator[WorkEvent]:
        if (task.id, task.fence) not in self._open:
            yield self._start(task.id, task.fence, millis(task.started_at or task.created_at))
        yield from self._output(task.id, task.fence)

    def _start(self, task: str, fence: int, at: int) -> WorkEvent:
        self._open[task, fence] = 0
        return WorkEvent(1, at, WorkEventType.PROCESS_START, b"", fence, task)

    def _output(self, task: str, fence: int) -> Iterator[WorkEvent]:
        """Lines that are new: of the latest attempt, others are no longer asked for."""
        if not self._wanted.output:
            return
        for line in self._ledger.events(self._job, self._open[task, fence], {EventType.LOG}, task, limit=1000):
            if line.data["fence"] == fence:
                self._open[task, fence] = line.number
                text = str(line.data["line"]).encode()
                yield WorkEvent(line.number + 1, millis(line.at), WorkEventType.OUTPUT_DATA, text, fence, task)


def _data(data: Mapping[str, JSON]) -> bytes:
    return json.dumps(dict(data), ensure_ascii=False, sort_keys=True).encode()
