"""Watching many jobs: what moves is seen at once, and what does not costs next to nothing."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest

from rushes.domain.job import Job, JobCommand, JobState, NewJob
from rushes.domain.task import Draft, Finish
from rushes.domain.worker import Incarnation
from rushes.jobs.progress import IN_TURN, JobsWatcher, JobWatcher, busy_seconds
from rushes.ledger.clock import wall_millis
from rushes.ledger.memory import MemoryLedger
from rushes.ledger.port import Ledger

ME = Incarnation("m.h.b.1", "h", "b", 1, "1")
SPEC = json.dumps({"results": {}, "inputs": {}, "needs": [], "span": None})


class Counting:
    """A ledger that counts what it is asked."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.asked: Counter[str] = Counter()

    def __getattr__(self, verb: str) -> Any:
        self.asked[verb] += 1
        return getattr(self._ledger, verb)


class Unknown:
    """Nothing is known of any job."""

    def left(self, _job: Job, _work: object, _measured: object) -> None:
        return None


UNKNOWN = Unknown()
FACTS = json.dumps({"duration_us": 1_000_000})


def home(jobs: int, wall: Callable[[], int] = wall_millis) -> tuple[MemoryLedger, list[str]]:
    ledger = MemoryLedger(wall=wall)
    names = [f"job_{n}" for n in range(jobs)]
    for job in names:
        first = Draft(f"{job}.probe", job, "probe", None, SPEC)
        ledger.submit(NewJob(job, "me", job, job, "recipe", "{}"), first)
    ledger.renew(ME, {}, {})
    return ledger, names


def test_a_look_at_many_jobs_asks_about_few_of_them() -> None:
    ledger, jobs = home(60)
    counting = Counting(ledger)
    watches = JobsWatcher(cast(Ledger, counting), jobs, UNKNOWN)
    watches.look()
    counting.asked.clear()
    assert [s.job.id for s in watches.look()] == jobs
    assert counting.asked["job"] <= IN_TURN


def test_what_happened_to_any_job_is_seen_by_the_next_look() -> None:
    ledger, jobs = home(60)
    watches = JobsWatcher(ledger, jobs, UNKNOWN)
    watches.look()
    (lease,) = ledger.claim(ME.id, ["cpu"], 1, [f"{jobs[50]}.probe"])
    ledger.complete(ME.id, [Finish(lease.task, lease.fence)])
    states = {s.job.id: s.job.state for s in watches.look()}
    assert states[jobs[50]] is JobState.COMPLETED


def test_every_job_has_its_turn() -> None:
    ledger, jobs = home(3 * IN_TURN)
    watches = JobsWatcher(ledger, jobs, UNKNOWN)
    watches.look()
    ledger.claim(ME.id, ["cpu"], 1, [f"{jobs[-1]}.probe"])  # a start is no event
    for _ in range(3):
        snapshots = watches.look()
    assert snapshots[-1].job.state is JobState.CHUNKING


class Asked(Unknown):
    """An estimator that keeps what it was asked."""

    left_of: dict[str, float]

    def left(self, _job: Job, work: Any, _measured: object) -> None:
        self.left_of = {id: share for id, (_, share) in work.items()}


def test_what_is_left_of_a_task_in_progress_is_the_rest_of_it() -> None:
    ledger, (job,) = home(1)
    (lease,) = ledger.claim(ME.id, ["cpu"], 1)
    parts = [Draft(f"{job}.part.{n:05d}", job, "part", n, SPEC, order=n + 1) for n in range(3)]
    ledger.draft(job, lease.task, lease.fence, parts, FACTS)
    ledger.complete(ME.id, [Finish(lease.task, lease.fence)])
    first, second = ledger.claim(ME.id, ["cpu"], 2)
    ledger.complete(ME.id, [Finish(first.task, first.fence)])
    ledger.renew(ME, {second.task: second.fence}, {second.task: 0.25})
    asked = Asked()
    JobWatcher(ledger, job, asked).look()
    assert asked.left_of == {parts[1].id: 0.75, parts[2].id: 1.0}


def test_what_is_made_again_is_not_done() -> None:
    ledger, (job,) = home(1)
    (lease,) = ledger.claim(ME.id, ["cpu"], 1)
    ledger.draft(job, lease.task, lease.fence, [], FACTS)
    ledger.complete(ME.id, [Finish(lease.task, lease.fence)])
    watch = JobWatcher(ledger, job, UNKNOWN)
    assert [(s.done, s.total) for s in watch.look().stages] == [(1, 1)]
    ledger.revive(job, [lease.task], again=True)
    assert [(s.done, s.total) for s in watch.look().stages] == [(0, 1)]
    assert [(s.done, s.total) for s in JobWatcher(ledger, job, UNKNOWN).look().stages] == [(0, 1)]


def test_a_job_that_was_deleted_and_asked_for_again_is_seen_from_its_beginning() -> None:
    now = wall_millis()
    ledger, (job,) = home(1, lambda: now)

    def work() -> None:
        (lease,) = ledger.claim(ME.id, ["cpu"], 1)
        ledger.draft(job, lease.task, lease.fence, [], FACTS)
        ledger.complete(ME.id, [Finish(lease.task, lease.fence)])

    work()
    watch = JobWatcher(ledger, job, UNKNOWN)
    assert [(s.done, s.total) for s in watch.look().stages] == [(1, 1)]
    ledger.control(job, JobCommand.FORGET)
    now += 1
    ledger.submit(NewJob(job, "me", job, job, "recipe", "{}"), Draft(f"{job}.probe", job, "probe", None, SPEC))
    assert watch.look().stages == ()
    work()
    assert [(s.done, s.total) for s in watch.look().stages] == [(1, 1)]


def test_a_job_whose_old_events_are_gone_is_seen_with_all_that_is_done() -> None:
    ledger, (job,) = home(1)
    (lease,) = ledger.claim(ME.id, ["cpu"], 1)
    ledger.draft(job, lease.task, lease.fence, [Draft(f"{job}.join", job, "join", None, SPEC)], FACTS)
    ledger.complete(ME.id, [Finish(lease.task, lease.fence)])
    (lease,) = ledger.claim(ME.id, ["cpu"], 1)
    ledger.complete(ME.id, [Finish(lease.task, lease.fence)])
    ledger.control(job, JobCommand.TRIM, 0)
    stages = {stage.stage: stage.done for stage in JobWatcher(ledger, job, UNKNOWN).look().stages}
    assert stages == {"probe": 1, "join": 1}


def test_the_time_between_a_run_and_its_repair_is_no_work() -> None:
    day = 86_400.0
    assert busy_seconds([(10.0, 20.0), (15.0, 25.0), (12.0, 13.0), (day, day + 5.0)]) == 20.0
    assert busy_seconds([]) == 0.0


def test_a_job_counts_the_time_in_which_its_tasks_ran() -> None:
    now = [1_000_000]
    ledger, (job,) = home(1, lambda: now[0])
    (lease,) = ledger.claim(ME.id, ["cpu"], 1)
    ledger.draft(job, lease.task, lease.fence, [], FACTS)
    ledger.complete(ME.id, [Finish(lease.task, lease.fence, seconds=2.5)])
    now[0] += 86_400_000
    ledger.revive(job, [lease.task], again=True)
    (lease,) = ledger.claim(ME.id, ["cpu"], 1)
    ledger.complete(ME.id, [Finish(lease.task, lease.fence, seconds=1.5)])
    assert JobWatcher(ledger, job, UNKNOWN).look().worked == pytest.approx(4.0)
