"""The contract of the ledger, part three: commands, revival, log lines, lists."""

from dataclasses import replace

import pytest
from ledger_kit import (
    BROKEN,
    OWNER,
    Backend,
    claim,
    done,
    film,
    first_of,
    new_job,
    opened,
    picture,
    result,
    who,
    worker,
)

from rushes.domain.errors import NotFound, Refused
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, JobState
from rushes.domain.result import Result
from rushes.domain.task import LeaseStatus, TaskState, Verdict
from rushes.ledger.port import Ledger

E = EventType
NEW = new_job()
PLAN = film(NEW)


@pytest.fixture
def ledger(backend: Backend) -> Ledger:
    ledger = backend.open()
    opened(ledger, NEW, PLAN)
    worker(ledger)
    return ledger


def types(ledger: Ledger) -> list[EventType]:
    return [event.type for event in ledger.events(NEW.id)]


def seen(ledger: Ledger) -> list[TaskState]:
    return [task.state for task in ledger.tasks(NEW.id).rows]


def kill(ledger: Ledger, n: int = 1) -> None:
    for lease in claim(ledger, n=n):
        ledger.fail("w1", lease.task, lease.fence, BROKEN, None)


def finish(ledger: Ledger) -> None:
    while leases := claim(ledger, n=10):
        ledger.complete("w1", [done(lease) for lease in leases])


# Pause and resume
def test_a_paused_job_starts_nothing_and_a_resumed_one_goes_on(ledger: Ledger) -> None:
    job = ledger.control(NEW.id, JobCommand.PAUSE)
    assert job is not None
    assert (job.paused, job.state) == (True, JobState.RUNNING)
    assert claim(ledger, n=5) == ()
    assert ledger.sweep().ready == ()
    assert all(task.parked for task in ledger.tasks(NEW.id, TaskState.READY).rows)
    ledger.control(NEW.id, JobCommand.RESUME)
    assert not any(task.parked for task in ledger.tasks(NEW.id).rows)
    assert len(claim(ledger, n=5)) == 3
    assert types(ledger)[-2:] == [E.PAUSED, E.RESUMED]


def test_a_paused_job_still_commits_and_what_becomes_ready_is_parked(ledger: Ledger) -> None:
    leases = claim(ledger, n=3)
    ledger.control(NEW.id, JobCommand.PAUSE)
    completed = ledger.complete("w1", [done(lease) for lease in leases])
    assert (completed.verdicts, completed.ready) == ((Verdict.OK,) * 3, ())
    assert ledger.tasks(NEW.id, stage="join").rows[0].parked
    assert claim(ledger) == ()
    ledger.control(NEW.id, JobCommand.RESUME)
    finish(ledger)
    assert ledger.job(NEW.id).state is JobState.COMPLETED


def test_a_plan_opened_while_its_job_is_paused_is_born_parked(backend: Backend) -> None:
    ledger = backend.open()
    worker(ledger)
    ledger.submit(NEW, first_of(NEW))
    (probe,) = claim(ledger)
    ledger.draft(NEW.id, probe.task, probe.fence, PLAN, "")
    ledger.control(NEW.id, JobCommand.PAUSE)
    assert ledger.complete("w1", [done(probe)]).ready == ()
    assert claim(ledger, n=5) == ()


def test_a_pause_lets_running_tasks_finish_and_pause_now_takes_them_back(ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    holding = {lease.task: lease.fence}
    ledger.control(NEW.id, JobCommand.PAUSE)
    assert ledger.renew(who(), holding, {}).leases == {lease.task: LeaseStatus.KEEP}
    ledger.control(NEW.id, JobCommand.PAUSE_NOW)
    assert ledger.renew(who(), holding, {}).leases == {lease.task: LeaseStatus.GIVE_BACK}
    ledger.give_back("w1", [(lease.task, lease.fence)], "paused")
    assert claim(ledger, n=5) == ()
    ledger.control(NEW.id, JobCommand.RESUME)
    assert len(claim(ledger, n=5)) == 3


def test_a_failure_in_a_paused_job_is_parked_until_it_is_resumed(backend: Backend, ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    ledger.control(NEW.id, JobCommand.PAUSE)
    ledger.fail("w1", lease.task, lease.fence, BROKEN, 60.0)
    assert ledger.sweep().next_due is None
    backend.clock.advance(61)
    assert lease.task not in ledger.sweep().ready
    ledger.control(NEW.id, JobCommand.RESUME)
    assert lease.task in ledger.sweep().ready


@pytest.mark.parametrize(
    "command", [JobCommand.PAUSE, JobCommand.PAUSE_NOW, JobCommand.RESUME, JobCommand.PRIORITY, JobCommand.CANCEL]
)
def test_a_command_repeated_changes_nothing(ledger: Ledger, command: JobCommand) -> None:
    ledger.control(NEW.id, command, 7)
    before = picture(ledger, NEW.id)
    ledger.control(NEW.id, command, 7)
    assert picture(ledger, NEW.id) == before


def test_the_last_task_of_a_paused_job_completes_it(ledger: Ledger) -> None:
    ledger.complete("w1", [done(lease) for lease in claim(ledger, n=3)])
    (join,) = claim(ledger)
    ledger.control(NEW.id, JobCommand.PAUSE)
    ledger.complete("w1", [done(join)])
    job = ledger.job(NEW.id)
    assert (job.state, job.paused) == (JobState.COMPLETED, False)


# Cancel
def test_a_cancelled_job_commits_nothing_more(ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    job = ledger.control(NEW.id, JobCommand.CANCEL)
    assert job is not None
    assert (job.state, job.finished_at is not None) == (JobState.CANCELLED, True)
    assert ledger.complete("w1", [done(lease, result("a"))]).verdicts == (Verdict.CANCELLED,)
    assert ledger.known(OWNER, ["a-key"]) == {}
    assert claim(ledger, n=5) == ()
    assert ledger.sweep().ready == ()
    assert types(ledger)[-2:] == [E.CANCELLED, E.FINISHED]
    assert seen(ledger) == [TaskState.DONE, *[TaskState.CANCELLED] * 4]


def test_what_was_done_before_a_cancel_stays_done(ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    ledger.complete("w1", [done(lease)])
    ledger.control(NEW.id, JobCommand.CANCEL)
    assert seen(ledger)[:2] == [TaskState.DONE, TaskState.DONE]
    assert ledger.complete("w1", [done(lease)]).verdicts == (Verdict.OK,)


def test_a_dead_worker_of_a_cancelled_job_loses_nothing(backend: Backend, ledger: Ledger) -> None:
    claim(ledger)
    ledger.control(NEW.id, JobCommand.CANCEL)
    before = ledger.events(NEW.id)
    backend.gone.add("w1")
    assert ledger.sweep().released == 0
    assert ledger.events(NEW.id) == before


def test_a_cancelled_job_goes_on_when_it_is_revived(ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    ledger.control(NEW.id, JobCommand.CANCEL)
    assert ledger.revive(NEW.id) == ()
    assert ledger.job(NEW.id).state is JobState.RUNNING
    assert types(ledger)[-1] is E.REVIVED
    assert ledger.complete("w1", [done(lease)]).verdicts == (Verdict.LOST,)
    finish(ledger)
    assert ledger.job(NEW.id).state is JobState.COMPLETED


@pytest.mark.parametrize("command", [JobCommand.PAUSE, JobCommand.PAUSE_NOW, JobCommand.RESUME, JobCommand.CANCEL])
def test_a_finished_job_takes_no_commands(ledger: Ledger, command: JobCommand) -> None:
    finish(ledger)
    before = picture(ledger, NEW.id)
    with pytest.raises(Refused, match=f"job {NEW.id} is completed") as refused:
        ledger.control(NEW.id, command)
    assert "rushes jobs retry" in refused.value.advice
    assert picture(ledger, NEW.id) == before


def test_the_priority_of_a_finished_job_is_ignored(ledger: Ledger) -> None:
    finish(ledger)
    before = picture(ledger, NEW.id)
    job = ledger.control(NEW.id, JobCommand.PRIORITY, 9)
    assert job is not None
    assert job.priority == 0
    assert picture(ledger, NEW.id) == before


def test_a_command_to_nobody_is_not_found(ledger: Ledger) -> None:
    for command in JobCommand:
        with pytest.raises(NotFound, match=r"no (job|worker) job_nobody") as refused:
            ledger.control("job_nobody", command)
        assert refused.value.advice.startswith("List ")
    with pytest.raises(NotFound):
        ledger.revive("job_nobody")
    with pytest.raises(NotFound):
        ledger.job("job_nobody")


def test_a_new_priority_changes_the_order_of_claims(ledger: Ledger) -> None:
    young = new_job("young")
    opened(ledger, young, film(young, 2))
    ledger.control(young.id, JobCommand.PRIORITY, 1)
    assert [lease.job for lease in claim(ledger, n=3)] == [young.id, young.id, NEW.id]
    assert ledger.events(young.id)[-1].data == {"priority": 1}


# Workers
def test_a_worker_told_to_drain_claims_nothing(ledger: Ledger) -> None:
    assert ledger.control("w1", JobCommand.DRAIN) is None
    assert claim(ledger) == ()
    assert ledger.renew(who(), {}, {}, "draining").drain
    (mine,) = (w for w in ledger.workers() if w.incarnation.id == "w1")
    assert (mine.alive, mine.draining, mine.note) == (True, True, "draining")


def test_a_worker_that_left_is_gone(ledger: Ledger) -> None:
    ledger.control("w1", JobCommand.LEAVE)
    ledger.control("w1", JobCommand.LEAVE)
    assert [w.incarnation.id for w in ledger.workers()] == ["opener"]
    assert ledger.renew(who(), {}, {}).gone


def test_what_a_worker_left_behind_is_found_by_the_next_sweep(ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    ledger.control("w1", JobCommand.LEAVE)
    assert ledger.sweep().released == 1
    worker(ledger, "w2")
    assert claim(ledger, "w2")[0].task == lease.task


def test_workers_are_seen_with_what_they_hold(backend: Backend, ledger: Ledger) -> None:
    leases = claim(ledger, n=2)
    backend.clock.advance(10)
    ledger.renew(who(), {lease.task: lease.fence for lease in leases}, {leases[0].task: 0.25}, "disk full")
    backend.clock.advance(21)
    opener, mine = ledger.workers()
    assert (opener.alive, opener.lease_left) == (False, 0.0)
    assert (mine.incarnation, mine.alive, mine.lease_left, mine.note) == (who(), True, 9.0, "disk full")
    assert mine.held == tuple(lease.task for lease in leases)
    assert ledger.tasks(ids=[leases[0].task]).rows[0].progress == 0.25


# Revival
def test_dead_tasks_are_revived_with_fresh_tries(ledger: Ledger) -> None:
    kill(ledger, 3)
    assert ledger.job(NEW.id).state is JobState.FAILED
    assert ledger.revive(NEW.id) == tuple(d.id for d in PLAN[:3])
    job = ledger.job(NEW.id)
    assert (job.state, job.counts.dead, job.counts.live, job.finished_at) == (JobState.RUNNING, 0, 3, None)
    assert [e.task for e in ledger.events(NEW.id, types={E.REVIVED})] == [*(d.id for d in PLAN[:3]), None]
    assert claim(ledger)[0].failures == 0
    assert ledger.revive(NEW.id) == ()


def test_a_revival_can_mean_some_tasks_or_one_stage(ledger: Ledger) -> None:
    kill(ledger, 3)
    assert ledger.revive(NEW.id, [PLAN[1].id, PLAN[3].id, "ghost"]) == (PLAN[1].id,)
    assert ledger.revive(NEW.id, stages=["join"]) == ()
    assert ledger.revive(NEW.id, stages=["develop"]) == (PLAN[0].id, PLAN[2].id)


def test_a_revival_of_nothing_changes_nothing(ledger: Ledger) -> None:
    before = picture(ledger, NEW.id)
    assert ledger.revive(NEW.id) == ()
    assert picture(ledger, NEW.id) == before


def test_a_revival_ends_a_back_off_and_keeps_its_tries(ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    ledger.fail("w1", lease.task, lease.fence, BROKEN, 60)
    told = types(ledger)
    assert ledger.revive(NEW.id, stages=["join"]) == ()
    assert ledger.revive(NEW.id, again=True, stages=["develop"]) == ()
    assert ledger.tasks(ids=[lease.task]).rows[0].due_in == 60.0
    assert ledger.revive(NEW.id) == (lease.task,)
    assert types(ledger) == told
    (next_try,) = claim(ledger, hinted=[lease.task])
    assert (next_try.fence, next_try.failures) == (2, 1)
    assert ledger.sweep().next_due is None


def test_a_back_off_ended_in_a_paused_job_waits_for_the_job_only(ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    ledger.fail("w1", lease.task, lease.fence, BROKEN, 60)
    ledger.control(NEW.id, JobCommand.PAUSE)
    assert ledger.revive(NEW.id) == (lease.task,)
    assert claim(ledger, n=5) == ()
    ledger.control(NEW.id, JobCommand.RESUME)
    assert lease.task in [another.task for another in claim(ledger, n=5)]


def test_a_repair_leaves_a_cancelled_job_alone(ledger: Ledger) -> None:
    ledger.complete("w1", [done(lease) for lease in claim(ledger)])
    ledger.control(NEW.id, JobCommand.CANCEL)
    before = picture(ledger, NEW.id)
    assert ledger.revive(NEW.id, again=True) == ()
    assert picture(ledger, NEW.id) == before


def test_a_task_revived_in_a_paused_job_is_parked(ledger: Ledger) -> None:
    kill(ledger)
    ledger.control(NEW.id, JobCommand.PAUSE)
    assert ledger.revive(NEW.id) == (PLAN[0].id,)
    assert claim(ledger, n=5) == ()
    ledger.control(NEW.id, JobCommand.RESUME)
    assert len(claim(ledger, n=5)) == 3


def test_what_is_done_can_be_done_again_in_order(ledger: Ledger) -> None:
    finish(ledger)
    assert ledger.revive(NEW.id, [PLAN[0].id, PLAN[3].id], again=True) == (PLAN[0].id, PLAN[3].id)
    job = ledger.job(NEW.id)
    assert (job.state, job.counts.done, job.counts.live) == (JobState.RUNNING, 3, 1)
    (part,) = claim(ledger, n=5)  # the join waits for the chunk that is done again
    assert (part.task, part.fence) == (PLAN[0].id, 2)
    assert ledger.complete("w1", [done(part)]).ready == (PLAN[3].id,)
    finish(ledger)
    assert ledger.job(NEW.id).state is JobState.COMPLETED
    assert types(ledger).count(E.FINISHED) == 2


def test_a_chunk_that_is_done_again_leaves_finished_work_alone(ledger: Ledger) -> None:
    finish(ledger)
    ledger.revive(NEW.id, [PLAN[0].id], again=True)
    (part,) = claim(ledger, n=5)
    assert ledger.complete("w1", [done(part)]).ready == ()
    assert ledger.job(NEW.id).state is JobState.COMPLETED


def test_who_has_not_begun_waits_for_a_task_that_is_done_again(ledger: Ledger) -> None:
    ledger.complete("w1", [done(lease) for lease in claim(ledger, n=3)])
    ledger.revive(NEW.id, [PLAN[1].id], again=True)
    assert ledger.tasks(NEW.id, stage="join").rows[0].state is TaskState.WAITING
    assert [lease.task for lease in claim(ledger, n=5)] == [PLAN[1].id]


def test_of_those_that_were_done_together_one_is_done_again_and_the_others_stay_done(ledger: Ledger) -> None:
    leases = claim(ledger, n=3)
    ledger.complete("w1", [done(lease) for lease in leases])
    before = ledger.tasks(NEW.id, stage=leases[0].stage).rows
    ledger.revive(NEW.id, [leases[1].task], again=True)
    first, again, last = ledger.tasks(NEW.id, stage=leases[0].stage).rows
    assert (first, last) == (before[0], before[2])
    assert (again.state, again.fence) == (TaskState.READY, leases[1].fence)
    assert ledger.complete("w1", [done(lease) for lease in leases]).verdicts == (Verdict.OK, Verdict.OK, Verdict.OK)


def test_a_first_task_done_again_opens_no_second_plan(ledger: Ledger) -> None:
    ledger.revive(NEW.id, [first_of(NEW).id], again=True)
    (probe,) = claim(ledger, hinted=[first_of(NEW).id])
    ledger.draft(NEW.id, probe.task, probe.fence, film(NEW, 9), "other")
    ledger.complete("w1", [done(probe)])
    assert ledger.job(NEW.id).counts.total == 5
    assert ledger.job(NEW.id).facts == '{"found": true}'


# Results and log lines
def test_a_result_that_is_only_noted_as_damaged_stays(ledger: Ledger) -> None:
    made = Result("a-key", "a", "ab" * 32, publishes=True, text_sha256="cd" * 32)
    (lease,) = claim(ledger)
    ledger.complete("w1", [done(lease, made)])
    assert ledger.set_aside(OWNER, ["a-key", "nothing"], "damaged: gone", note_only=True) == 1
    assert ledger.known(OWNER, ["a-key"]) == {"a-key": made}


def test_a_result_set_aside_is_not_known(ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    ledger.complete("w1", [done(lease, result("a"), result("b"))])
    assert ledger.set_aside("bob", ["a-key"], "damaged") == 0
    assert ledger.set_aside(OWNER, ["a-key", "nothing"], "damaged") == 1
    assert ledger.set_aside(OWNER, ["a-key"], "damaged") == 0
    assert set(ledger.known(OWNER, ["a-key", "b-key"])) == {"b-key"}


def test_log_lines_are_kept_per_attempt_and_once(ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    ledger.log(lease.task, 1, 1, ["one", "two"])
    ledger.log(lease.task, 1, 2, ["two", "three"])
    lines = ledger.events(NEW.id, types={E.LOG}, task=lease.task)
    assert [(e.number, e.data["line"]) for e in lines] == [(1, "one"), (2, "two"), (3, "three")]
    assert [e.number for e in ledger.events(NEW.id, 1, {E.LOG}, lease.task, limit=1)] == [2]
    ledger.log(lease.task, 2, 1, ["again"])
    (line,) = ledger.events(NEW.id, types={E.LOG}, task=lease.task)
    assert line.data == {"fence": 2, "line": "again"}
    assert E.LOG not in types(ledger)


def test_log_lines_that_come_in_any_order_are_kept_as_they_came_first(backend: Backend, ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    for first, last in ((5, 6), (1, 9), (7, 9), (3, 12), (1, 12)):
        ledger.log(lease.task, 1, first, [f"{n} in {first}" for n in range(first, last + 1)])
        backend.clock.advance(1)
    lines = ledger.events(NEW.id, types={E.LOG}, task=lease.task)
    came = [1, 1, 1, 1, 5, 5, 1, 1, 1, 3, 3, 3]
    assert [(e.number, e.data["line"]) for e in lines] == [(n, f"{n} in {of}") for n, of in enumerate(came, 1)]
    assert len({e.at for e in lines}) == 3


def test_only_the_last_log_lines_are_kept(ledger: Ledger) -> None:
    task = PLAN[0].id
    for first in range(1, 1500, 100):
        ledger.log(task, 1, first, [str(first + n) for n in range(100)])
    lines = ledger.events(NEW.id, types={E.LOG}, task=task, limit=5000)
    assert [e.number for e in lines] == list(range(501, 1501))


def test_log_lines_of_nobody_are_dropped(ledger: Ledger) -> None:
    ledger.log("ghost", 1, 1, ["boo"])
    ledger.log(PLAN[0].id, 1, 1, [])
    assert ledger.events(NEW.id, types={E.LOG}, task="ghost") == ()
    assert ledger.events(NEW.id, types={E.LOG}, task=PLAN[0].id) == ()


# Lists
def test_events_are_read_from_any_number_by_type_and_by_task(ledger: Ledger) -> None:
    ledger.complete("w1", [done(lease) for lease in claim(ledger, n=3)])
    every = ledger.events(NEW.id)
    assert [e.number for e in every] == [1, 2, 3, 4, 5, 6]
    for after in range(7):
        assert ledger.events(NEW.id, after) == every[after:]
        assert ledger.events(NEW.id, after, limit=2) == every[after : after + 2]
    assert ledger.events(NEW.id, types={E.DONE}, limit=2) == (every[1], every[3])
    assert ledger.events(NEW.id, task=PLAN[1].id) == (every[4],)
    assert ledger.events("job_nobody") == ()


def test_changed_names_every_job_whose_events_moved(ledger: Ledger) -> None:
    other = new_job("other")
    ids, cursor = ledger.changed()
    assert ids == (NEW.id,)
    assert ledger.changed(cursor) == ((), cursor)
    ledger.submit(other, first_of(other))
    ids, after = ledger.changed(cursor)
    assert ids == (other.id,)
    claim(ledger)  # a start is no event
    assert ledger.changed(after) == ((), after)
    ledger.control(NEW.id, JobCommand.PAUSE)
    assert ledger.changed(cursor)[0] == (other.id, NEW.id)


def test_jobs_are_listed_by_age_in_pages(backend: Backend, ledger: Ledger) -> None:
    jobs = [NEW, *(new_job(f"n{n}") for n in range(4))]
    for new in jobs:
        ledger.submit(new, first_of(new))
    ledger.submit(new_job("theirs", "bob"), first_of(new_job("theirs", "bob")))
    ids = [new.id for new in jobs]
    assert [job.id for job in ledger.jobs(OWNER, oldest_first=True).rows] == ids
    assert [job.id for job in ledger.jobs(OWNER).rows] == ids[::-1]
    created = [job.id for job in ledger.jobs(OWNER, JobState.CREATED).rows]
    assert created == ids[:0:-1]
    for oldest in (True, False):
        assert _pages(ledger, None, oldest) == (ids if oldest else ids[::-1])
        assert _pages(ledger, JobState.CREATED, oldest) == (ids[1:] if oldest else created)


def test_jobs_are_found_by_their_ids_at_once(ledger: Ledger) -> None:
    mine, theirs = [new_job(f"n{n}") for n in range(3)], new_job("theirs", "bob")
    for new in (*mine, theirs):
        ledger.submit(new, first_of(new))
    ids = [mine[0].id, mine[2].id, mine[2].id, theirs.id, "job_nowhere"]
    found = ledger.jobs(OWNER, limit=1, ids=ids).rows
    assert {job.id: job for job in found} == {id: ledger.job(id) for id in ids[:2]}
    assert len(found) == 2
    assert ledger.jobs(OWNER, ids=["job_nowhere"]).rows == ()


@pytest.mark.parametrize("oldest", [True, False])
def test_jobs_of_a_queue_are_listed_by_age_in_pages(ledger: Ledger, oldest: bool) -> None:
    jobs = [replace(new_job(f"q{n}"), queue="cpu" if n % 2 else "now") for n in range(8)]
    for job in (*jobs, replace(new_job("theirs", "bob"), queue="cpu")):
        ledger.submit(job, first_of(job))
    ledger.control(jobs[3].id, JobCommand.CANCEL)
    wanted = [job.id for job in jobs[1::2]][:: 1 if oldest else -1]

    def listed(limit: int, state: JobState | None = None) -> list[str]:
        page = ledger.jobs(OWNER, state, oldest, limit=limit, queue="cpu")
        found = [*page.rows]
        while page.cursor:
            page = ledger.jobs(OWNER, state, oldest, page.cursor, limit, queue="cpu")
            found += page.rows
        assert {job.queue for job in found} <= {"cpu"}
        return [job.id for job in found]

    assert listed(3) == listed(4) == listed(1) == wanted
    assert listed(1, JobState.CANCELLED) == [jobs[3].id]
    assert listed(2, JobState.CREATED) == [id for id in wanted if id != jobs[3].id]
    assert ledger.jobs(OWNER, queue="nothing").rows == ()


def test_finished_jobs_are_listed_by_the_time_they_finished(backend: Backend, ledger: Ledger) -> None:
    jobs = [new_job(f"n{n}") for n in range(4)]
    for new in jobs:
        ledger.submit(new, first_of(new))
    order = [jobs[2], jobs[0], jobs[3], jobs[1]]
    for new in order:
        backend.clock.advance(1)
        ledger.control(new.id, JobCommand.CANCEL)
    ids = [new.id for new in order]
    assert _pages(ledger, JobState.CANCELLED, True) == ids
    assert _pages(ledger, JobState.CANCELLED, False) == ids[::-1]


def _pages(ledger: Ledger, state: JobState | None, oldest: bool) -> list[str]:
    out: list[str] = []
    cursor = ""
    while True:
        page = ledger.jobs(OWNER, state, oldest, cursor, 2)
        out += [job.id for job in page.rows]
        cursor = page.cursor
        if not cursor:
            return out


def test_a_list_of_tasks_goes_on_after_a_job_that_was_completed_meanwhile(ledger: Ledger) -> None:
    jobs = [new_job(str(n)) for n in range(3)]
    for new in jobs:
        ledger.submit(new, first_of(new, lane="now"))
    ledger.control(NEW.id, JobCommand.CANCEL)
    page = ledger.tasks(state=TaskState.READY, limit=2)
    assert [task.job for task in page.rows] == [new.id for new in jobs[:2]]
    ledger.complete("w1", [done(lease) for lease in ledger.claim("w1", ["now"], 2)])
    assert ledger.job(jobs[1].id).state is JobState.COMPLETED
    assert [t.job for t in ledger.tasks(state=TaskState.READY, cursor=page.cursor).rows] == [jobs[2].id]


def test_tasks_are_listed_in_pages_and_by_state_over_all_jobs(ledger: Ledger) -> None:
    other = new_job("other")
    opened(ledger, other, film(other, 2))
    kill(ledger)
    gone = new_job("gone")
    ledger.submit(gone, first_of(gone))
    ledger.control(gone.id, JobCommand.CANCEL)
    every = [d.id for new, n in ((NEW, 3), (other, 2)) for d in (first_of(new), *film(new, n))] + [first_of(gone).id]
    got, cursor = [], ""
    while True:
        page = ledger.tasks(cursor=cursor, limit=2)
        got += [task.id for task in page.rows]
        cursor = page.cursor
        if not cursor:
            break
    assert got == every
    by = {state: [t.id for t in ledger.tasks(state=state).rows] for state in TaskState}
    assert by[TaskState.DEAD] == [PLAN[0].id]
    assert by[TaskState.READY] == [PLAN[1].id, PLAN[2].id, *(d.id for d in film(other, 2)[:2])]
    assert by[TaskState.WAITING] == [PLAN[3].id, film(other, 2)[2].id]
    assert by[TaskState.CANCELLED] == [first_of(gone).id]
    assert by[TaskState.DONE] == [first_of(NEW).id, first_of(other).id]
    assert by[TaskState.LEASED] == []
    assert [t.id for t in ledger.tasks(stage="join").rows] == [PLAN[3].id, film(other, 2)[2].id]
    assert [t.id for t in ledger.tasks(NEW.id, TaskState.READY, limit=1).rows] == [PLAN[1].id]
    assert ledger.tasks("job_nobody").rows == ()


def test_a_task_is_seen_as_it_was_drafted(ledger: Ledger) -> None:
    (task,) = ledger.tasks(ids=[PLAN[2].id]).rows
    draft = PLAN[2]
    assert (task.job, task.stage, task.chunk, task.lane, task.order, task.spec) == (
        draft.job,
        draft.stage,
        draft.chunk,
        draft.lane,
        draft.order,
        draft.spec,
    )
    assert (task.failure, task.worker, task.due_in, task.parked, task.adopted) == (None, None, None, False, False)


def test_a_failure_is_seen_until_the_task_is_done(ledger: Ledger) -> None:
    (lease,) = claim(ledger)
    ledger.fail("w1", lease.task, lease.fence, BROKEN, 0.0)
    (again,) = claim(ledger)
    assert ledger.tasks(ids=[lease.task]).rows[0].failure == BROKEN
    ledger.complete("w1", [done(again)])
    assert ledger.tasks(ids=[lease.task]).rows[0].failure is None


def test_a_request_of_another_owner_is_another_job(ledger: Ledger) -> None:
    theirs = replace(new_job("film", "bob"), team="")
    assert ledger.submit(theirs, first_of(theirs)).created
    assert [job.id for job in ledger.jobs("bob").rows] == [theirs.id]


# Stages that are cancelled by themselves
def states(ledger: Ledger, stage: str) -> set[TaskState]:
    return {task.state for task in ledger.tasks(NEW.id, stage=stage).rows}


def test_a_cancelled_stage_ends_and_its_siblings_go_on(ledger: Ledger) -> None:
    leases = claim(ledger, n=2)
    job = ledger.control(NEW.id, JobCommand.CANCEL, stages=["develop", "join"])
    assert job is not None
    assert (job.state, job.counts.total, job.cancelled_stages) == (JobState.COMPLETED, 1, ("develop", "join"))
    assert seen(ledger) == [TaskState.DONE, *[TaskState.CANCELLED] * 4]
    assert all(task.finished_at for task in ledger.tasks(NEW.id).rows)
    assert ledger.complete("w1", [done(leases[0])]).verdicts == (Verdict.CANCELLED,)
    assert ledger.fail("w1", leases[1].task, leases[1].fence, BROKEN, None) is Verdict.CANCELLED
    held = {leases[0].task: leases[0].fence}
    assert ledger.renew(who(), held, {}).leases == {leases[0].task: LeaseStatus.CANCELLED}
    assert claim(ledger, n=5) == ()
    assert ledger.tasks(state=TaskState.CANCELLED).rows == ledger.tasks(NEW.id).rows[1:]


def test_only_what_is_named_is_cancelled_and_the_rest_completes_the_job(ledger: Ledger) -> None:
    ledger.control(NEW.id, JobCommand.CANCEL, stages=["join"])
    assert states(ledger, "develop") == {TaskState.READY}
    finish(ledger)
    assert states(ledger, "join") == {TaskState.CANCELLED}
    assert ledger.job(NEW.id).state is JobState.COMPLETED


def test_a_stage_cancelled_before_the_plan_is_open_is_born_cancelled(backend: Backend) -> None:
    ledger = backend.open()
    worker(ledger)
    ledger.submit(NEW, first_of(NEW))
    job = ledger.control(NEW.id, JobCommand.CANCEL, stages=["join"])
    assert job is not None
    assert (job.state, job.cancelled_stages) == (JobState.CREATED, ("join",))
    (probe,) = claim(ledger)
    ledger.draft(NEW.id, probe.task, probe.fence, PLAN, "")
    assert ledger.complete("w1", [done(probe)]).ready == tuple(d.id for d in PLAN[:3])
    assert (states(ledger, "develop"), states(ledger, "join")) == ({TaskState.READY}, {TaskState.CANCELLED})
    assert ledger.job(NEW.id).counts.total == 4


def test_what_is_done_or_dead_of_a_cancelled_stage_stays_so(ledger: Ledger) -> None:
    one, two = claim(ledger, n=2)
    ledger.complete("w1", [done(one)])
    ledger.fail("w1", two.task, two.fence, BROKEN, None)
    ledger.control(NEW.id, JobCommand.CANCEL, stages=["develop", "join"])
    assert seen(ledger)[1:] == [TaskState.DONE, TaskState.DEAD, TaskState.CANCELLED, TaskState.CANCELLED]
    assert ledger.job(NEW.id).state is JobState.FAILED


def test_a_cancelled_stage_goes_on_only_when_it_is_named(ledger: Ledger) -> None:
    ledger.control(NEW.id, JobCommand.CANCEL, stages=["develop", "join"])
    before = picture(ledger, NEW.id)
    assert ledger.revive(NEW.id) == ()
    assert picture(ledger, NEW.id) == before
    assert ledger.revive(NEW.id, stages=["develop"]) == tuple(d.id for d in PLAN[:3])
    job = ledger.job(NEW.id)
    assert (job.state, job.counts.total, job.cancelled_stages) == (JobState.RUNNING, 4, ("join",))
    finish(ledger)
    assert states(ledger, "join") == {TaskState.CANCELLED}
    assert ledger.revive(NEW.id, stages=["join"]) == (PLAN[3].id,)
    finish(ledger)
    assert (ledger.job(NEW.id).state, ledger.job(NEW.id).counts.total) == (JobState.COMPLETED, 5)


def test_a_revived_stage_waits_for_what_is_not_done_yet(ledger: Ledger) -> None:
    ledger.control(NEW.id, JobCommand.CANCEL, stages=["develop", "join"])
    ledger.revive(NEW.id, stages=["develop", "join"])
    assert states(ledger, "join") == {TaskState.WAITING}
    finish(ledger)
    assert ledger.job(NEW.id).counts.done == 5


def test_of_a_cancelled_job_one_stage_goes_on_while_the_others_stay_cancelled(ledger: Ledger) -> None:
    claim(ledger)
    ledger.control(NEW.id, JobCommand.CANCEL)
    ledger.control(NEW.id, JobCommand.CANCEL, stages=["join"])
    assert ledger.job(NEW.id).state is JobState.CANCELLED
    ledger.revive(NEW.id, stages=["develop"])
    assert (states(ledger, "develop"), states(ledger, "join")) == ({TaskState.READY}, {TaskState.CANCELLED})
    finish(ledger)
    assert ledger.job(NEW.id).state is JobState.COMPLETED


def test_cancelling_stages_twice_changes_nothing(ledger: Ledger) -> None:
    ledger.control(NEW.id, JobCommand.CANCEL, stages=["join"])
    before = picture(ledger, NEW.id)
    ledger.control(NEW.id, JobCommand.CANCEL, stages=["join"])
    assert picture(ledger, NEW.id) == before
    assert ledger.events(NEW.id)[-1].data == {"stages": ["join"]}
