"""What a run reports while it goes on, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rushes.domain.errors import EngineAway
from rushes.domain.job import FINAL, Job, JobState
from rushes.domain.worker import DiskSpace
from rushes.engines.models.store import ModelProgress
from rushes.jobs.intake import IntakeResult
from rushes.jobs.progress import JobProgress, StageProgress
from rushes.worker.inputs import Input, TaskFailed

__all__ = ["DiskSpace", "JobProgress", "ModelProgress", "StageProgress"]


@dataclass(frozen=True, slots=True)
class FilmsAdded:
    """The paths were submitted; the work begins."""

    results: tuple[IntakeResult, ...]


@dataclass(frozen=True, slots=True)
class JobsProgress:
    """The jobs at one moment."""

    snapshots: tuple[JobProgress, ...]
    remaining: tuple[float, float] | None = None  # seconds for all of them together


@dataclass(frozen=True, slots=True)
class StopSignal:
    """A signal (or a Spot notice, as SIGTERM) asked to stop: the first drains, the second stops at once."""

    number: int


@dataclass(frozen=True, slots=True)
class RunReport:
    """How a run ended."""

    jobs: tuple[Job, ...]
    refused: tuple[IntakeResult, ...]
    seconds: float
    before: Mapping[str, int] = field(default_factory=dict)  # jobs that were open when it began: tasks done by then
    signal: int = 0  # the signal that ended it
    due_in: float | None = None  # nothing is left but work that backs off this long
    lacks: tuple[str, ...] = ()  # nothing is left but work that needs these models
    skipped: tuple[IntakeResult, ...] = ()  # not footage, or left out on purpose
    code: int = 1  # the exit code when nothing was done: of the only file, if there was but one
    due_job: str = ""  # the job that is due then

    @property
    def worked(self) -> bool:
        """Whether there was anything to do."""
        return bool(self.before)

    @property
    def paused(self) -> tuple[Job, ...]:
        """Jobs that were paused meanwhile."""
        return tuple(j for j in self.jobs if j.paused and j.state not in FINAL)

    @property
    def exit_code(self) -> int:
        """As the table of exit codes says; 3 as soon as something was done."""
        if self.signal:
            return 128 + self.signal
        if self.due_in is not None or self.lacks or self.paused:
            return 5
        bad = [j for j in self.jobs if j.state is not JobState.COMPLETED]
        if not bad and not self.refused:
            return 0
        some = len(bad) < len(self.jobs) or any(job.facts for job in bad)
        return 3 if some else self.code


@dataclass(frozen=True, slots=True)
class EngineOutage:
    """A task found no model that answers: it waits, and so do others of its kind."""

    message: str

    @staticmethod
    def of(input: Input) -> "EngineOutage | None":
        """What a worker was told, if it is that."""
        if isinstance(input, TaskFailed) and not input.counts and input.failure.kind == EngineAway.__name__:
            return EngineOutage(input.failure.message)
        return None


RunProgress = (  # the report comes last
    ModelProgress | FilmsAdded | JobsProgress | DiskSpace | EngineOutage | StopSignal | RunReport
)
