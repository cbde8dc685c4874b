"""What a change of a job's counters means: its state, and the events that a change of state owes."""

from rushes.domain.event import EventType
from rushes.domain.job import FINAL, Counts, JobState, job_state
from rushes.domain.keys import JSON

Told = tuple[EventType, dict[str, JSON]]


def settled(
    before: JobState, counts: Counts, *, opened: bool, chunking: bool, cancelled: bool
) -> tuple[JobState, Told | None]:
    """The state now, and the event that says so when a final state was entered or left."""
    now = job_state(counts, opened=opened, chunking=chunking, cancelled=cancelled)
    if now in FINAL and now is not before:
        return now, (EventType.FINISHED, {"state": now.value})
    if before in FINAL and now not in FINAL:
        return now, (EventType.REVIVED, {"state": before.value})
    return now, None
