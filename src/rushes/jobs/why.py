"""Why a task is not running: every answer comes from a closed list."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rushes.domain.job import Job, JobState
from rushes.domain.task import Task, TaskState
from rushes.domain.worker import ENGINE_AWAY, GPU_LANE, NOW, Worker, lanes_of, queue_of, site_of
from rushes.ledger.pages import all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.planner import needs_of

_START_ENGINE = "start one with rushes ml, or check the setting inference; work resumes automatically"


class Reason(StrEnum):
    """Everything that can keep a task from running."""

    PAUSED = "the job is paused"
    CANCELLED = "the job is cancelled"
    STAGE_CANCELLED = "its stage is cancelled"
    DEAD = "failed for good"
    NEED_IS_DEAD = "a task it needs has failed"
    NEEDS_WORK = "needs other tasks first"
    NEEDS_FILE = "its file has not arrived"
    BACKS_OFF = "waiting to retry after a failure"
    ANSWER_PENDING = "waiting for the answer of an asynchronous endpoint"
    ENGINE_AWAY = ENGINE_AWAY
    NO_WORKER = "no worker takes its lane"
    WORKERS_DRAIN = "every worker is draining"
    DISK_FULL = "the disk is full"
    NO_FREE_SLOT = "no free slot"
    NO_MODEL = "its model is missing on this machine"
    NEXT = "next in line"


@dataclass(frozen=True, slots=True)
class WaitReason:
    """Some tasks of one stage, the reason they share, and what a person should know."""

    reason: Reason
    stage: str
    tasks: int
    detail: str


def why(ledger: Ledger, job: Job) -> tuple[WaitReason, ...]:
    """Why each unfinished task of a job that is not running does not run, grouped."""
    tasks = all_tasks(ledger, job.id)
    workers = ledger.workers()
    by_id = {t.id: t for t in tasks}
    groups: Counter[tuple[Reason, str, str]] = Counter()
    for task in tasks:
        if task.state not in (TaskState.DONE, TaskState.LEASED):
            reason, detail = reason_of(task, job, by_id, workers)
            groups[(reason, task.stage, detail)] += 1
    return tuple(WaitReason(reason, stage, n, detail) for (reason, stage, detail), n in groups.items())


def reason_of(task: Task, job: Job, tasks: Mapping[str, Task], workers: Sequence[Worker]) -> tuple[Reason, str]:
    """The one reason why this task is not running, and its detail."""
    if task.state is TaskState.DEAD:
        return Reason.DEAD, f"{task.failure.kind}: {task.failure.message}" if task.failure else ""
    if task.state is TaskState.CANCELLED:
        whole = job.state is JobState.CANCELLED
        again = f"rushes jobs retry {job.id}"
        return (Reason.CANCELLED, again) if whole else (Reason.STAGE_CANCELLED, f"{again} --stage {task.stage}")
    if job.paused:
        return Reason.PAUSED, f"rushes jobs resume {job.id}"
    if task.state is TaskState.WAITING:
        return _waits(task, tasks)
    if task.awaits_answer:
        return _not_answered(workers)
    if task.due_in:
        kind = task.failure.kind if task.failure else ""
        return Reason.BACKS_OFF, f"{task.due_in:.0f} s, then attempt {task.failures + 1} of 4 ({kind})"
    return _queued(task, workers)


def _waits(task: Task, tasks: Mapping[str, Task]) -> tuple[Reason, str]:
    needs = [tasks[n] for n in needs_of(task.spec) if n in tasks]
    dead = [n.stage for n in needs if n.state is TaskState.DEAD]
    if dead:
        return Reason.NEED_IS_DEAD, f"{', '.join(sorted(set(dead)))}: rushes failed ls"
    left = Counter(n.stage for n in needs if n.state is not TaskState.DONE)
    if not left:
        return Reason.NEEDS_FILE, "it starts when the upload is complete"
    return Reason.NEEDS_WORK, ", ".join(f"{stage} ({n} left)" for stage, n in sorted(left.items()))


def _not_answered(workers: Sequence[Worker]) -> tuple[Reason, str]:
    if any(w.note == ENGINE_AWAY for w in workers if w.alive):
        return Reason.ENGINE_AWAY, _START_ENGINE
    return Reason.ANSWER_PENDING, "it continues when the answer arrives"


def _queued(task: Task, workers: Sequence[Worker]) -> tuple[Reason, str]:
    if (queue := queue_of(task.lane)) != task.lane:
        return Reason.NEXT, f"a program takes it from the queue {queue}"
    takers = [w for w in workers if w.alive and task.lane in (*lanes_of(w, workers), *NOW)]
    if not takers and (site := site_of(task.lane)):
        return Reason.NO_WORKER, f"its file is on {site}: start a worker there, or add it again with --upload"
    if not takers:
        return Reason.NO_WORKER, f"lane {task.lane}: start one with rushes worker, or rushes run"
    if all(w.draining or w.note.startswith("draining") for w in takers):
        return Reason.WORKERS_DRAIN, "start another worker"
    if all(w.note == "disk full" for w in takers):
        return Reason.DISK_FULL, "free some space; work resumes automatically"
    if task.lane.partition("@")[0] == GPU_LANE and all(w.note == ENGINE_AWAY for w in takers):
        return Reason.ENGINE_AWAY, _START_ENGINE
    slots, busy = sum(w.incarnation.slots for w in takers), sum(len(w.held) for w in takers)
    if busy >= slots:
        return Reason.NO_FREE_SLOT, f"{busy} of {slots} in lane {task.lane} busy"
    return Reason.NEXT, "a worker takes it within seconds"
