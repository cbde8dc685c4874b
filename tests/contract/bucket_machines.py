"""Machines that share a bucket and nothing else, and a bucket that loses its answers."""

import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ledger_kit import Clock, film, kill, new_job, opened, worker
from obstore.store import MemoryStore

from rushes.bucket.conditional import ConditionalBucket
from rushes.domain.errors import StoreAway
from rushes.domain.job import NewJob
from rushes.domain.task import LEASE_SECONDS, Lease
from rushes.domain.worker import Incarnation
from rushes.ledger.bucket import BucketLedger

T = TypeVar("T")
fresh = itertools.count()
FILM = new_job("film")
OTHER = new_job("other")


@dataclass
class Machine:
    """A machine of its own: a disk, clocks, and one process with a worker."""

    bucket: ConditionalBucket
    disk: Path
    name: str
    clock: Clock = field(default_factory=Clock)
    stores: bool = False  # by itself, in its thread; else a test that says what is not stored yet would race with it

    def __post_init__(self) -> None:
        self.disk.mkdir(exist_ok=True)
        self.me = Incarnation(self.name, f"host-{self.name}", f"boot-{self.name}", 1, "1", ("cpu",))
        self.ledger = BucketLedger(
            self.bucket, self.disk, self.me, lambda new: new.name, lambda key: key, clock=self.clock.now,
            wall=self.clock.wall, ledger_clock=self.clock.now, is_gone=lambda _worker: False,
        )  # fmt: skip
        if not self.stores:
            self.ledger.films._start = lambda: None  # type: ignore[method-assign] # store_changes is what it does

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


def begin(machine: Machine, new: NewJob = FILM, chunks: int = 3) -> tuple[str, ...]:
    return opened(machine.ledger, new, film(new, chunks), by=machine.name)


class LosesAnswers(ConditionalBucket):
    """A bucket that may not answer a write or a deletion, though it did as it was asked."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.answers: dict[str, list[bool]] = {}  # whether the next changes of a key are answered
        self.away = False
        self.kept = ""  # a key that cannot be deleted

    def _put(self, key: str, *args: Any) -> str | None:
        return self._answer(key, super()._put(key, *args))

    def delete(self, key: str, point: str) -> None:
        if key == self.kept:
            raise StoreAway("not now")
        self._answer(key, super().delete(key, point))

    def _answer(self, key: str, answer: T) -> T:
        coming = self.answers.get(key)
        if self.away or (coming and not coming.pop(0)):
            raise StoreAway("no answer")
        return answer


def forgets(machine: Machine, key: str, *answers: bool) -> None:
    assert isinstance(machine.bucket, LosesAnswers)
    machine.bucket.answers = {key: [*answers, False]}
