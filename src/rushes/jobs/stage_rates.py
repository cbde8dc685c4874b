"""How often each stage fails and is tried again, and how long it takes, in the newest jobs."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean

from rushes.domain.grouping import grouped
from rushes.domain.task import Task, TaskState
from rushes.home import Home
from rushes.ledger.pages import all_tasks

JOBS = 20  # newest ones that are looked at


@dataclass(frozen=True, slots=True)
class StageRates:
    """One stage: its attempts that ended, how many of them failed and were tried again; seconds of one that worked."""

    stage: str
    attempts: int
    failures: int
    retries: int
    dead: int
    failure_rate: float  # of attempts
    retry_rate: float
    seconds: float | None


def stage_rates(home: Home, jobs: int = JOBS) -> tuple[StageRates, ...]:
    """The rates of every stage of the owner's newest jobs, most failures first."""
    rows = home.ledger.jobs(home.owner, limit=jobs).rows
    tasks = grouped((task for job in rows for task in all_tasks(home.ledger, job.id)), lambda task: task.stage)
    found = (_rates(stage, some) for stage, some in tasks.items())
    return tuple(sorted((r for r in found if r.attempts), key=lambda r: (-r.failure_rate, r.stage)))


def _rates(stage: str, tasks: Iterable[Task]) -> StageRates:
    rows = list(tasks)
    done = [task for task in rows if task.state is TaskState.DONE and not task.adopted]
    failures, dead = sum(task.failures for task in rows), sum(task.state is TaskState.DEAD for task in rows)
    attempts, retries = failures + len(done), sum(max(0, t.failures - (t.state is TaskState.DEAD)) for t in rows)
    failure_rate, retry_rate = (round(n / attempts, 4) if attempts else 0.0 for n in (failures, retries))
    times = [_seconds(task) for task in done if task.started_at and task.finished_at]
    seconds = round(fmean(times), 3) if times else None
    return StageRates(stage, attempts, failures, retries, dead, failure_rate, retry_rate, seconds)


def _seconds(task: Task) -> float:
    start, end = (datetime.fromisoformat(at or "") for at in (task.started_at, task.finished_at))
    return max(0.0, (end - start).total_seconds())
