"""JobEventsService: what workers tell of their attempts."""

from collections.abc import Iterator
from typing import Any

from rushes.domain.errors import Refused
from rushes.library import Library
from rushes.library.job_events import JobEvents, WorkEvent, WorkEventType
from rushes.remote.generated import events_pb2 as pb

TYPES: dict[int, WorkEventType] = {
    pb.JOB_EVENT_TYPE_PROCESS_START: WorkEventType.PROCESS_START,
    pb.JOB_EVENT_TYPE_OUTPUT_DATA: WorkEventType.OUTPUT_DATA,
    pb.JOB_EVENT_TYPE_PROCESS_END: WorkEventType.PROCESS_END,
    pb.JOB_EVENT_TYPE_PROCESS_ERROR: WorkEventType.PROCESS_ERROR,
}
NUMBERS = {type: number for number, type in TYPES.items()}


class EventsApi:
    """The methods of JobEventsService."""

    def __init__(self, library: Library) -> None:
        self._events = JobEvents(library.queues)

    def publish(self, requests: Iterator[pb.PublishRequest], _context: Any) -> pb.PublishResponse:
        """Keep what comes; repeats change nothing."""
        kept = sum(self._events.publish(one.task_token, map(_event, one.events)) for one in requests)
        return pb.PublishResponse(persisted=kept)

    def stream(self, request: pb.StreamRequest, context: Any) -> Iterator[pb.StreamResponse]:
        """What was told, then what comes, until the job is over."""
        types = [_type(number) for number in request.types]
        found = self._events.follow(
            request.job_id, request.from_sequence, request.from_timestamp, types, lambda: not context.is_active()
        )
        for event in found:
            told = pb.JobEvent(
                sequence=event.sequence,
                timestamp=event.timestamp,
                type=pb.JobEventType.Name(NUMBERS[event.type]),
                data=event.data,
            )
            yield pb.StreamResponse(event=told, attempt=event.attempt)


def _event(event: pb.JobEvent) -> WorkEvent:
    return WorkEvent(event.sequence, event.timestamp, _type(event.type), event.data)


def _type(number: int) -> WorkEventType:
    if number not in TYPES:
        raise Refused(f"unknown type of event: {number}")
    return TYPES[number]
