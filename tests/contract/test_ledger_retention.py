"""The contract of the ledger, part four: history that is no longer kept, and jobs that are forgotten."""

import pytest
from ledger_kit import BROKEN, OWNER, Backend, claim, done, film, first_of, new_job, opened, picture, result, worker

from rushes.domain.errors import NotFound, Refused
from rushes.domain.event import Event, EventType
from rushes.domain.job import JobCommand, JobState
from rushes.domain.task import Need, TaskState
from rushes.ledger.pages import all_events
from rushes.ledger.port import Debt, Ledger

NEW = new_job()
DAY = 86_400


def finish(ledger: Ledger, *results: str) -> None:
    """Everything of the job that can be done is done; each of these results with one of its tasks."""
    worker(ledger)
    names = list(results)
    while leases := claim(ledger, n=10):
        ledger.complete("w1", [done(x, *([result(names.pop(), publishes=True)] if names else [])) for x in leases])


def aged(backend: Backend, ledger: Ledger, days: int = 40) -> int:
    """A finished job whose last events are young; how many are older than that."""
    opened(ledger, NEW, film(NEW))
    old = ledger.job(NEW.id).last_event
    backend.clock.advance(days * DAY)
    finish(ledger)
    return old


def test_events_below_the_oldest_are_answered_as_truncated_before_it(backend: Backend, ledger: Ledger) -> None:
    old = aged(backend, ledger)
    before = ledger.events(NEW.id)
    ledger.control(NEW.id, JobCommand.TRIM, 30 * DAY)
    told, *kept = ledger.events(NEW.id)
    assert kept == list(before[old:])
    assert told == Event(NEW.id, old, EventType.TRUNCATED, kept[0].at, None, {"before": old + 1})
    assert ledger.events(NEW.id, old - 1)[0] == told
    assert ledger.events(NEW.id, old) == tuple(kept), "who has seen all that is gone misses nothing"
    assert ledger.job(NEW.id).last_event == len(before)


def test_a_truncated_history_is_read_on_in_pages_from_any_number(backend: Backend, ledger: Ledger) -> None:
    old = aged(backend, ledger)
    ledger.control(NEW.id, JobCommand.TRIM, 30 * DAY)
    assert [e.number for e in ledger.events(NEW.id, limit=1)] == [old]
    assert [e.number for e in ledger.events(NEW.id, limit=2)] == [old, old + 1]
    assert [e.number for e in all_events(ledger, NEW.id)] == list(range(old, ledger.job(NEW.id).last_event + 1))
    wanted = {EventType.SUBMITTED, EventType.FINISHED}
    assert [e.type for e in ledger.events(NEW.id, types=wanted)] == [EventType.FINISHED], "a filter finds what is there"


def test_the_last_event_of_a_job_is_kept_however_old(backend: Backend, ledger: Ledger) -> None:
    opened(ledger, NEW, film(NEW))
    finish(ledger)
    backend.clock.advance(400 * DAY)
    ledger.control(NEW.id, JobCommand.TRIM, 30 * DAY)
    last = ledger.job(NEW.id).last_event
    assert [(e.number, e.type) for e in ledger.events(NEW.id)] == [
        (last - 1, EventType.TRUNCATED),
        (last, EventType.FINISHED),
    ]


def test_a_job_goes_on_counting_its_events_after_a_trim(backend: Backend, ledger: Ledger) -> None:
    opened(ledger, NEW, film(NEW))
    old = ledger.job(NEW.id).last_event
    backend.clock.advance(40 * DAY)
    ledger.control(NEW.id, JobCommand.TRIM, 30 * DAY)
    finish(ledger)
    last = ledger.job(NEW.id).last_event
    assert [e.number for e in ledger.events(NEW.id, old - 1)] == list(range(old, last + 1)), "nothing new is missing"
    assert last > old
    assert NEW.id in ledger.changed()[0]


def test_what_is_young_is_not_trimmed_and_a_trim_can_be_repeated(backend: Backend, ledger: Ledger) -> None:
    aged(backend, ledger, days=10)
    before = picture(ledger, NEW.id)
    ledger.control(NEW.id, JobCommand.TRIM, 30 * DAY)
    assert picture(ledger, NEW.id) == before
    backend.clock.advance(25 * DAY)
    ledger.control(NEW.id, JobCommand.TRIM, 30 * DAY)
    trimmed = ledger.events(NEW.id)
    ledger.control(NEW.id, JobCommand.TRIM, 30 * DAY)
    assert ledger.events(NEW.id) == trimmed
    assert trimmed[0].type is EventType.TRUNCATED


def test_old_log_lines_go_with_old_events(backend: Backend, ledger: Ledger) -> None:
    opened(ledger, NEW, film(NEW))
    worker(ledger)
    (lease,) = claim(ledger)
    ledger.log(lease.task, lease.fence, 1, ["old"])
    backend.clock.advance(DAY)
    ledger.log(lease.task, lease.fence, 2, ["new"])
    backend.clock.advance(DAY)
    ledger.control(NEW.id, JobCommand.TRIM, DAY + 60)
    lines = ledger.events(NEW.id, types={EventType.LOG}, task=lease.task)
    assert [e.data["line"] for e in lines] == ["new"]


def test_a_finished_job_is_forgotten_whole(ledger: Ledger) -> None:
    other = new_job("other")
    opened(ledger, NEW, film(NEW, chunks=120))
    opened(ledger, other, film(other))
    worker(ledger)
    (lease,) = claim(ledger, hinted=[film(NEW)[0].id])
    ledger.log(lease.task, lease.fence, 1, ["a line"])
    ledger.complete("w1", [done(lease, result("made", publishes=True))])
    ledger.control(NEW.id, JobCommand.CANCEL)
    kept = ledger.job(other.id), ledger.tasks(other.id), ledger.events(other.id)
    assert ledger.control(NEW.id, JobCommand.FORGET) is None
    with pytest.raises(NotFound):
        ledger.job(NEW.id)
    assert ledger.tasks(NEW.id).rows == ()
    assert ledger.tasks(ids=[lease.task]).rows == ()
    assert ledger.events(NEW.id) == ()
    assert ledger.events(NEW.id, types={EventType.LOG}, task=lease.task) == ()
    assert [job.id for job in ledger.jobs(OWNER).rows] == [other.id]
    assert ledger.jobs(OWNER, JobState.CANCELLED).rows == ()
    assert {task.job for state in TaskState for task in ledger.tasks(state=state).rows} == {other.id}
    assert Debt(OWNER, NEW.id, "made-key") not in ledger.sweep().debts
    assert (ledger.job(other.id), ledger.tasks(other.id), ledger.events(other.id)) == kept
    assert ledger.known(OWNER, ["made-key"]), "results are taken out by set_aside, by nothing else"


def test_a_job_that_is_not_finished_is_not_forgotten(ledger: Ledger) -> None:
    opened(ledger, NEW, film(NEW))
    before = picture(ledger, NEW.id)
    with pytest.raises(Refused):
        ledger.control(NEW.id, JobCommand.FORGET)
    assert picture(ledger, NEW.id) == before
    with pytest.raises(NotFound):
        ledger.control("job_nobody", JobCommand.FORGET)


def test_a_forgotten_job_can_be_submitted_again(ledger: Ledger) -> None:
    opened(ledger, NEW, film(NEW))
    worker(ledger)
    for lease in claim(ledger, n=9):
        ledger.fail("w1", lease.task, lease.fence, BROKEN, None)
    assert ledger.job(NEW.id).state is JobState.FAILED
    ledger.control(NEW.id, JobCommand.FORGET)
    opened(ledger, NEW, film(NEW))
    finish(ledger)
    assert ledger.job(NEW.id).state is JobState.COMPLETED
    assert [e.number for e in ledger.events(NEW.id)] == list(range(1, ledger.job(NEW.id).last_event + 1))


def test_a_change_after_a_job_was_forgotten_is_not_missed(ledger: Ledger) -> None:
    opened(ledger, NEW, film(NEW))
    ledger.control(NEW.id, JobCommand.CANCEL)
    seen = ledger.changed()[1]
    ledger.control(NEW.id, JobCommand.FORGET)
    ledger.submit(new_job("next"), first_of(new_job("next")))
    assert ledger.changed(seen)[0] == (new_job("next").id,)


def test_it_is_remembered_for_ninety_days_that_a_key_arrived(backend: Backend, ledger: Ledger) -> None:
    ledger.arrived("uploads/a", "etag")
    backend.clock.advance(89 * DAY)
    ledger.arrived("uploads/b", "etag")
    early, late = new_job("early"), new_job("late")
    ledger.submit(early, first_of(early, [Need("uploads/a", is_key=True)]))
    backend.clock.advance(2 * DAY)
    ledger.arrived("uploads/c", "etag")
    ledger.submit(late, first_of(late, [Need("uploads/a", is_key=True)]))
    states = {task.job: task.state for task in ledger.tasks().rows}
    assert states[early.id] is TaskState.READY
    if backend.name != "dynamodb":  # which removes what has expired some days later, or never
        assert states[late.id] is TaskState.WAITING
