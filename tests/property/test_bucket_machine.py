"""Two machines and one film in a bucket: whatever dies or is lost, one writes at a time, and no result is lost."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from ledger_kit import Clock, film, first_of, kill, new_job
from obstore.store import MemoryStore

from rushes.bucket.conditional import ConditionalBucket
from rushes.domain.errors import LeaseLost, Refused, StoreAway
from rushes.domain.job import JobCommand, JobState
from rushes.domain.task import Finish, Lease, TaskState, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger.bucket import BucketLedger
from rushes.ledger.bucket.film import TOKEN, database_key

JOB = new_job()
FAULTS = ("refused", "answer lost")


class Faulty(ConditionalBucket):
    """A bucket of one machine's network, which may refuse the next write, or lose its answer."""

    def __init__(self, store: MemoryStore, written: list[int]) -> None:
        super().__init__(store)
        self.fault, self._written = "", written

    def swap(self, key: str, data: bytes, was: str, labels: Mapping[str, str], point: str) -> str | None:
        fault, self.fault = self.fault, ""
        if fault == "refused":
            raise StoreAway("refused")
        etag = super().swap(key, data, was, labels, point)
        if etag is not None and key == database_key("film"):
            self._written.append(int(labels[TOKEN]))
        if fault:
            raise StoreAway("the answer was lost")
        return etag


@dataclass
class Machine:
    """A process on a machine of its own: its disk, its clocks, what it holds."""

    number: int
    store: MemoryStore
    disk: Path
    written: list[int]
    clock: Clock = field(default_factory=Clock)
    lives: int = 0
    leases: dict[str, Lease] = field(default_factory=dict)

    def boot(self) -> None:
        """Begin a new life."""
        self.lives += 1
        name = f"m{self.number}.{self.lives}"
        self.me = Incarnation(name, f"host{self.number}", f"boot{self.number}.{self.lives}", 1, "1", ("cpu",))
        self.bucket = Faulty(self.store, self.written)
        clock = self.clock
        self.ledger = BucketLedger(
            self.bucket, self.disk, self.me, lambda _new: "film", lambda _key: "film", clock=clock.now,
            wall=clock.wall, ledger_clock=clock.now, is_gone=lambda _worker: False,
        )  # fmt: skip
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
        self.folder = Path(tempfile.mkdtemp(prefix="bucket-machine-"))
        self.store, self.written = MemoryStore(), list[int]()
        self.machines = [Machine(n, self.store, self.folder / str(n), self.written) for n in range(2)]
        self.manifests: dict[str, str] = {}  # task -> who computed it
        for machine in self.machines:
            machine.disk.mkdir()
            machine.boot()

    @initialize()
    def submit(self) -> None:
        self.machines[0].ledger.submit(JOB, first_of(JOB))

    @rule(n=st.integers(0, 1))
    def renew(self, n: int) -> None:
        machine = self.machines[n]
        held = {task: lease.fence for task, lease in machine.leases.items()}
        try:
            reply = machine.ledger.renew(machine.me, held, {})
        except StoreAway:
            return
        if reply.gone:
            machine.die(disk=False)
            machine.boot()
        machine.leases = {task: lease for task, lease in machine.leases.items() if reply.leases[task] == "keep"}

    @rule(n=st.integers(0, 1))
    def claim(self, n: int) -> None:
        machine = self.machines[n]
        try:
            found = machine.ledger.claim(machine.me.id, ["cpu"], 2)
        except (LeaseLost, StoreAway):
            return
        for lease in found:
            assert lease.task not in machine.leases
        machine.leases |= {lease.task: lease for lease in found}

    @rule(n=st.integers(0, 1))
    def take_over(self, n: int) -> None:
        """It sees the lock unchanged for a lease, by its own clock, while the other one is frozen."""
        for _ in range(3):
            self.renew(n)
            self.claim(n)
            self.machines[n].clock.advance(16.0)
        self.renew(n)

    @rule(n=st.integers(0, 1))
    def finish(self, n: int) -> None:
        """The manifest first, if nobody has made it, then the ledger."""
        machine = self.machines[n]
        if not machine.leases:
            return
        lease = machine.leases.pop(min(machine.leases))
        adopted = lease.task in self.manifests
        self.manifests.setdefault(lease.task, machine.me.id)
        if lease.stage == "probe" and machine.ledger.draft(JOB.id, lease.task, lease.fence, film(JOB), "{}") != "ok":
            return
        done = machine.ledger.complete(machine.me.id, [Finish(lease.task, lease.fence, adopted=adopted)])
        assert done.verdicts[0] in (Verdict.OK, Verdict.LOST)

    @rule(n=st.integers(0, 1))
    def sweep(self, n: int) -> None:
        try:
            self.machines[n].ledger.sweep()
        except StoreAway:
            return

    @rule(n=st.integers(0, 1))
    def store_now(self, n: int) -> None:
        """What the background thread does."""
        self.machines[n].ledger.films.store_changes()

    @rule(n=st.integers(0, 1), seconds=st.sampled_from([5.0, 31.0]))
    def wait(self, n: int, seconds: float) -> None:
        """Only this machine's clock: no machine believes another's."""
        self.machines[n].clock.advance(seconds)

    @rule(n=st.integers(0, 1), disk=st.booleans())
    def die(self, n: int, disk: bool) -> None:
        self.machines[n].die(disk=disk)
        self.machines[n].boot()

    @rule(n=st.integers(0, 1), fault=st.sampled_from(FAULTS))
    def spoil(self, n: int, fault: str) -> None:
        self.machines[n].bucket.fault = fault

    @rule(n=st.integers(0, 1))
    def pause(self, n: int) -> None:
        """A person asks; refused while another machine works on the film."""
        try:
            self.machines[n].ledger.control(JOB.id, JobCommand.RESUME)
        except (Refused, StoreAway, LeaseLost):
            return

    @invariant()
    def the_database_is_written_under_tokens_that_only_grow(self) -> None:
        assert self.written == sorted(self.written)

    @invariant()
    def what_is_done_was_computed(self) -> None:
        for machine in self.machines:
            rows = machine.ledger.tasks(JOB.id, TaskState.DONE).rows
            assert {row.id for row in rows} <= self.manifests.keys()

    def teardown(self) -> None:
        """A third machine, without faults, ends it; what was computed is adopted, never computed again."""
        for machine in self.machines:
            machine.die(disk=False)
        last = Machine(9, self.store, self.folder / "9", self.written)
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
        assert self.written == sorted(self.written)
        shutil.rmtree(self.folder)


TwoMachines.TestCase.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
test_two_machines_take_turns = TwoMachines.TestCase
