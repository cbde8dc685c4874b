"""What is asked of a film that another machine works on: its holder does it, or the next one, in order and once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bucket_machines import FILM, OTHER, LosesAnswers, Machine, Machines, begin
from ledger_kit import BROKEN, first_of, worker

from rushes.bucket.conditional import ConditionalBucket
from rushes.domain.errors import NotFound, Requested
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, JobState
from rushes.domain.task import LEASE_SECONDS, TaskState
from rushes.ledger.bucket.mailbox import FilmRequest, Mailbox


def asks(machine: Machine, *commands: JobCommand) -> None:
    """A person asks for it where the film is not held."""
    for command in commands:
        machine.clock.advance(0.1)
        with pytest.raises(Requested, match=r"the worker that holds film.mp4 does it within 15 s"):
            machine.ledger.control(FILM.id, command)


def renews(machine: Machine) -> None:
    """Its worker renews, a while later."""
    machine.clock.advance(10)
    worker(machine.ledger, machine.name)


def asked(bucket: ConditionalBucket) -> list[str]:
    return [*bucket.list("checkpoints/film.mp4/requests/")]


def test_the_holder_of_a_film_does_what_is_asked_of_it(machine: Machines, film_bucket: ConditionalBucket) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    asks(b, JobCommand.PAUSE)
    renews(a)
    assert a.ledger.job(FILM.id).paused
    b.clock.advance(10)
    assert b.ledger.job(FILM.id).paused  # it is stored
    assert asked(film_bucket) == []


def test_what_is_asked_is_done_in_the_order_of_asking(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    asks(b, JobCommand.PAUSE, JobCommand.RESUME, JobCommand.PAUSE, JobCommand.RESUME)
    renews(a)
    told = [event.type for event in a.ledger.events(FILM.id, types={EventType.PAUSED, EventType.RESUMED})]
    assert told == [EventType.PAUSED, EventType.RESUMED] * 2


def test_clocks_of_those_who_ask_change_nothing_in_the_order(machine: Machines) -> None:
    a, b, c = machine("a"), machine("b"), machine("c")
    begin(a)
    b.clock.millis += 3_600_000
    asks(b, JobCommand.PAUSE, JobCommand.RESUME, JobCommand.PAUSE)
    asks(c, JobCommand.RESUME)
    renews(a)
    told = [event.type for event in a.ledger.events(FILM.id, types={EventType.PAUSED, EventType.RESUMED})]
    assert told == [EventType.PAUSED, EventType.RESUMED] * 2


def test_the_next_holder_does_what_a_dead_one_was_asked(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    a.ledger.films.store_changes()
    asks(b, JobCommand.CANCEL)
    a.dies()
    b.takes_over()
    assert b.ledger.job(FILM.id).state is JobState.CANCELLED
    b.ledger.revive(FILM.id)
    renews(b)
    assert b.ledger.job(FILM.id).state is JobState.RUNNING  # it is not cancelled a second time


def test_a_job_that_is_submitted_again_is_answered_after_what_a_dead_holder_was_asked(machine: Machines) -> None:
    """Else the pause that it was asked for comes after the command that should end it."""
    a, b = machine("a"), machine("b")
    begin(a)
    a.ledger.films.store_changes()
    asks(b, JobCommand.PAUSE)
    a.dies()
    for _ in range(2):
        b.clock.advance(LEASE_SECONDS)
        submitted = b.ledger.submit(FILM, first_of(FILM))
    assert submitted.job.paused
    assert b.ledger.control(FILM.id, JobCommand.RESUME)
    assert b.takes_over()


def test_a_request_that_cannot_be_deleted_is_not_done_again(deaf: Machine, tmp_path: Path) -> None:
    begin(deaf)
    asks(Machine(deaf.bucket, tmp_path / "b", "b"), JobCommand.PAUSE)
    assert isinstance(deaf.bucket, LosesAnswers)
    (deaf.bucket.kept,) = asked(deaf.bucket)
    renews(deaf)
    assert deaf.ledger.job(FILM.id).paused
    deaf.ledger.control(FILM.id, JobCommand.RESUME)
    renews(deaf)
    assert not deaf.ledger.job(FILM.id).paused
    deaf.bucket.kept = ""
    renews(deaf)
    assert asked(deaf.bucket) == []


def test_a_film_that_nobody_holds_is_taken_for_what_is_asked_of_it(
    machine: Machines, film_bucket: ConditionalBucket
) -> None:
    """Its holder released it between the question and the answer, and a paused film has no work to be taken for."""
    a, b = machine("a"), machine("b")
    begin(a)
    a.ledger.control(FILM.id, JobCommand.PAUSE)
    a.ledger.control("a", JobCommand.LEAVE)
    assert b.takes_over() == ()
    Mailbox(film_bucket, "checkpoints/film.mp4").put(FilmRequest(FILM.id, JobCommand.RESUME), 0)
    assert b.takes_over()


def test_dead_tasks_are_tried_again_by_whoever_holds_the_film(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    (lease,) = a.ledger.claim("a", ["cpu"], 1)
    a.ledger.fail("a", lease.task, lease.fence, BROKEN, None)
    a.ledger.films.store_changes()
    with pytest.raises(Requested):
        b.ledger.revive(FILM.id)
    renews(a)
    assert a.ledger.tasks(FILM.id, TaskState.DEAD).rows == ()


def test_a_worker_of_another_machine_drains_when_it_is_asked(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    a.ledger.films.store_changes()
    with pytest.raises(Requested):
        b.ledger.control("a", JobCommand.DRAIN)
    a.clock.advance(10)
    assert a.ledger.renew(a.me, {}, {}).drain
    with pytest.raises(NotFound):
        b.ledger.control("nobody", JobCommand.DRAIN)


def test_what_is_no_request_is_passed_over(machine: Machines, film_bucket: ConditionalBucket) -> None:
    a = machine("a")
    begin(a)
    for n, data in enumerate([b"", b"[]", b'{"target": "x", "command": "explode", "value": 0}', b"\xff" * 9]):
        film_bucket.swap(f"checkpoints/film.mp4/requests/at-{n:08x}.json", data, "", {}, "request")
    damaged: Any = {"sha256": "of other bytes"}
    film_bucket._store.put("checkpoints/film.mp4/requests/at-0000000a.json", b"{}", attributes=damaged)
    renews(a)
    assert asked(film_bucket) == []
    assert a.ledger.job(FILM.id).state is JobState.RUNNING


def test_a_film_in_a_folder_called_like_requests_is_none(machine: Machines, film_bucket: ConditionalBucket) -> None:
    """Else its database is deleted as if it had been dealt with."""
    a, b = machine("a"), machine("b")
    inner = replace(OTHER, name="film.mp4/requests/inner.mp4")
    begin(a)
    begin(a, inner)
    a.ledger.close()
    assert b.ledger.control(FILM.id, JobCommand.PAUSE)
    assert b.ledger.job(inner.id).state is JobState.RUNNING
    assert film_bucket.get(f"checkpoints/{inner.name}/ckpt.sqlite", body=False)


def test_leases_carry_the_token_of_their_film(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    (lease,) = a.ledger.claim("a", ["cpu"], 1)
    a.ledger.films.store_changes()
    a.dies()
    assert {later.token for later in b.takes_over()} == {lease.token + 1}
