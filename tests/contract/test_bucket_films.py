"""Films of a bucket home that pass from one machine to another: what is stored, what is refused, what is taken up."""

import itertools
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from ledger_kit import BROKEN, Clock, done, film, first_of, kill, new_job, opened, worker
from obstore.store import MemoryStore
from tests.faulty_http import conflict, flipped, lost, short, slow_down, way_to

from rushes.bucket.conditional import ConditionalBucket
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import Refused
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, JobState, NewJob
from rushes.domain.task import LEASE_SECONDS, Lease, TaskState, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger.bucket import BucketLedger
from rushes.ledger.bucket.film import OPEN, TOKEN, database_key, lock_key

_fresh = itertools.count()
FILM = new_job("film")
OTHER = new_job("other")


@pytest.fixture(params=["memory", "ministack", "seaweed"])
def bucket(request: pytest.FixtureRequest) -> ConditionalBucket:
    if request.param == "memory":
        return ConditionalBucket(MemoryStore())
    location: BucketLocation = request.getfixturevalue(f"{request.param}_s3")
    return ConditionalBucket.at(replace(location, prefix=f"films{next(_fresh)}"))


@dataclass
class Machine:
    """A machine of its own: a disk, clocks, and one process with a worker."""

    bucket: ConditionalBucket
    disk: Path
    name: str
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.disk.mkdir(exist_ok=True)
        self.me = Incarnation(self.name, f"host-{self.name}", f"boot-{self.name}", 1, "1", ("cpu",))
        self.ledger = BucketLedger(
            self.bucket, self.disk, self.me, lambda new: new.name, lambda key: key, clock=self.clock.now,
            wall=self.clock.wall, ledger_clock=self.clock.now, is_gone=lambda _worker: False,
        )  # fmt: skip

    def takes_over(self) -> tuple[Lease, ...]:
        """It looks until it has seen the lock unchanged for a lease, by its own clock, and claims."""
        leases: tuple[Lease, ...] = ()
        for _ in range(4):
            worker(self.ledger, self.name)
            self.ledger.sweep()
            leases += self.ledger.claim(self.name, ["cpu"], 8)
            self.clock.advance(LEASE_SECONDS / 2)
        worker(self.ledger, self.name)
        return leases

    def dies(self) -> None:
        """Nothing is flushed, and its disk is lost."""
        kill(self.ledger)
        shutil.rmtree(self.disk)


Machines = Callable[[str], Machine]


@pytest.fixture
def machine(bucket: ConditionalBucket, tmp_path: Path) -> Iterator[Machines]:
    made: list[Machine] = []

    def make(name: str) -> Machine:
        made.append(Machine(bucket, tmp_path / name, name))
        return made[-1]

    yield make
    for one in made:
        if one.disk.exists():
            one.ledger.close()


def begin(machine: Machine, new: NewJob = FILM, chunks: int = 3) -> tuple[str, ...]:
    return opened(machine.ledger, new, film(new, chunks), by=machine.name)


def test_the_database_in_the_bucket_can_be_opened_by_anybody(
    machine: Machines, bucket: ConditionalBucket, tmp_path: Path
) -> None:
    a = machine("a")
    begin(a)
    a.ledger.films.store_changes()
    stored = bucket.get(database_key("film.mp4"))
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


def test_a_released_film_leaves_no_lock(machine: Machines, bucket: ConditionalBucket) -> None:
    a = machine("a")
    a.ledger.submit(FILM, first_of(FILM))
    assert bucket.get(lock_key("film.mp4")) is None


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


def test_who_was_frozen_and_wakes_up_changes_nothing(machine: Machines, bucket: ConditionalBucket) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    (lease,) = a.ledger.claim("a", ["cpu"], 1)
    a.ledger.films.store_changes()
    assert b.takes_over()
    b.ledger.films.store_changes()
    stored = bucket.get(database_key("film.mp4"))
    a.ledger.complete("a", [done(lease)])  # it does not know yet
    a.ledger.films.store_changes()
    assert bucket.get(database_key("film.mp4")) == stored
    assert a.ledger.complete("a", [done(lease)]).verdicts == (Verdict.LOST,)
    assert a.ledger.fail("a", lease.task, lease.fence, BROKEN, None) is Verdict.LOST
    assert a.ledger.renew(a.me, {lease.task: lease.fence}, {}).leases == {lease.task: "lost"}
    assert b.ledger.tasks(FILM.id, TaskState.DONE).rows[0].stage == "probe"


def test_a_last_write_of_the_former_holder_is_taken_up(machine: Machines, bucket: ConditionalBucket) -> None:
    """Between the taking of the lock and the first write of the new holder."""
    a, b = machine("a"), machine("b")
    begin(a)
    (lease,) = a.ledger.claim("a", ["cpu"], 1)
    a.ledger.films.store_changes()
    a.ledger.complete("a", [done(lease)])
    real, late = bucket.swap, [a]

    def swap(key: str, *args: object) -> str | None:
        if key == database_key("film.mp4") and late:
            late.pop().ledger.films.store_changes()
        return real(key, *args)  # type: ignore[arg-type]

    b.ledger.films._bucket = bucket  # the same one
    bucket.swap = swap  # type: ignore[method-assign, assignment]
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


def test_a_film_that_another_machine_works_on_is_refused_to_commands(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    begin(a)
    with pytest.raises(Refused, match="worked on elsewhere"):
        b.ledger.control(FILM.id, JobCommand.PAUSE)
    assert not b.ledger.submit(FILM, first_of(FILM)).created  # it is there: nothing to write


def test_two_machines_work_on_two_films(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    for new in (FILM, OTHER):
        a.ledger.submit(new, first_of(new))
    worker(a.ledger, "a"), worker(b.ledger, "b")
    (one,), (two,) = a.ledger.claim("a", ["cpu"], 1), b.ledger.claim("b", ["cpu"], 1)
    assert {one.job, two.job} == {FILM.id, OTHER.id}
    assert not a.ledger.claim("a", ["cpu"], 1)


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


def test_a_finished_film_is_released_and_not_taken_again(machine: Machines, bucket: ConditionalBucket) -> None:
    a, b = machine("a"), machine("b")
    begin(a, chunks=1)
    while leases := a.ledger.claim("a", ["cpu"], 1):
        a.ledger.complete("a", [done(lease) for lease in leases])
    a.ledger.sweep()
    assert bucket.get(lock_key("film.mp4")) is None
    assert b.takes_over() == ()
    assert b.ledger.job(FILM.id).state is JobState.COMPLETED


FAULTS = {"lost": lost, "busy": slow_down, "conflict": conflict}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_on_the_way_of_a_write_loses_nothing(ministack_s3: BucketLocation, tmp_path: Path, name: str) -> None:
    with way_to(ministack_s3.endpoint) as (way, url):
        place = replace(ministack_s3, endpoint=url, prefix=f"films{next(_fresh)}")
        a = Machine(ConditionalBucket.at(place), tmp_path / "a", "a")
        way.spoil("PUT", "lock.json", FAULTS[name])
        way.spoil("PUT", "ckpt.sqlite", FAULTS[name], 2)
        a.ledger.submit(FILM, first_of(FILM))
        b = Machine(ConditionalBucket.at(replace(place, endpoint=ministack_s3.endpoint)), tmp_path / "b", "b")
        assert b.ledger.job(FILM.id).id == FILM.id
        assert b.takes_over()
        b.ledger.close()
        a.ledger.close()


@pytest.mark.parametrize("fault", [short, flipped], ids=["short", "flipped"])
def test_a_database_that_came_damaged_is_fetched_again(
    ministack_s3: BucketLocation, tmp_path: Path, fault: object
) -> None:
    with way_to(ministack_s3.endpoint) as (way, url):
        place = replace(ministack_s3, prefix=f"films{next(_fresh)}")
        a = Machine(ConditionalBucket.at(place), tmp_path / "a", "a")
        a.ledger.submit(FILM, first_of(FILM))
        b = Machine(ConditionalBucket.at(replace(place, endpoint=url)), tmp_path / "b", "b")
        way.spoil("GET", "ckpt.sqlite", fault, 2)  # type: ignore[arg-type]
        assert b.ledger.job(FILM.id).id == FILM.id
        assert b.takes_over()
        b.ledger.close()
        a.ledger.close()
