"""JobEventsService: what workers tell of their attempts, and what is told of ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushes.domain.errors import Refused
from rushes.library import Library
from rushes.library.job_events import EventFilter, EventPublisher, WorkEvent, WorkEventType, follow, watch
from rushes.metrics import PROCESS
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
        self._home, self._publisher = library.home, EventPublisher(library.queues)

    def publish(self, requests: Iterator[pb.PublishRequest], _context: Any) -> pb.PublishResponse:
        """Keep what comes; repeats change nothing."""
        kept = sum(self._publisher.publish(one.task_token, map(_event, one.events)) for one in requests)
        return pb.PublishResponse(persisted=kept)

    def stream(self, request: pb.StreamRequest, context: Any) -> Iterator[pb.StreamResponse]:
        """What was told, then what comes, until the job is over."""
        wanted = EventFilter(request.from_timestamp, [_type(number) for number in request.types])
        found = watch(self._home, request.job_id, request.from_sequence, wanted, request.from_attempt)
        with _streaming():
            yield from map(_told, follow(found, context.is_active))


@contextmanager
def _streaming() -> Iterator[None]:
    """Counted as open meanwhile."""
    PROCESS.add("rushes_streams_active", protocol="grpc")
    try:
        yield
    finally:
        PROCESS.add("rushes_streams_active", -1, protocol="grpc")


def _told(event: WorkEvent) -> pb.StreamResponse:
    type = pb.JobEventType.Name(NUMBERS[event.type])
    told = pb.JobEvent(sequence=event.sequence, timestamp=event.timestamp, type=type, data=event.data)
    return pb.StreamResponse(
        event=told, attempt=event.attempt, task_id=event.task, number=event.number, truncated_before=event.before
    )


def _event(event: pb.JobEvent) -> WorkEvent:
    return WorkEvent(event.sequence, event.timestamp, _type(event.type), event.data)


def _type(number: int) -> WorkEventType:
    if number not in TYPES:
        raise Refused(f"unknown type of event: {number}")
    return TYPES[number]
