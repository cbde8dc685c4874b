"""Two machines and one film in a bucket: whatever dies or is lost, one writes at a time, and no result is lost."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from ledger_kit import Clock, film, first_of, kill, new_job
from obstore.store import MemoryStore

from rushes.bucket.conditional import WRITER, ConditionalBucket, StoredObject
from rushes.domain.errors import LeaseLost, Requested, StoreAway
from rushes.domain.job import JobCommand, JobState
from rushes.domain.task import Finish, Lease, TaskState, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger.bucket import BucketLedger
from rushes.ledger.bucket.film import TOKEN, database_key

T = TypeVar("T")
EXAMPLES = int(os.environ.get("RUSHES_EXAMPLES", "20"))
JOB = new_job()
FAULTS = ("refused", "answer lost", "late", "dies before", "dies after")
SHM = Path("/dev/shm")  # no power cut is tried here, so that no disk need be waited for
MACHINES = st.integers(0, 1)


class Died(BaseException):
    """The process ends here."""


@dataclass
class Witness:
    """What the bucket accepted: under which tokens, by whom, and with which tasks done."""

    tokens: list[int] = field(default_factory=list)
    writers: dict[int, str] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    taken: int = 0  # the greatest token under which a film was held: from then on no smaller one is accepted

    def accepted(self, data: bytes, labels: Mapping[str, str]) -> None:
        token = int(labels[TOKEN])
        assert token >= max([self.taken, *self.tokens]), "a former holder has written"
        assert self.writers.setdefault(token, labels[WRITER]) == labels[WRITER], "two holders have one token"
        self.tokens.append(token)
        with sqlite3.connect(":memory:") as db:
            db.deserialize(data)
            done = {id for (id,) in db.execute("SELECT id FROM task WHERE state = 'done'")}
        assert done >= self.done, "a result that was stored is lost"
        self.done = done


class Faulty(ConditionalBucket):
    """A bucket behind one machine's network: one of the next requests is refused, late, or loses its answer."""

    def __init__(self, store: MemoryStore, witness: Witness, late: list[Callable[[], object]]) -> None:
        super().__init__(store)
        self._witness, self._late = witness, late
        self.fault, self.wait, self._dead = "", 0, False

    def list(self, prefix: str) -> dict[str, str]:
        return self._request(lambda: super(Faulty, self).list(prefix))

    def get(self, key: str, *, body: bool = True) -> StoredObject | None:
        return self._request(lambda: super(Faulty, self).get(key, body=body))

    def delete(self, key: str, point: str) -> None:
        self._request(lambda: super(Faulty, self).delete(key, point))

    def _put(self, key: str, data: bytes, was: str, attributes: Mapping[str, str], point: str) -> str | None:
        return self._request(lambda: self._put_now(key, data, was, attributes, point))

    def _put_now(self, key: str, data: bytes, was: str, attributes: Mapping[str, str], point: str) -> str | None:
        etag = super()._put(key, data, was, attributes, point)
        if etag is not None and key == database_key("film"):
            self._witness.accepted(data, attributes)
        return etag

    def _request(self, send: Callable[[], T]) -> T:
        if self._dead:
            raise Died
        fault = "" if self.wait else self.fault
        self.wait = max(0, self.wait - 1)
        self.fault = "" if fault else self.fault
        self._dead = fault.startswith("dies")
        if fault == "dies before":
            raise Died
        if fault == "refused":
            raise StoreAway("refused")
        if fault == "late":
            self._late.append(send)
            raise StoreAway("it is still on its way")
        answer = send()
        if fault == "dies after":
            raise Died
        if fault:
            raise StoreAway("the answer was lost")
        return answer


@dataclass
class Machine:
    """A process on a machine of its own: its disk, its clocks, what it holds."""

    number: int
    store: MemoryStore
    disk: Path
    witness: Witness
    late: list[Callable[[], object]]
    clock: Clock = field(default_factory=Clock)
    lives: int = 0
    leases: dict[str, Lease] = field(default_factory=dict)

    def boot(self) -> None:
        """Begin a new life."""
        self.lives += 1
        name = f"m{self.number}.{self.lives}"
        self.me = Incarnation(name, f"host{self.number}", f"boot{self.number}.{self.lives}", 1, "1", ("cpu",))
        self.bucket = Faulty(self.store, self.witness, self.late)
        clock = self.clock
        self.ledger = BucketLedger(
            self.bucket, self.disk, self.me, lambda _new: "film", lambda _key: "film", clock=clock.now,
            wall=clock.wall, ledger_clock=clock.now, is_gone=lambda _worker: False,
        )  # fmt: skip
        self.ledger.films._start = lambda: None  # type: ignore[method-assign] # store_now is what its thread does
        self.leases = {}

    def die(self, *, disk: bool) -> None:
        """Nothing is flushed; the disk may go with it."""
        kill(self.ledger)
        if disk:
            shutil.rmtree(self.disk)
            self.disk.mkdir()


class TwoMachines(RuleBasedStateMachine):
    """One film, two machines that take it from each other, and a witness of what was computed."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="bucket-machine-", dir=SHM if SHM.is_dir() else None))
        self.store, self.witness = MemoryStore(), Witness()
        self.late: list[Callable[[], object]] = []
        self.machines = [Machine(n, self.store, self.folder / str(n), self.witness, self.late) for n in range(2)]
        self.manifests: dict[str, str] = {}  # task -> who computed it
        for machine in self.machines:
            machine.disk.mkdir()
            machine.boot()

    @initialize()
    def submit(self) -> None:
        self.machines[0].ledger.submit(JOB, first_of(JOB))

    def ask(self, n: int, verb: Callable[[BucketLedger], T]) -> T | None:
        """What a process answers, None if it is refused, gets no answer, or dies of it with its disk."""
        machine = self.machines[n]
        try:
            answer = verb(machine.ledger)
        except (StoreAway, LeaseLost, Requested):
            return None
        except Died:
            self.die(n, disk=True)
            return None
        if held := machine.ledger.films.held("film"):
            self.witness.taken = max(self.witness.taken, held.lock.token)
        return answer

    @rule(n=MACHINES)
    def renew(self, n: int) -> None:
        machine = self.machines[n]
        held = {task: lease.fence for task, lease in machine.leases.items()}
        reply = self.ask(n, lambda ledger: ledger.renew(machine.me, held, {}))
        if reply is None:
            return
        if reply.gone:
            machine.die(disk=False)
            machine.boot()
        machine.leases = {task: lease for task, lease in machine.leases.items() if reply.leases[task] == "keep"}

    @rule(n=MACHINES)
    def claim(self, n: int) -> None:
        machine = self.machines[n]
        found = self.ask(n, lambda ledger: ledger.claim(machine.me.id, ["cpu"], 2)) or ()
        for lease in found:
            assert lease.task not in machine.leases
        machine.leases |= {lease.task: lease for lease in found}

    @rule(n=MACHINES)
    def take_over(self, n: int) -> None:
        """It sees the lock unchanged for a lease, by its own clock, while the other one is frozen."""
        for _ in range(3):
            self.renew(n)
            self.claim(n)
            self.machines[n].clock.advance(16.0)
        self.renew(n)

    @rule(n=MACHINES)
    def wakes_after_another_took_over(self, n: int) -> None:
        """It finishes something and is frozen; the other one goes on with the film; it wakes up and stores."""
        self.finish(n)
        self.take_over(1 - n)
        self.store_now(n)

    @rule(n=MACHINES)
    def finish(self, n: int) -> None:
        """The manifest first, if nobody has made it, then the ledger."""
        machine = self.machines[n]
        if not machine.leases:
            return
        lease = machine.leases.pop(min(machine.leases))
        adopted = lease.task in self.manifests
        self.manifests.setdefault(lease.task, machine.me.id)
        if lease.stage == "probe":
            planned = self.ask(n, lambda ledger: ledger.draft(JOB.id, lease.task, lease.fence, film(JOB), "{}"))
            if planned != Verdict.OK:
                return
        finish = Finish(lease.task, lease.fence, adopted=adopted)
        done = self.ask(n, lambda ledger: ledger.complete(machine.me.id, [finish]))
        assert done is None or done.verdicts[0] in (Verdict.OK, Verdict.LOST)

    @rule(n=MACHINES)
    def sweep(self, n: int) -> None:
        self.ask(n, lambda ledger: ledger.sweep())

    @rule(n=MACHINES)
    def store_now(self, n: int) -> None:
        """What the background thread does."""
        self.ask(n, lambda ledger: ledger.films.store_changes())

    @rule(n=MACHINES, seconds=st.sampled_from([5.0, 31.0]))
    def wait(self, n: int, seconds: float) -> None:
        """Only this machine's clock: no machine believes another's."""
        self.machines[n].clock.advance(seconds)

    @rule(n=MACHINES, disk=st.booleans())
    def die(self, n: int, disk: bool) -> None:
        self.machines[n].die(disk=disk)
        self.machines[n].boot()

    @rule(n=MACHINES, fault=st.sampled_from(FAULTS), wait=st.integers(0, 4))
    def spoil(self, n: int, fault: str, wait: int) -> None:
        """One of the next requests of a machine goes wrong."""
        bucket = self.machines[n].bucket
        bucket.fault, bucket.wait = fault, wait

    @rule()
    def what_was_late_arrives(self) -> None:
        while self.late:
            self.late.pop(0)()

    @rule(n=MACHINES)
    def resume(self, n: int) -> None:
        """A person asks; while another machine works on the film, it is asked to do it."""
        self.ask(n, lambda ledger: ledger.control(JOB.id, JobCommand.RESUME))

    @rule(n=MACHINES)
    def they_ask_in_turns(self, n: int) -> None:
        """Quicker than either looks again at what the bucket has."""
        for one in (n, 1 - n, n):
            self.resume(one)

    @invariant()
    def what_is_done_was_computed(self) -> None:
        for n in range(len(self.machines)):
            page = self.ask(n, lambda ledger: ledger.tasks(JOB.id, TaskState.DONE))
            assert {row.id for row in (page.rows if page else ())} <= self.manifests.keys()

    def teardown(self) -> None:
        """A third machine, without faults, ends it; what was computed is adopted, never computed again."""
        for machine in self.machines:
            machine.die(disk=False)
        self.what_was_late_arrives()
        last = Machine(9, self.store, self.folder / "9", self.witness, [])
        last.disk.mkdir()
        last.boot()
        self.machines = [last]
        for _ in range(40):
            self.renew(0)
            last.ledger.sweep()
            self.claim(0)
            while last.leases:
                self.finish(0)
            last.clock.advance(16.0)  # two of them and a lock that nobody renews is over; its own lease is not
            if last.ledger.job(JOB.id).state is JobState.COMPLETED:
                break
        assert last.ledger.job(JOB.id).state is JobState.COMPLETED
        numbers = [event.number for event in last.ledger.events(JOB.id)]
        assert numbers == list(range(1, len(numbers) + 1))
        last.ledger.close()
        shutil.rmtree(self.folder)


QUICK = (Phase.explicit, Phase.generate)  # a failing story is told as it was found: shrinking one takes minutes
TwoMachines.TestCase.settings = settings(phases=QUICK, max_examples=EXAMPLES, stateful_step_count=25, deadline=None)
test_two_machines_take_turns = TwoMachines.TestCase
