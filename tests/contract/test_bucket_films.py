"""Films of a bucket home that pass from one machine to another: what is stored, what is refused, what is taken up."""

import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bucket_machines import FILM, OTHER, LosesAnswers, Machine, Machines, begin, forgets, fresh
from ledger_kit import BROKEN, done, first_of, kill, new_job, worker
from obstore.store import MemoryStore
from tests.faulty_http import conflict, flipped, lost, short, slow_down, way_to

from rushes.bucket.conditional import ConditionalBucket, StoredObject
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import StoreAway, TryAgain, WrongHome
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, JobState
from rushes.domain.result import Result
from rushes.domain.task import LEASE_SECONDS, RENEW_SECONDS, Finish, Lease, TaskState, Verdict
from rushes.ledger.bucket.film import OPEN, TOKEN, Film, database_key, lock_key
from rushes.worker.task_filter import FilteredTasks, TaskFilter


def test_the_database_in_the_bucket_can_be_opened_by_anybody(
    machine: Machines, film_bucket: ConditionalBucket, tmp_path: Path
) -> None:
    a = machine("a")
    begin(a)
    a.ledger.films.store_changes()
    stored = film_bucket.get(database_key("film.mp4"))
    assert stored
    assert (stored.labels[TOKEN], stored.labels[OPEN]) == ("2", "1")  # the second time that it was taken
    (tmp_path / "copy.sqlite").write_bytes(stored.data)
    with sqlite3.connect(tmp_path / "copy.sqlite") as db:
        assert db.execute("SELECT count(*) FROM task").fetchone() == (5,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_what_a_person_asked_is_stored_before_it_is_answered(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    a.ledger.submit(FILM, first_of(FILM))
    a.dies()
    assert b.ledger.job(FILM.id).state is JobState.CREATED
    b.ledger.control(FILM.id, JobCommand.CANCEL)
    assert machine("c").ledger.job(FILM.id).state is JobState.CANCELLED


def test_a_released_film_leaves_no_lock(machine: Machines, film_bucket: ConditionalBucket) -> None:
    a = machine("a")
    a.ledger.submit(FILM, first_of(FILM))
    assert film_bucket.get(lock_key("film.mp4")) is None


def test_another_machine_goes_on_where_the_dead_one_was_stored(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    first, second = a.ledger.claim("a", ["cpu"], 2)
    a.ledger.complete("a", [done(first)])
    a.ledger.films.store_changes()
    a.ledger.complete("a", [done(second)])  # its disk dies with what is not stored
    a.dies()
    leases = b.takes_over()
    assert first.task not in {lease.task for lease in leases}
    assert second.task in {lease.task for lease in leases}
    (over,) = b.ledger.events(FILM.id, types={EventType.TAKEN_OVER})
    assert over.data == {"from": "a", "worker": "b", "fencing_token": 3}
    assert [event.number for event in b.ledger.events(FILM.id)] == [*range(1, len(b.ledger.events(FILM.id)) + 1)]


def test_who_was_frozen_and_wakes_up_changes_nothing(machine: Machines, film_bucket: ConditionalBucket) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    (lease,) = a.ledger.claim("a", ["cpu"], 1)
    a.ledger.films.store_changes()
    assert b.takes_over()
    b.ledger.films.store_changes()
    stored = film_bucket.get(database_key("film.mp4"))
    a.ledger.complete("a", [done(lease)])  # it does not know yet
    a.ledger.films.store_changes()
    assert film_bucket.get(database_key("film.mp4")) == stored
    assert a.ledger.complete("a", [done(lease)]).verdicts == (Verdict.LOST,)
    assert a.ledger.fail("a", lease.task, lease.fence, BROKEN, None) is Verdict.LOST
    assert a.ledger.renew(a.me, {lease.task: lease.fence}, {}).leases == {lease.task: "lost"}
    assert b.ledger.tasks(FILM.id, TaskState.DONE).rows[0].stage == "probe"


def test_a_last_write_of_the_former_holder_is_taken_up(machine: Machines, film_bucket: ConditionalBucket) -> None:
    """Between the taking of the lock and the first write of the new holder."""
    a, b = machine("a"), machine("b")
    begin(a)
    (lease,) = a.ledger.claim("a", ["cpu"], 1)
    a.ledger.films.store_changes()
    a.ledger.complete("a", [done(lease)])
    real, late = film_bucket.swap, [a]

    def swap(key: str, *args: object) -> str | None:
        if key == database_key("film.mp4") and late:
            late.pop().ledger.films.store_changes()
        return real(key, *args)  # type: ignore[arg-type]

    b.ledger.films._bucket = film_bucket  # the same one
    film_bucket.swap = swap  # type: ignore[method-assign, assignment]
    b.takes_over()
    assert lease.task in {row.id for row in b.ledger.tasks(FILM.id, TaskState.DONE).rows}


def test_a_process_that_died_on_this_machine_lost_nothing_that_was_on_its_disk(machine: Machines) -> None:
    a = machine("a")
    begin(a)
    (lease,) = a.ledger.claim("a", ["cpu"], 1)
    a.ledger.films.store_changes()
    a.ledger.complete("a", [done(lease)])
    kill(a.ledger)
    again = Machine(a.bucket, a.disk, "again")
    again.takes_over()
    assert lease.task in {row.id for row in again.ledger.tasks(FILM.id, TaskState.DONE).rows}
    again.ledger.close()


def test_a_job_that_is_there_is_found_while_another_machine_works_on_it(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    assert not b.ledger.submit(FILM, first_of(FILM)).created


def test_two_machines_work_on_two_films(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    for new in (FILM, OTHER):
        a.ledger.submit(new, first_of(new))
    worker(a.ledger, "a"), worker(b.ledger, "b")
    (one,), (two,) = a.ledger.claim("a", ["cpu"], 1), b.ledger.claim("b", ["cpu"], 1)
    assert {one.job, two.job} == {FILM.id, OTHER.id}
    assert not a.ledger.claim("a", ["cpu"], 1)


def test_a_film_that_waits_for_a_slot_is_left_to_other_machines(machine: Machines) -> None:
    """A machine with one slot takes a second film while the first has nothing ready for a moment."""
    a, b = machine("a"), machine("b")
    begin(a)
    begin(a, OTHER)
    held = a.ledger.claim("a", ["cpu"], 1)
    renewing = {lease.task: lease.fence for lease in held}
    for _ in range(2):
        assert len([*a.ledger.films]) == 2
        assert a.ledger.renew(a.me, renewing, {}).leases == dict.fromkeys(renewing, "keep")
    (waits,) = {FILM.id, OTHER.id} - {lease.job for lease in held}
    worker(b.ledger, "b")
    b.clock.advance(10)
    assert {lease.job for lease in b.ledger.claim("b", ["cpu"], 8)} == {waits}


def test_a_new_job_for_a_film_that_another_machine_holds_is_refused_with_its_name(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    again = replace(new_job("again"), name=FILM.name)
    with pytest.raises(TryAgain, match=r"worker a is working on film.mp4"):
        b.ledger.submit(again, first_of(again))


def test_readers_see_all_films_in_order(machine: Machines) -> None:
    a, reader = machine("a"), machine("reader")
    for n in range(5):
        a.clock.advance(1)
        new = new_job(f"film{n}")
        a.ledger.submit(new, first_of(new))
    page = reader.ledger.jobs("ann", limit=2)
    names = [job.name for job in page.rows]
    while page.cursor:
        page = reader.ledger.jobs("ann", limit=2, cursor=page.cursor)
        names += [job.name for job in page.rows]
    assert names == [f"film{n}.mp4" for n in (4, 3, 2, 1, 0)]
    changed, cursor = reader.ledger.changed()
    assert len(changed) == 5
    assert reader.ledger.changed(cursor) == ((), cursor)
    a.ledger.control(new.id, JobCommand.CANCEL)
    reader.clock.advance(10)
    assert reader.ledger.changed(cursor)[0] == (new.id,)


def test_a_finished_film_is_released_and_not_taken_again(machine: Machines, film_bucket: ConditionalBucket) -> None:
    a, b = machine("a"), machine("b")
    begin(a, chunks=1)
    while leases := a.ledger.claim("a", ["cpu"], 1):
        a.ledger.complete("a", [done(lease) for lease in leases])
    a.ledger.sweep()
    assert film_bucket.get(lock_key("film.mp4")) is None
    assert b.takes_over() == ()
    assert b.ledger.job(FILM.id).state is JobState.COMPLETED


FAULTS = {"lost": lost, "busy": slow_down, "conflict": conflict}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_on_the_way_of_a_write_loses_nothing(s3_server: BucketLocation, tmp_path: Path, name: str) -> None:
    with way_to(s3_server.endpoint) as (way, url):
        place = replace(s3_server, endpoint=url, prefix=f"films{next(fresh)}")
        a = Machine(ConditionalBucket.at(place), tmp_path / "a", "a")
        way.spoil("PUT", "lock.json", FAULTS[name])
        way.spoil("PUT", "ckpt.sqlite", FAULTS[name], 2)
        a.ledger.submit(FILM, first_of(FILM))
        b = Machine(ConditionalBucket.at(replace(place, endpoint=s3_server.endpoint)), tmp_path / "b", "b")
        assert b.ledger.job(FILM.id).id == FILM.id
        assert b.takes_over()
        b.ledger.close()
        a.ledger.close()


@pytest.mark.parametrize("fault", [short, flipped], ids=["short", "flipped"])
def test_a_database_that_came_damaged_is_fetched_again(
    ministack_s3: BucketLocation, tmp_path: Path, fault: object
) -> None:
    with way_to(ministack_s3.endpoint) as (way, url):
        place = replace(ministack_s3, prefix=f"films{next(fresh)}")
        a = Machine(ConditionalBucket.at(place), tmp_path / "a", "a")
        a.ledger.submit(FILM, first_of(FILM))
        b = Machine(ConditionalBucket.at(replace(place, endpoint=url)), tmp_path / "b", "b")
        way.spoil("GET", "ckpt.sqlite", fault, 2)  # type: ignore[arg-type]
        assert b.ledger.job(FILM.id).id == FILM.id
        way.spoil("GET", "ckpt.sqlite", fault, 2)  # type: ignore[arg-type]
        assert b.bucket.get(database_key("film.mp4")) == a.bucket.get(database_key("film.mp4"))
        assert b.takes_over()
        way.spoil("GET", "ckpt.sqlite", fault, 99)  # type: ignore[arg-type]
        with pytest.raises((WrongHome, StoreAway)):
            b.bucket.get(database_key("film.mp4"))
        b.ledger.close()
        a.ledger.close()


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The databases that anybody has fetched."""
    found, real = list[str](), ConditionalBucket.get

    def get(self: ConditionalBucket, key: str, *, body: bool = True) -> StoredObject | None:
        found.append(key) if body and key.endswith(".sqlite") else None
        return real(self, key, body=body)

    monkeypatch.setattr(ConditionalBucket, "get", get)
    return found


def test_a_worker_fetches_no_film_but_its_own(machine: Machines, fetched: list[str]) -> None:
    """A prefix may have thousands."""
    a, b = machine("a"), machine("b")
    for new in (OTHER, new_job("third"), FILM):
        a.ledger.submit(new, first_of(new))
    fetched.clear()
    worker(b.ledger, "b")
    at_work = b.ledger.for_work()
    (lease,) = at_work.claim("b", ["cpu"], 1)
    assert at_work.renew(b.me, {lease.task: lease.fence}, {}).leases == {lease.task: "keep"}
    assert at_work.complete("b", [done(lease)]).verdicts == (Verdict.OK,)
    assert len(fetched) == 1


def test_who_takes_in_a_film_fetches_no_other(machine: Machines, fetched: list[str]) -> None:
    """Also when it is there already: a machine that starts sees every film of its prefix."""
    a, b = machine("a"), machine("b")
    for new in (OTHER, new_job("third"), FILM):
        a.ledger.submit(new, first_of(new))
    fetched.clear()
    assert b.ledger.submit(new_job("fourth"), first_of(new_job("fourth"))).created
    assert not b.ledger.submit(FILM, first_of(FILM)).created
    assert fetched == [database_key("film.mp4")]


def test_a_reader_fetches_the_films_that_changed_and_no_other(machine: Machines, fetched: list[str]) -> None:
    a, reader = machine("a"), machine("reader")
    for new in (FILM, OTHER, new_job("third")):
        a.ledger.submit(new, first_of(new))
    assert len(reader.ledger.jobs("ann").rows) == 3
    a.ledger.control(OTHER.id, JobCommand.CANCEL)
    fetched.clear()
    reader.clock.advance(10)
    states = {job.id: job.state for job in reader.ledger.jobs("ann").rows}
    assert states[OTHER.id] is JobState.CANCELLED
    assert fetched == [database_key("other.mp4")]


def test_nobody_asks_again_and_again_about_a_lock_that_is_renewed(
    machine: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without work would else make a request for each film of a fleet, every second."""
    a, b = machine("a"), machine("b")
    begin(a)
    a.ledger.films.store_changes()
    asked, real = [], ConditionalBucket.get

    def get(self: ConditionalBucket, key: str, *, body: bool = True) -> StoredObject | None:
        asked.append(key)
        return real(self, key, body=body)

    worker(b.ledger, "b")
    assert b.ledger.claim("b", ["cpu"], 1) == ()
    monkeypatch.setattr(ConditionalBucket, "get", get)
    for _ in range(8):
        a.clock.advance(RENEW_SECONDS)
        b.clock.advance(RENEW_SECONDS)
        worker(a.ledger, "a"), worker(b.ledger, "b")
        assert b.ledger.claim("b", ["cpu"], 1) == ()
    assert asked == []
    assert b.takes_over()


def test_lists_of_the_bucket_that_are_late_lose_and_double_nothing(machine: Machines) -> None:
    """A list shows what there was one look before; what is done is decided by the objects themselves."""
    a, b = machine("a"), machine("b")
    for one in (a, b):
        _lags(one.ledger._copies._bucket)
    begin(a, chunks=2)
    ran: list[str] = []
    for one in (a, b) * 12:
        worker(one.ledger, one.name)
        leases = one.ledger.claim(one.name, ["cpu"], 1)
        ran += [lease.task for lease in leases]
        assert set(one.ledger.complete(one.name, [done(lease) for lease in leases]).verdicts) <= {Verdict.OK}
        one.ledger.films.store_changes()
        one.ledger.sweep()
        one.clock.advance(RENEW_SECONDS)
    assert len(ran) == len(set(ran)) == 3
    assert b.ledger.job(FILM.id).state is JobState.COMPLETED


def _lags(bucket: ConditionalBucket) -> None:
    before, real = [dict[str, str]()], bucket.list

    def late(prefix: str) -> dict[str, str]:
        before.append(real(prefix))
        return before[-2]

    bucket.list = late  # type: ignore[method-assign]


def test_a_database_whose_answer_was_lost_is_not_taken_for_anothers(deaf: Machine) -> None:
    begin(deaf)
    first, second = deaf.ledger.claim("deaf", ["cpu"], 2)
    deaf.ledger.complete("deaf", [done(first)])
    forgets(deaf, database_key("film.mp4"))
    deaf.ledger.films.store_changes()
    deaf.ledger.films.store_changes()
    assert deaf.ledger.complete("deaf", [done(second)]).verdicts == (Verdict.OK,)


def test_a_lock_whose_answer_was_lost_is_still_ours(deaf: Machine) -> None:
    begin(deaf)
    (lease,) = deaf.ledger.claim("deaf", ["cpu"], 1)
    for _ in range(2):
        forgets(deaf, lock_key("film.mp4"))
        assert deaf.ledger.renew(deaf.me, {lease.task: lease.fence}, {}).leases == {lease.task: "keep"}
    assert deaf.ledger.renew(deaf.me, {lease.task: lease.fence}, {}).leases == {lease.task: "keep"}


def test_a_film_whose_taking_was_not_answered_is_taken_at_once_the_next_time(deaf: Machine) -> None:
    for key in (lock_key("film.mp4"), database_key("film.mp4")):
        forgets(deaf, key)
        with pytest.raises(StoreAway):
            deaf.ledger.submit(FILM, first_of(FILM))
    assert deaf.ledger.submit(FILM, first_of(FILM)).job.id == FILM.id


def test_a_release_that_is_not_answered_leaves_a_film_that_can_be_read(deaf: Machine) -> None:
    forgets(deaf, lock_key("film.mp4"), True)
    deaf.ledger.submit(FILM, first_of(FILM))
    assert deaf.ledger.job(FILM.id).state is JobState.CREATED


def test_what_could_not_be_stored_for_a_person_is_not_held_any_more(deaf: Machine, tmp_path: Path) -> None:
    """Nobody would renew its lock, and readers here would see no other machine's work."""
    deaf.ledger.submit(FILM, first_of(FILM))
    forgets(deaf, database_key("film.mp4"), True, False)
    with pytest.raises(StoreAway):
        deaf.ledger.control(FILM.id, JobCommand.PRIORITY, 5)
    other = Machine(deaf.bucket, tmp_path / "other", "other")
    other.takes_over()
    other.ledger.control(FILM.id, JobCommand.CANCEL)
    deaf.clock.advance(10)
    assert deaf.ledger.job(FILM.id).state is JobState.CANCELLED
    other.ledger.close()


def test_a_job_that_could_not_be_stored_is_not_acknowledged_when_it_is_asked_again(deaf: Machine) -> None:
    worker(deaf.ledger, deaf.name)
    assert isinstance(deaf.bucket, LosesAnswers)
    deaf.ledger.films.take(FILM.name)
    deaf.bucket.away = True
    for _ in range(2):
        with pytest.raises(StoreAway):
            deaf.ledger.submit(FILM, first_of(FILM))
    deaf.bucket.away = False
    assert deaf.ledger.submit(FILM, first_of(FILM)).job.id == FILM.id
    film = deaf.ledger.films.held(FILM.name)
    assert film
    assert not film.changed


@pytest.mark.parametrize("hinted", [False, True])
def test_what_is_leased_of_one_film_reaches_the_worker_though_another_fails(
    machine: Machines, monkeypatch: pytest.MonkeyPatch, hinted: bool
) -> None:
    """Else a worker that lives holds tasks that it does not know."""
    a, claimed, real = machine("a"), list[str](), Film.claim
    ready = (*begin(a), *begin(a, OTHER))
    claimed.clear()
    tasks = ready if hinted else ()

    def claim(film: Film, *args: Any) -> list[Lease]:
        claimed.append(film.name)
        if len(claimed) == 2:
            raise StoreAway("the disk is full")
        return real(film, *args)

    monkeypatch.setattr(Film, "claim", claim)
    leases = [*a.ledger.claim("a", ["cpu"], 9, tasks), *a.ledger.claim("a", ["cpu"], 9, tasks)]
    assert len(claimed) == 4
    assert len(leases) == len({lease.task for lease in leases}) == 6


def test_work_goes_on_while_the_bucket_is_away_for_longer_than_a_lease(deaf: Machine) -> None:
    begin(deaf)
    (lease,) = deaf.ledger.claim("deaf", ["cpu"], 1)
    assert isinstance(deaf.bucket, LosesAnswers)
    deaf.bucket.away = True
    for _ in range(4):
        deaf.clock.advance(LEASE_SECONDS / 2)
        assert deaf.ledger.renew(deaf.me, {lease.task: lease.fence}, {}).leases == {lease.task: "keep"}
    deaf.bucket.away = False
    assert deaf.ledger.complete("deaf", [done(lease)]).verdicts == (Verdict.OK,)


def test_two_that_ask_one_after_the_other_have_tokens_that_grow(
    machine: Machines, film_bucket: ConditionalBucket
) -> None:
    """Quicker than either looks again at what the bucket has."""
    a, b = machine("a"), machine("b")
    a.ledger.submit(FILM, first_of(FILM))
    tokens = []
    for one in (b, a, b, a):
        one.ledger.control(FILM.id, JobCommand.RESUME)
        stored = film_bucket.get(database_key("film.mp4"))
        tokens.append(int(stored.labels[TOKEN]) if stored else 0)
    assert tokens == sorted(set(tokens))


def test_a_damaged_database_does_not_stop_work_on_other_films(
    machine: Machines, film_bucket: ConditionalBucket
) -> None:
    a = machine("a")
    a.ledger.submit(OTHER, first_of(OTHER))
    film_bucket.swap(database_key("a-first.mp4"), b"no database" * 100, "", {TOKEN: "x", OPEN: "1"}, "checkpoint")
    a.clock.advance(10)
    worker(a.ledger, "a")
    assert [lease.job for lease in a.ledger.claim("a", ["cpu"], 1)] == [OTHER.id]
    assert [job.id for job in a.ledger.jobs("ann").rows] == [OTHER.id]


def test_the_thread_that_stores_outlives_an_error_that_nobody_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = Machine(ConditionalBucket(MemoryStore()), tmp_path / "a", "a", stores=True)
    a.ledger.films._store_seconds = 0.01
    begin(a)
    a.ledger.films.store_changes()
    (film_held,) = a.ledger.films
    real, met = film_held.store, threading.Event()

    def broken() -> None:
        met.set()
        film_held.store = real  # type: ignore[method-assign]
        raise ValueError("a bug")

    film_held.store = broken  # type: ignore[method-assign]
    (lease,) = a.ledger.claim("a", ["cpu"], 1)
    a.ledger.complete("a", [done(lease)])
    assert met.wait(60)
    until = time.monotonic() + 60
    while film_held.changed and time.monotonic() < until:
        time.sleep(0.05)
    assert not film_held.changed
    a.ledger.close()


def test_a_reader_that_meets_a_release_looks_again(machine: Machines) -> None:
    a = machine("a")
    begin(a)
    (film_held,) = a.ledger.films
    directory = a.ledger._directory
    real, closings = directory.reader, [1, 2, 3]

    def reader(job: str) -> object:
        found = real(job)
        if closings.pop() == 1:
            directory.reader = real  # type: ignore[method-assign]
        a.ledger.films.release(film_held)
        assert found
        found.close()
        a.ledger._copies._copies.clear()
        return found

    directory.reader = reader  # type: ignore[method-assign, assignment]
    assert a.ledger.job(FILM.id).id == FILM.id


def test_a_working_copy_that_another_machine_went_on_from_is_not_taken_up(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    a.ledger.films.store_changes()
    kill(a.ledger)  # its disk stays
    (lease, *_) = b.takes_over()
    b.ledger.complete("b", [done(lease)])
    b.ledger.films.store_changes()
    kill(b.ledger)
    again = Machine(a.bucket, a.disk, "again")
    again.takes_over()
    assert lease.task in {row.id for row in again.ledger.tasks(FILM.id, TaskState.DONE).rows}
    again.ledger.close()


def test_a_copy_that_another_process_of_the_machine_dropped_is_fetched_again(machine: Machines) -> None:
    """Whoever opens it just then finds an empty file of its name, and would see a film without jobs for ever."""
    a, reader = machine("a"), machine("reader")
    a.ledger.submit(FILM, first_of(FILM))
    assert reader.ledger.job(FILM.id).id == FILM.id
    reader.ledger.close()
    (copy,) = (reader.disk / "copies").glob("*/*.sqlite")
    copy.write_bytes(b"")
    (part := copy.with_name(".copy.sqlite.part")).touch()  # which yet another process is just writing
    again = Machine(reader.bucket, reader.disk, "again")
    assert again.ledger.job(FILM.id).id == FILM.id
    assert again.ledger.changed()[0] == (FILM.id,)
    assert part.exists()
    again.ledger.close()


def test_who_works_on_one_job_goes_on_with_a_film_of_which_a_dead_machine_had_all_in_hand(machine: Machines) -> None:
    """Nothing of it is ready, so there is nothing to claim, until somebody takes the film."""
    a, b = machine("a"), machine("b")
    begin(a)
    in_hand = {lease.task for lease in a.ledger.claim("a", ["cpu"], 8)}
    a.ledger.films.store_changes()
    a.dies()
    tasks, claimed = FilteredTasks(b.ledger, TaskFilter(lambda _task: True, (FILM.id,))), set[str]()
    for _ in range(4):
        worker(b.ledger, "b")
        hinted = tasks.find(["cpu"], 8)
        claimed |= {lease.task for lease in b.ledger.claim("b", ["cpu"], 8, hinted)} if hinted else set()
        b.clock.advance(LEASE_SECONDS / 2)
    worker(b.ledger, "b")
    hinted = tasks.find(["cpu"], 8)
    assert claimed | {lease.task for lease in b.ledger.claim("b", ["cpu"], 8, hinted)} == in_hand


def test_results_of_every_film_are_known_to_who_looks_and_of_its_own_films_to_who_works(machine: Machines) -> None:
    """Else search forgets, and verify calls lost, whatever nobody works on."""
    a, reader = machine("a"), machine("reader")
    begin(a)
    (lease,) = a.ledger.claim("a", ["cpu"], 1)
    result = Result("key", "noop", "ab" * 32, 100, 1)
    a.ledger.complete("a", [Finish(lease.task, lease.fence, (result,))])
    assert a.ledger.for_work().known("ann", [result.key]) == {result.key: result}
    a.ledger.control("a", JobCommand.LEAVE)
    assert reader.ledger.known("ann", [result.key, "none"]) == {result.key: result}
    assert reader.ledger.for_work().known("ann", [result.key]) == {}
