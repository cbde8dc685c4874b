"""What is told of the attempts at a job: by workers that are not ours, and by our own slots."""

from rushes.library.job_events.publishing import BATCH, MOST_EVENTS, EventPublisher
from rushes.library.job_events.watching import EventWatch, follow, next_pause, read_place, watch
from rushes.library.job_events.work_event import EventFilter, WorkEvent, WorkEventType, millis

__all__ = ["BATCH", "MOST_EVENTS", "EventFilter", "EventPublisher", "EventWatch", "WorkEvent", "WorkEventType",
           "follow", "millis", "next_pause", "read_place", "watch"]  # fmt: skip
