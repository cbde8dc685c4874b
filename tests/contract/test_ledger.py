"""The contract of the ledger, part one: taking in, plans, needs, arrivals."""

import random
from dataclasses import replace

from ledger_kit import OWNER, Backend, claim, done, film, first_of, new_job, opened, picture, worker

from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, JobState
from rushes.domain.keys import task_id
from rushes.domain.task import Draft, Finish, Need, TaskState, Verdict
from rushes.ledger.port import Arrival, Ledger

E = EventType


def types(ledger: Ledger, job: str) -> list[EventType]:
    return [event.type for event in ledger.events(job)]


def states(ledger: Ledger, job: str) -> dict[str, TaskState]:
    return {task.id.removeprefix(f"{job}."): task.state for task in ledger.tasks(job).rows}


def test_a_submitted_job_has_its_first_task_ready_and_its_first_event(ledger: Ledger) -> None:
    new = new_job(priority=3)
    submitted = ledger.submit(new, first_of(new))
    job = submitted.job
    assert submitted.created
    assert (job.id, job.owner, job.team, job.name, job.payload) == (new.id, OWNER, "team", "film.mp4", '{"a": 1}')
    assert (job.state, job.paused, job.priority, job.facts) == (JobState.CREATED, False, 3, "")
    assert (job.counts.total, job.counts.live, job.last_event) == (1, 1, 1)
    assert job.created_at == "2023-11-14T22:13:20.000Z"
    assert states(ledger, new.id) == {"probe": TaskState.READY}
    (event,) = ledger.events(new.id)
    assert (event.number, event.type, event.at, event.task) == (1, E.SUBMITTED, job.created_at, None)


def test_the_same_job_again_changes_nothing(ledger: Ledger) -> None:
    new = new_job()
    first = ledger.submit(new, first_of(new))
    before = picture(ledger, new.id)
    again = ledger.submit(replace(new, name="other"), first_of(new))
    assert not again.created
    assert again.job == first.job
    assert picture(ledger, new.id) == before


def test_a_job_that_was_worked_on_is_answered_as_it_is_when_submitted_again(ledger: Ledger) -> None:
    new = new_job()
    opened(ledger, new, film(new))
    assert ledger.submit(new, first_of(new)).job == ledger.job(new.id)


def test_claiming_the_first_task_begins_the_job(ledger: Ledger, backend: Backend) -> None:
    new = new_job()
    ledger.submit(new, first_of(new))
    worker(ledger)
    backend.clock.advance(5)
    claim(ledger)
    job = ledger.job(new.id)
    assert (job.state, job.started_at) == (JobState.CHUNKING, "2023-11-14T22:13:25.000Z")
    assert types(ledger, new.id) == [E.SUBMITTED]  # none for a start


def test_drafts_are_seen_by_nobody_until_the_plan_opens(ledger: Ledger) -> None:
    new = new_job()
    ledger.submit(new, first_of(new))
    worker(ledger)
    (probe,) = claim(ledger)
    assert ledger.draft(new.id, probe.task, probe.fence, film(new), "facts") is Verdict.OK
    assert claim(ledger, n=10) == ()
    assert states(ledger, new.id) == {"probe": TaskState.LEASED}
    assert (ledger.job(new.id).facts, ledger.job(new.id).counts.total) == ("", 1)


def test_completing_the_first_task_opens_the_plan(ledger: Ledger) -> None:
    new = new_job()
    plan = film(new)
    ready = opened(ledger, new, plan)
    job = ledger.job(new.id)
    assert ready == tuple(d.id for d in plan[:3])
    assert (job.state, job.facts) == (JobState.RUNNING, '{"found": true}')
    assert (job.counts.total, job.counts.done, job.counts.live) == (5, 1, 3)
    assert [t.id for t in ledger.tasks(new.id).rows] == [first_of(new).id, *(d.id for d in plan)]
    assert states(ledger, new.id)["join"] is TaskState.WAITING
    assert ledger.tasks(new.id, stage="join").rows[0].unmet == 3
    assert types(ledger, new.id) == [E.SUBMITTED, E.DONE, E.PLANNED]
    assert ledger.events(new.id)[2].data["tasks"] == 4


def test_a_plan_written_in_pages_and_written_twice_is_one_plan(ledger: Ledger) -> None:
    new = new_job()
    plan = film(new, 4)
    ledger.submit(new, first_of(new))
    worker(ledger)
    (probe,) = claim(ledger)
    for page in (plan[:2], plan[2:], plan[:2]):
        ledger.draft(new.id, probe.task, probe.fence, page, "facts")
    ledger.complete("w1", [done(probe)])
    assert [t.id for t in ledger.tasks(new.id).rows[1:]] == [d.id for d in plan]


def test_a_task_is_told_what_to_do_however_long_that_is(ledger: Ledger) -> None:
    new, long = new_job(), f'{{"inputs": "{random.Random(1).randbytes(400_000).hex()}"}}'
    worker(ledger)
    ledger.submit(new, replace(first_of(new), spec=long))
    (probe,) = claim(ledger)
    ledger.draft(new.id, probe.task, probe.fence, [replace(d, spec=d.spec + long) for d in film(new, 1)], "{}")
    ledger.complete("w1", [done(probe)])
    (lease,) = claim(ledger)
    assert probe.spec == long
    assert lease.spec == film(new, 1)[0].spec + long
    assert [task.spec for task in ledger.tasks(new.id).rows] == [long, lease.spec, film(new, 1)[1].spec + long]


def test_several_tasks_may_be_told_the_same_at_length(ledger: Ledger) -> None:
    new, long = new_job(), f'{{"inputs": "{"x" * 9000}"}}'
    opened(ledger, new, [replace(d, spec=long) for d in film(new, 3)])
    assert [task.spec for task in ledger.tasks(new.id).rows][1:] == [long] * 4


def test_drafts_of_an_earlier_attempt_vanish(ledger: Ledger) -> None:
    new = new_job()
    ledger.submit(new, first_of(new))
    worker(ledger)
    (one,) = claim(ledger)
    ledger.draft(new.id, one.task, one.fence, film(new, 9), "old")
    ledger.give_back("w1", [(one.task, one.fence)], "drain")
    (two,) = claim(ledger)
    assert ledger.draft(new.id, one.task, one.fence, film(new, 9), "old") is Verdict.LOST
    ledger.draft(new.id, two.task, two.fence, film(new, 2), "new")
    ledger.complete("w1", [done(two)])
    assert ledger.job(new.id).counts.total == 4
    assert ledger.job(new.id).facts == "new"


def test_drafts_of_an_attempt_that_failed_are_not_opened_by_the_next_one(ledger: Ledger) -> None:
    new = new_job()
    ledger.submit(new, first_of(new))
    worker(ledger)
    (one,) = claim(ledger)
    ledger.draft(new.id, one.task, one.fence, film(new), "old")
    ledger.give_back("w1", [(one.task, one.fence)], "drain")
    (two,) = claim(ledger)
    ledger.complete("w1", [done(two)])
    job = ledger.job(new.id)
    assert (job.state, job.counts.total, job.facts) == (JobState.COMPLETED, 1, "")


def test_a_draft_after_its_own_completion_is_ok_and_changes_nothing(ledger: Ledger) -> None:
    new = new_job()
    opened(ledger, new, film(new))
    before = picture(ledger, new.id)
    assert ledger.draft(new.id, first_of(new).id, 1, film(new, 8), "later") is Verdict.OK
    assert ledger.draft(new.id, first_of(new).id, 0, film(new, 8), "later") is Verdict.LOST
    assert picture(ledger, new.id) == before


def test_a_draft_of_a_cancelled_job_is_refused(ledger: Ledger) -> None:
    new = new_job()
    ledger.submit(new, first_of(new))
    worker(ledger)
    (probe,) = claim(ledger)
    ledger.control(new.id, JobCommand.CANCEL)
    assert ledger.draft(new.id, probe.task, probe.fence, film(new), "") is Verdict.CANCELLED


def test_a_job_without_a_plan_is_complete_with_its_first_task(ledger: Ledger) -> None:
    new = new_job()
    opened(ledger, new, [])
    job = ledger.job(new.id)
    assert (job.state, job.counts.total, job.counts.done) == (JobState.COMPLETED, 1, 1)
    assert types(ledger, new.id) == [E.SUBMITTED, E.DONE, E.FINISHED]
    assert ledger.events(new.id)[-1].data == {"state": "completed"}
    assert job.finished_at is not None


def test_adopted_drafts_are_done_from_the_start(ledger: Ledger) -> None:
    new = new_job()
    plan = film(new)
    plan = [replace(plan[0], adopted=True), plan[1], replace(plan[2], adopted=True), plan[3]]
    assert opened(ledger, new, plan) == (plan[1].id,)
    adopted = ledger.events(new.id, types={E.ADOPTED})
    assert [e.task for e in adopted] == [plan[0].id, plan[2].id]
    assert adopted[0].data["stage"] == "develop"
    assert ledger.tasks(new.id, ids=[plan[0].id]).rows[0].adopted
    assert ledger.tasks(new.id, stage="join").rows[0].unmet == 1
    worker(ledger)
    assert ledger.complete("w1", [done(claim(ledger)[0])]).ready == (plan[3].id,)


def test_a_plan_that_is_adopted_whole_completes_the_job(ledger: Ledger) -> None:
    new = new_job()
    opened(ledger, new, [replace(d, adopted=True) for d in film(new)])
    assert ledger.job(new.id).state is JobState.COMPLETED
    assert types(ledger, new.id) == [E.SUBMITTED, E.DONE, E.PLANNED, *[E.ADOPTED] * 4, E.FINISHED]


def test_a_first_task_whose_result_exists_completes_the_job_when_it_is_submitted(ledger: Ledger) -> None:
    new = new_job()
    job = ledger.submit(new, replace(first_of(new), adopted=True)).job
    assert (job.state, job.counts.done) == (JobState.COMPLETED, 1)
    assert types(ledger, new.id) == [E.SUBMITTED, E.ADOPTED, E.FINISHED]


def test_plan_order_is_the_order_of_drafts_not_of_ids(ledger: Ledger) -> None:
    new = new_job()
    plan = [replace(d, order=10 - n, needs=()) for n, d in enumerate(film(new))]
    opened(ledger, new, plan)
    expected = [d.id for d in reversed(plan)]
    assert [t.id for t in ledger.tasks(new.id).rows[1:]] == expected
    worker(ledger)
    assert [lease.task for lease in claim(ledger, n=10)] == expected


def test_the_last_need_makes_a_task_ready_exactly_once(ledger: Ledger) -> None:
    new = new_job()
    opened(ledger, new, film(new))
    worker(ledger)
    leases = claim(ledger, n=3)
    assert ledger.complete("w1", [done(leases[0]), done(leases[1])]).ready == ()
    join = task_id(new.id, "join", None)
    assert ledger.complete("w1", [done(leases[1])]).ready == ()  # repeated: counts nothing
    assert ledger.tasks(new.id, ids=[join]).rows[0].unmet == 1
    assert ledger.complete("w1", [done(leases[2])]).ready == (join,)
    assert ledger.complete("w1", [done(leases[2])]).ready == ()
    assert [lease.task for lease in claim(ledger, n=10)] == [join]


def test_a_need_of_another_job_is_met_by_its_completion(ledger: Ledger) -> None:
    one, two = new_job("one"), new_job("two")
    opened(ledger, one, film(one, 1))
    part = film(one, 1)[0].id
    plan = [Draft(task_id(two.id, "copy", None), two.id, "copy", None, "{}", needs=(Need(part),))]
    assert opened(ledger, two, plan) == ()
    worker(ledger)
    (lease,) = claim(ledger)
    assert set(ledger.complete("w1", [done(lease)]).ready) == {film(one, 1)[1].id, plan[0].id}
    assert ledger.job(two.id).counts.live == 1


def test_a_need_named_twice_counts_once_and_an_unknown_one_is_never_met(ledger: Ledger) -> None:
    new = new_job()
    probe, ghost = Need(first_of(new).id), Need(task_id(new.id, "ghost", None))
    plan = [
        Draft(task_id(new.id, "a", 0), new.id, "a", 0, "{}", order=1),
        Draft(
            task_id(new.id, "b", 0), new.id, "b", 0, "{}", order=2, needs=(probe, probe, Need(task_id(new.id, "a", 0)))
        ),
        Draft(task_id(new.id, "c", 0), new.id, "c", 0, "{}", order=3, needs=(ghost,)),
    ]
    assert opened(ledger, new, plan) == (plan[0].id,)
    assert [t.unmet for t in ledger.tasks(new.id).rows] == [0, 0, 1, 1]


def test_a_job_waits_for_its_file(ledger: Ledger) -> None:
    new = new_job()
    ledger.submit(new, first_of(new, [Need("input/a", is_key=True)]))
    worker(ledger)
    assert claim(ledger) == ()
    assert states(ledger, new.id) == {"probe": TaskState.WAITING}
    assert ledger.arrived("input/other", "1").ready == ()
    assert ledger.arrived("input/a", "1").ready == (first_of(new).id,)
    assert ledger.job(new.id).counts.live == 1
    assert len(claim(ledger)) == 1


def test_a_file_that_arrived_before_its_job_is_not_waited_for(ledger: Ledger) -> None:
    assert ledger.arrived("input/a", "1").ready == ()
    new = new_job()
    ledger.submit(new, first_of(new, [Need("input/a", is_key=True)]))
    worker(ledger)
    assert len(claim(ledger)) == 1


def test_a_key_that_arrives_again_counts_once(ledger: Ledger) -> None:
    new = new_job()
    needs = [Need("input/a", is_key=True), Need("input/b", is_key=True)]
    ledger.submit(new, first_of(new, needs))
    assert ledger.arrived("input/a", "1").ready == ()
    before = picture(ledger, new.id)
    assert ledger.arrived("input/a", "1").ready == ()  # the same event again
    assert ledger.arrived("input/a", "2").ready == ()  # other content: this need was met already
    assert ledger.arrived("input/a", "2").ready == ()
    assert picture(ledger, new.id) == before
    assert ledger.arrived("input/b", "1").ready == (first_of(new).id,)


def test_one_key_wakes_every_task_that_needs_it(ledger: Ledger) -> None:
    jobs = [new_job(name) for name in ("one", "two")]
    for new in jobs:
        ledger.submit(new, first_of(new, [Need("k", is_key=True)]))
    assert ledger.arrived("k", "1").ready == tuple(first_of(new).id for new in jobs)


def test_a_key_that_arrives_for_a_paused_job_makes_its_task_ready_but_parked(ledger: Ledger) -> None:
    new = new_job()
    ledger.submit(new, first_of(new, [Need("k", is_key=True)]))
    ledger.control(new.id, JobCommand.PAUSE)
    assert ledger.arrived("k", "1").ready == ()
    (task,) = ledger.tasks(new.id).rows
    assert (task.state, task.parked) == (TaskState.READY, True)
    ledger.control(new.id, JobCommand.RESUME)
    worker(ledger)
    assert len(claim(ledger)) == 1


def test_a_key_that_arrives_for_a_cancelled_job_starts_nothing_until_it_is_revived(ledger: Ledger) -> None:
    new = new_job()
    ledger.submit(new, first_of(new, [Need("k", is_key=True)]))
    ledger.control(new.id, JobCommand.CANCEL)
    assert ledger.arrived("k", "1").ready == ()
    assert states(ledger, new.id) == {"probe": TaskState.CANCELLED}
    ledger.revive(new.id)
    worker(ledger)
    assert len(claim(ledger)) == 1


def test_a_plan_can_wait_for_a_key_too(ledger: Ledger) -> None:
    new = new_job()
    collect = Draft(task_id(new.id, "collect", 0), new.id, "collect", 0, "{}", needs=(Need("out/1", is_key=True),))
    assert opened(ledger, new, [collect]) == ()
    assert ledger.arrived("out/1", "e").ready == (collect.id,)


def test_other_content_of_a_key_names_the_jobs_that_began_with_the_first(ledger: Ledger) -> None:
    assert ledger.arrived("input/a", "1") == Arrival()
    late, early = new_job("late"), new_job("early")
    for new in (late, early):
        ledger.submit(new, first_of(new, [Need("input/a", is_key=True)]))
    jobs = tuple(sorted((early.id, late.id)))
    before = picture(ledger, late.id)
    for _ in range(2):  # each time it is told: whoever acts on it may be killed
        assert ledger.arrived("input/a", "2") == Arrival(again=jobs)
        assert ledger.arrived("input/a", "1") == Arrival()
    assert ledger.arrived("input/a", "3") == Arrival(again=jobs)
    assert picture(ledger, late.id) == before
    ledger.control(early.id, JobCommand.CANCEL)
    ledger.control(early.id, JobCommand.FORGET)
    assert ledger.arrived("input/a", "2") == Arrival(again=(late.id,))


def test_a_task_that_waits_inside_a_plan_begins_no_job(ledger: Ledger) -> None:
    new = new_job()
    collect = Draft(task_id(new.id, "collect", 0), new.id, "collect", 0, "{}", needs=(Need("out/1", is_key=True),))
    opened(ledger, new, [collect])
    ledger.arrived("out/1", "e")
    assert ledger.arrived("out/1", "f") == Arrival()


def test_two_handles_see_one_store(backend: Backend) -> None:
    one, two = backend.open(), backend.open()
    new = new_job()
    opened(one, new, film(new))
    assert two.job(new.id) == one.job(new.id)
    worker(two)
    (lease,) = claim(two)
    assert one.complete("w1", [Finish(lease.task, lease.fence)]).verdicts == (Verdict.OK,)


def test_a_finish_that_comes_twice_in_a_batch_counts_once_where_it_first_came(ledger: Ledger) -> None:
    new = new_job()
    opened(ledger, new, film(new, chunks=2))
    worker(ledger)
    one, two = claim(ledger, n=2)
    completed = ledger.complete("w1", [done(one), done(two), done(one)])
    assert completed.verdicts == (Verdict.OK,) * 3
    events = ledger.events(new.id, types={EventType.DONE})
    assert [event.task for event in events][-2:] == [one.task, two.task]
