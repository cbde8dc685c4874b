"""The contract of the ledger, part five: what tasks add up to."""

from ledger_kit import BROKEN, OWNER, Backend, claim, done, film, new_job, opened, worker

from rushes.domain.job import JobCommand
from rushes.ledger.port import Ledger, StageCount

ONE, TWO = new_job("one"), new_job("two")


def counted(ledger: Ledger, *jobs: str) -> dict[str, StageCount]:
    return {count.stage: count for count in ledger.counts(jobs)}


def test_what_is_ready_is_counted_by_lane_and_stage_with_the_age_of_the_oldest(
    backend: Backend, ledger: Ledger
) -> None:
    assert ledger.counts() == ()
    opened(ledger, ONE, film(ONE))
    backend.clock.advance(100)
    opened(ledger, TWO, film(TWO))
    backend.clock.advance(20)
    before = counted(ledger)
    ready = [task for job in (ONE, TWO) for task in ledger.tasks(job.id).rows if task.state == "ready"]
    assert {(c.lane, c.stage): c.ready for c in before.values()} == {
        (lane, stage): sum((t.lane, t.stage) == (lane, stage) for t in ready)
        for lane, stage in {(t.lane, t.stage) for t in ready}
    }
    assert before[ready[0].stage].oldest_seconds == 120
    assert all(c == StageCount(c.lane, c.stage, c.ready, c.oldest_seconds) for c in before.values())
    worker(ledger)
    taken = claim(ledger, n=1)[0]
    assert counted(ledger)[taken.stage].ready == before[taken.stage].ready - 1


def test_what_cannot_be_claimed_now_is_not_ready(backend: Backend, ledger: Ledger) -> None:
    opened(ledger, ONE, film(ONE))
    ledger.control(ONE.id, JobCommand.PAUSE)
    assert sum(c.ready for c in ledger.counts()) == 0
    ledger.control(ONE.id, JobCommand.RESUME)
    worker(ledger)
    for lease in claim(ledger, n=10):
        ledger.fail("w1", lease.task, lease.fence, BROKEN, 60.0)
    assert sum(c.ready for c in ledger.counts()) == 0


def test_attempts_of_some_jobs_are_added_up_by_stage(backend: Backend, ledger: Ledger) -> None:
    opened(ledger, ONE, film(ONE))
    opened(ledger, TWO, film(TWO))
    worker(ledger)
    before = counted(ledger, ONE.id)
    mine = [lease for lease in claim(ledger, n=20) if lease.job == ONE.id]
    stage = mine[0].stage
    mine = [lease for lease in mine if lease.stage == stage]
    assert len(mine) >= 3, "the film has chunks enough"
    ledger.fail("w1", mine[0].task, mine[0].fence, BROKEN, 0.0)
    ledger.fail("w1", mine[1].task, mine[1].fence, BROKEN, None)
    backend.clock.advance(2)
    ledger.complete("w1", [done(mine[2])])
    found = counted(ledger, ONE.id)[stage]
    assert (found.failures, found.retries, found.dead) == (2, 1, 1)
    assert (found.done, found.seconds) == (before[stage].done + 1, before[stage].seconds + 2)
    both = counted(ledger, ONE.id, TWO.id, "job_nowhere")
    assert both[stage].failures == 2
    assert sum(c.dead for c in counted(ledger, TWO.id).values()) == 0
    assert ledger.jobs(OWNER, ids=[ONE.id]).rows[0].counts.failures == 2


def test_a_worker_that_is_lost_counts_as_a_loss_of_its_stage(backend: Backend, ledger: Ledger) -> None:
    opened(ledger, ONE, film(ONE))
    worker(ledger)
    lease = claim(ledger, n=1)[0]
    backend.gone.add("w1")
    backend.clock.advance(3600)
    for _ in range(2):
        ledger.sweep()
        backend.clock.advance(3600)
    found = counted(ledger, ONE.id)[lease.stage]
    assert (found.losses, found.failures) == (1, 0)
