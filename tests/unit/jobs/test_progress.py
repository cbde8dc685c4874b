"""Watching many jobs: what moves is seen at once, and what does not costs next to nothing."""

import json
from collections import Counter
from typing import Any, cast

from rushes.domain.job import JobCommand, JobState, NewJob
from rushes.domain.task import Draft, Finish
from rushes.domain.worker import Incarnation
from rushes.jobs.progress import IN_TURN, JobsWatcher, JobWatcher
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


FACTS = json.dumps({"duration_us": 1_000_000})


def home(jobs: int) -> tuple[MemoryLedger, list[str]]:
    ledger = MemoryLedger()
    names = [f"job_{n}" for n in range(jobs)]
    for job in names:
        first = Draft(f"{job}.probe", job, "probe", None, SPEC)
        ledger.submit(NewJob(job, "me", job, job, "recipe", "{}"), first)
    ledger.renew(ME, {}, {})
    return ledger, names


def test_a_look_at_many_jobs_asks_about_few_of_them() -> None:
    ledger, jobs = home(60)
    counting = Counting(ledger)
    watches = JobsWatcher(cast(Ledger, counting), jobs, 2)
    watches.look()
    counting.asked.clear()
    assert [s.job.id for s in watches.look()] == jobs
    assert counting.asked["job"] <= IN_TURN


def test_what_happened_to_any_job_is_seen_by_the_next_look() -> None:
    ledger, jobs = home(60)
    watches = JobsWatcher(ledger, jobs, 2)
    watches.look()
    (lease,) = ledger.claim(ME.id, ["cpu"], 1, [f"{jobs[50]}.probe"])
    ledger.complete(ME.id, [Finish(lease.task, lease.fence)])
    states = {s.job.id: s.job.state for s in watches.look()}
    assert states[jobs[50]] is JobState.COMPLETED


def test_every_job_has_its_turn() -> None:
    ledger, jobs = home(3 * IN_TURN)
    watches = JobsWatcher(ledger, jobs, 2)
    watches.look()
    ledger.claim(ME.id, ["cpu"], 1, [f"{jobs[-1]}.probe"])  # a start is no event
    for _ in range(3):
        snapshots = watches.look()
    assert snapshots[-1].job.state is JobState.CHUNKING


def test_what_is_made_again_is_not_done_and_at_the_end_nothing_is_left() -> None:
    ledger, (job,) = home(1)
    (lease,) = ledger.claim(ME.id, ["cpu"], 1)
    ledger.draft(job, lease.task, lease.fence, [], FACTS)
    ledger.complete(ME.id, [Finish(lease.task, lease.fence)])
    watch = JobWatcher(ledger, job, 2)
    assert [(s.done, s.total) for s in watch.look().stages] == [(1, 1)]
    assert watch.look().remaining == (0.0, 0.0)
    ledger.revive(job, [lease.task], again=True)
    assert [(s.done, s.total) for s in watch.look().stages] == [(0, 1)]
    assert [(s.done, s.total) for s in JobWatcher(ledger, job, 2).look().stages] == [(0, 1)]


def test_a_job_whose_old_events_are_gone_is_seen_with_all_that_is_done() -> None:
    ledger, (job,) = home(1)
    (lease,) = ledger.claim(ME.id, ["cpu"], 1)
    ledger.draft(job, lease.task, lease.fence, [Draft(f"{job}.join", job, "join", None, SPEC)], FACTS)
    ledger.complete(ME.id, [Finish(lease.task, lease.fence)])
    (lease,) = ledger.claim(ME.id, ["cpu"], 1)
    ledger.complete(ME.id, [Finish(lease.task, lease.fence)])
    ledger.control(job, JobCommand.TRIM, 0)
    stages = {stage.stage: stage.done for stage in JobWatcher(ledger, job, 1).look().stages}
    assert stages == {"probe": 1, "join": 1}
