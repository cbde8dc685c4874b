"""One thing that is told of an attempt, and how it is kept as a log line."""

import base64
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from rushes.domain.errors import Refused

DATA_BYTES = 8 * 1024


class WorkEventType(StrEnum):
    """What can be told of an attempt; start and end are critical to its worker, output is best effort."""

    PROCESS_START = "process_start"
    OUTPUT_DATA = "output_data"
    PROCESS_END = "process_end"
    PROCESS_ERROR = "process_error"


@dataclass(frozen=True, slots=True)
class WorkEvent:
    """One thing that is told of an attempt."""

    sequence: int  # by its worker, from 0 or 1
    timestamp: int  # milliseconds since 1970
    type: WorkEventType
    data: bytes
    attempt: int = 0
    task: str = ""
    number: int = 0  # of footage: of the attempt's outcome in the job's history
    before: int = 0  # what was told before that number is no longer kept
    place: str = ""  # where to go on after it ("" while an attempt of footage runs: it is told again)

    def to_line(self, clock: Callable[[], float]) -> str:
        """As it is kept; the server's time where it has none.

        Raises:
            Refused: a number or its data is out of range.
        """
        if not 0 <= self.sequence < 2**53 or len(self.data) > DATA_BYTES:
            raise Refused(f"an event needs a number from 0 on, and at most {DATA_BYTES} bytes")
        at = self.timestamp or int(clock() * 1000)
        return json.dumps([at, self.type.value, base64.b64encode(self.data).decode("ascii")])

    @staticmethod
    def of_line(number: int, fence: int, line: str, task: str) -> "WorkEvent":
        """What was kept."""
        at, type, data = json.loads(line)
        return WorkEvent(
            number, at, WorkEventType(type), base64.b64decode(data), fence, task, place=f"{fence}.{number}"
        )


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which of an attempt's events are wanted: from a time on, of some types (all, if none is named)."""

    from_timestamp: int = 0
    types: Collection[WorkEventType] = ()

    def wants(self, event: WorkEvent) -> bool:
        """Whether it is one."""
        return event.timestamp >= self.from_timestamp and (not self.types or event.type in self.types)

    @property
    def output(self) -> bool:
        """Whether any output is wanted: reading it costs a question for each attempt."""
        return not self.types or WorkEventType.OUTPUT_DATA in self.types


class Truncation:
    """Puts onto the next event that is told before which number others are no longer kept."""

    def __init__(self) -> None:
        self._before = 0

    def note(self, before: int) -> None:
        """What was told before that number is gone."""
        self._before = before

    def told(self, event: WorkEvent) -> WorkEvent:
        """The event with what was noted."""
        before, self._before = self._before, 0
        return replace(event, before=before) if before else event


def millis(iso: str) -> int:
    """ISO 8601 as milliseconds since 1970."""
    return round(datetime.fromisoformat(iso).timestamp() * 1000)
