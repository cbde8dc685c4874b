"""Which results jobs want, and which may go: what only other stages read, and clips, when their days are over."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from rushes.domain.job import Job, JobState
from rushes.domain.stage import StageSpec
from rushes.domain.task import Task
from rushes.ledger.pages import all_jobs, all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import inputs_of, results_of


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """What may go, and when."""

    specs: Mapping[str, StageSpec]
    keep_days: int
    clip_days: int
    young_seconds: float = 86400.0  # an unnamed blob that is younger may belong to work in progress
    gone: frozenset[str] = frozenset()  # jobs that were deleted: they want nothing
    footage: frozenset[str] = frozenset()  # sha256s, where all that goes was made of these; none: look at every job


@dataclass(frozen=True, slots=True)
class SortedResults:
    """Results by what becomes of them: no job wants those that go any more."""

    going: frozenset[str]
    wanted: frozenset[str]


def sort_results(ledger: Ledger, owner: str, rules: RetentionRules, now: datetime) -> SortedResults:
    """Every result that a job of the owner speaks of."""
    going: set[str] = set()
    wanted: set[str] = set()
    for job in all_jobs(ledger, owner):
        if job.id in rules.gone or (rules.footage and not footage_of([job]) <= rules.footage):
            continue  # results are never shared by other footage; a job that has not read its own is looked at
        tasks = all_tasks(ledger, job.id)
        may_go = set(_passing(job, tasks, rules, now)) if job.state is JobState.COMPLETED else set()
        going |= may_go
        wanted |= {key for task in tasks for key in _wants(job, task)} - may_go
    return SortedResults(frozenset(going - wanted), frozenset(wanted))


def footage_of(jobs: Collection[Job]) -> frozenset[str]:
    """What jobs are about, as far as they have read it."""
    read = (json.loads(job.facts).get("sha256") for job in jobs if job.facts)
    return frozenset(sha256 for sha256 in read if sha256)


def _wants(job: Job, task: Task) -> Iterator[str]:
    yield from results_of(task.spec).values()
    if job.state is not JobState.COMPLETED:
        yield from inputs_of(task.spec)


def _passing(job: Job, tasks: tuple[Task, ...], rules: RetentionRules, now: datetime) -> Iterator[str]:
    days = (now - datetime.fromisoformat(job.finished_at)).days if job.finished_at else 0
    for task in tasks:
        spec = rules.specs.get(task.stage)
        intermediate = spec.intermediate if spec and days >= rules.keep_days else ()
        expiring = spec.expiring if spec and days >= rules.clip_days else ()
        yield from (key for output, key in results_of(task.spec).items() if output in (*intermediate, *expiring))
