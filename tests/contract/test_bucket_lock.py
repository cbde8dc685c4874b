"""The lock of a film, on every bucket: one holder, tokens that only grow, and no clock of another machine believed."""

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest
from ledger_kit import Clock
from obstore.store import MemoryStore
from tests.faulty_http import lost, slow_down, way_to
from tests.google_storage import google_storage

from rushes.bucket.conditional import ConditionalBucket
from rushes.bucket.location import BucketLocation, parse_location
from rushes.domain.errors import StoreAway
from rushes.domain.task import LEASE_SECONDS
from rushes.domain.worker import Incarnation
from rushes.ledger.bucket.lock import FilmLock, parse_lock
from rushes.ledger.clock import boot_id, iso
from rushes.ledger.process import host_id

KEY = "checkpoints/videos/film.mp4/lock.json"
_fresh = itertools.count()


@pytest.fixture(scope="module")
def google() -> Iterator[str]:
    """Where Google's interface is spoken, by a stand-in of ours."""
    with google_storage() as server:
        yield server.url


def _azurite() -> BucketLocation:
    endpoint, _, key = os.environ[AZURITE].partition(",")
    return parse_location("az://rushes/locks", endpoint, endpoint.rpartition("/")[2], key)


AZURITE = "RUSHES_TEST_AZURITE"  # as in test_blobs.py


@pytest.fixture(params=["memory", "ministack", "seaweed", "google", *(["azurite"] if AZURITE in os.environ else [])])
def bucket(request: pytest.FixtureRequest) -> ConditionalBucket:
    if request.param == "memory":
        return ConditionalBucket(MemoryStore())
    if request.param == "google":
        return ConditionalBucket.at(parse_location(f"gs://b/{next(_fresh)}", request.getfixturevalue("google")))
    if request.param == "azurite":
        return ConditionalBucket.at(replace(_azurite(), prefix=f"lock{uuid4()}"))
    location: BucketLocation = request.getfixturevalue(f"{request.param}_s3")
    return ConditionalBucket.at(replace(location, prefix=f"lock{next(_fresh)}"))


@dataclass
class Machine:
    """A process on a machine of its own, with its own clocks."""

    bucket: ConditionalBucket
    name: str
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        me = Incarnation(self.name, f"host-{self.name}", f"boot-{self.name}", 1, "1")
        self.lock = FilmLock(self.bucket, KEY, me, self.clock.now, self.clock.wall)

    def sees_it_expire(self) -> None:
        """It looks, waits for a lease by its own clock, and looks again."""
        assert not self.lock.acquire(0)
        self.clock.advance(LEASE_SECONDS)


@pytest.fixture
def machine(bucket: ConditionalBucket) -> Callable[[str], Machine]:
    return lambda name: Machine(bucket, name)


Machines = Callable[[str], Machine]


def test_what_nobody_holds_can_be_taken(machine: Machines, bucket: ConditionalBucket) -> None:
    a = machine("a")
    assert a.lock.acquire(0)
    assert a.lock.held
    stored = bucket.get(KEY)
    document = parse_lock(stored.data) if stored else None
    assert document
    assert (document.worker_id, document.fencing_token) == ("a", 1)
    assert (document.acquired_at, document.expires_at) == (
        iso(a.clock.millis),
        iso(a.clock.millis + int(LEASE_SECONDS * 1000)),
    )


def test_what_another_holds_cannot_be_taken(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    assert a.lock.acquire(0)
    assert not b.lock.acquire(0)
    assert not b.lock.held


def test_of_many_who_come_at_once_one_has_it(machine: Machines) -> None:
    machines = [machine(f"m{n}") for n in range(8)]
    threads = [threading.Thread(target=one.lock.acquire, args=[0]) for one in machines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(one.lock.held for one in machines) == 1


def test_a_renewed_lock_is_never_taken(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    a.lock.acquire(0)
    for _ in range(4):
        assert not b.lock.acquire(0)
        b.clock.advance(LEASE_SECONDS - 1)
        a.clock.advance(LEASE_SECONDS - 1)
        assert a.lock.renew()
    assert not b.lock.acquire(0)


def test_a_lock_that_stays_as_it_is_for_a_lease_is_taken_over(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    a.lock.acquire(0)
    b.sees_it_expire()
    assert b.lock.acquire(0)
    assert (b.lock.token, b.lock.taken_from) == (2, "a")


def test_the_former_holder_learns_it_at_its_next_renewal(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    a.lock.acquire(0)
    b.sees_it_expire()
    b.lock.acquire(0)
    assert not a.lock.renew()
    assert not a.lock.held
    assert not a.lock.renew()  # also when it asks again
    assert b.lock.renew()


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_wrong_by_an_hour_takes_nothing(machine: Machines, hours: int) -> None:
    a, b = machine("a"), machine("b")
    b.clock.millis += hours * 3_600_000
    a.lock.acquire(0)
    assert not b.lock.acquire(0)
    b.clock.advance(LEASE_SECONDS - 1)
    assert not b.lock.acquire(0)


def test_who_is_late_with_a_renewal_keeps_what_nobody_took(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    a.lock.acquire(0)
    a.clock.advance(10 * LEASE_SECONDS)
    assert not a.lock.held  # not for certain
    assert a.lock.renew()
    assert a.lock.held
    assert not b.lock.acquire(0)


def test_a_released_lock_can_be_taken_at_once(machine: Machines, bucket: ConditionalBucket) -> None:
    a, b = machine("a"), machine("b")
    a.lock.acquire(0)
    a.lock.release()
    assert bucket.get(KEY) is None
    assert b.lock.acquire(a.lock.token)
    assert (b.lock.token, b.lock.taken_from) == (2, "")


def test_who_may_have_lost_it_does_not_delete_anothers_lock(machine: Machines, bucket: ConditionalBucket) -> None:
    a, b = machine("a"), machine("b")
    a.lock.acquire(0)
    a.clock.advance(LEASE_SECONDS)
    b.sees_it_expire()
    b.lock.acquire(0)
    a.lock.release()
    assert b.lock.renew()


def test_who_slept_does_not_delete_the_lock_that_another_took_meanwhile(machine: Machines) -> None:
    a, b = machine("a"), machine("b")
    a.lock.acquire(0)
    b.sees_it_expire()
    assert b.lock.acquire(0)
    assert a.lock.held, "its clock stood still"
    a.lock.release()
    assert b.lock.renew()


def test_the_token_is_greater_than_the_last_one_of_the_database(machine: Machines) -> None:
    a = machine("a")
    assert a.lock.acquire(41)
    assert a.lock.token == 42


def test_tokens_only_grow(machine: Machines) -> None:
    tokens, last = [], 0
    for n in range(5):
        one = machine(f"m{n}")
        if not one.lock.acquire(last):
            one.clock.advance(LEASE_SECONDS)
            assert one.lock.acquire(last)
        tokens.append(last := one.lock.token)
        if n % 2:
            one.lock.release()
    assert tokens == sorted(set(tokens))


def test_a_lock_that_is_no_lock_is_nobodys(machine: Machines, bucket: ConditionalBucket) -> None:
    bucket.swap(KEY, b'{"worker_id": "x"}', "", {}, "lock")
    a = machine("a")
    assert a.lock.acquire(0)


def test_the_lock_of_a_process_of_this_machine_that_is_gone_is_over(bucket: ConditionalBucket) -> None:
    clock = Clock()
    dead = Incarnation("dead", host_id(), boot_id(), 2**22 + 1, "1@nothing")
    gone = FilmLock(bucket, KEY, replace(dead, pid_start="1"), clock.now, clock.wall)
    assert gone.acquire(0)
    b = Machine(bucket, "b")
    assert b.lock.acquire(0)
    assert b.lock.taken_from == "dead"


def test_two_who_see_it_expire_do_not_both_take_it(machine: Machines) -> None:
    a, b, c = machine("a"), machine("b"), machine("c")
    a.lock.acquire(0)
    b.sees_it_expire()
    c.sees_it_expire()
    assert b.lock.acquire(0)
    assert not c.lock.acquire(0)


def test_a_write_whose_answer_was_lost_is_known_as_our_own(s3_server: BucketLocation) -> None:
    with way_to(s3_server.endpoint) as (way, url):
        place = replace(s3_server, endpoint=url, prefix=f"lock{next(_fresh)}")
        a = Machine(ConditionalBucket.at(place), "a")
        way.spoil("PUT", "lock.json", lost)
        assert a.lock.acquire(0)
        way.spoil("PUT", "lock.json", lost)
        assert a.lock.renew()
        way.spoil("PUT", "lock.json", slow_down, 2)
        assert a.lock.renew()
        assert a.lock.held


def test_a_bucket_that_is_away_does_not_take_the_lock_from_us(s3_server: BucketLocation) -> None:
    with way_to(s3_server.endpoint) as (way, url):
        place = replace(s3_server, endpoint=url, prefix=f"lock{next(_fresh)}", patience=0.3)
        a = Machine(ConditionalBucket.at(place), "a")
        assert a.lock.acquire(0)
        way.spoil("PUT", "lock.json", slow_down, 50)
        with pytest.raises(StoreAway):
            a.lock.renew()
        assert a.lock.held
