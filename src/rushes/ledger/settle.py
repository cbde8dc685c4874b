"""What changes mean: a job's state and the events that it owes, and when a lost task is lost for good."""

from rushes.domain.errors import KillsItsWorker
from rushes.domain.event import EventType
from rushes.domain.job import FINAL, Counts, JobState, job_state
from rushes.domain.keys import JSON
from rushes.domain.task import MAX_LOSSES, Failure

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


def worn_out(losses: int) -> Failure | None:
    """Why a task that lost its worker that many times is dead; None while it may be tried again."""
    if losses < MAX_LOSSES:
        return None
    message = f"it lost its worker {losses} times"
    return Failure(KillsItsWorker.__name__, message, KillsItsWorker.hint, KillsItsWorker.verdict)
