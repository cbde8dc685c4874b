"""The worker's shell: carries out what the core orders and reports what happens. It decides nothing."""

import json
import queue
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rushes.blobs.port import Blobs
from rushes.domain import errors
from rushes.domain.errors import LeaseLost, RushesError, StoreAway
from rushes.domain.job import Command
from rushes.domain.keys import JSON
from rushes.domain.result import Result
from rushes.domain.task import Failure, Finish, Lease, Said, retry_delay
from rushes.domain.worker import Incarnation
from rushes.ledger.port import Ledger
from rushes.telemetry import log
from rushes.transport.port import Transport
from rushes.worker import core, happenings, orders
from rushes.worker.child import Child
from rushes.worker.publish import sweep

HOUSEKEEPING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Outfit:
    """What a worker is given to work with; nothing in it is a decision."""

    ledger: Ledger
    transport: Transport
    blobs: Blobs
    open_plan: Callable[[Lease, Finish], None]  # writes the drafts that a finish will open
    slot_argv: Sequence[str]
    slot_env: Mapping[str, str]
    limits: core.Limits
    born: Callable[[], Incarnation]
    slot_memory: int
    slot_tasks: int
    reserve: int
    opens_plan: Callable[[str], bool]


class Shell:
    """A worker process: one loop, a child per slot, and the ledger."""

    def __init__(self, outfit: Outfit, until: Callable[["Shell"], bool] = lambda _shell: False) -> None:
        """`until` is asked about once a second whether there is nothing left to stay for."""
        self._o = outfit
        self._until = until
        self._mail: queue.SimpleQueue[happenings.Happening] = queue.SimpleQueue()
        self._children: dict[int, Child] = {}
        self._sent: dict[str, int] = {}
        self.me = outfit.born()
        self.state = core.State(outfit.limits)
        self._found: dict[tuple[str, ...], bool] = {}  # whether the last claim in these lanes brought anything
        self._house_at = 0.0
        self.seen: Callable[[happenings.Happening], None] = lambda _happening: None  # somebody who looks on

    @property
    def idle(self) -> bool:
        """Whether it holds nothing and the last look found nothing."""
        return bool(self._found) and not any(self._found.values()) and not self.state.held and self._mail.empty()

    def tell(self) -> None:
        """A signal came: once drains, twice stops at once. Safe inside a signal handler."""
        self._mail.put(happenings.Told())

    def run(self) -> None:
        """Work until told to stop, or until there is nothing left to stay for."""
        lanes = (*self._o.limits.lanes, "now")
        threading.Thread(target=self._listen, args=(lanes,), daemon=True).start()
        try:
            self._happen(happenings.Tick())
            while not self.state.left:
                self._happen(self._next())
                self._guard(self._keep_house)
        finally:
            self._o.transport.wake()
            for child in list(self._children.values()):
                child.close()

    def _next(self) -> happenings.Happening:
        wait = min(self.state.wake_at(), self._house_at) - time.monotonic()
        try:
            return self._mail.get(timeout=max(0.0, wait)) if wait > 0 else self._mail.get_nowait()
        except queue.Empty:
            return happenings.Tick()

    def _listen(self, lanes: Sequence[str]) -> None:
        while not self.state.left:
            if self._o.transport.wait(lanes, 5.0):
                self._mail.put(happenings.Hinted())

    def _happen(self, happening: happenings.Happening) -> None:
        self.seen(happening)
        self.state, deeds = core.step(self.state, happening, time.monotonic())
        completes = [d for d in deeds if isinstance(d, orders.Complete)]
        for deed in deeds:
            if not isinstance(deed, orders.Complete):
                self._try(deed)
        if completes:
            self._guard(self._complete, completes)

    def _try(self, deed: orders.Deed) -> None:
        match deed:
            case orders.Start(slot, lease):
                self._begin(slot, lease)
            case orders.Kill(slot, why):
                self._kill(slot, why)
            case orders.Claim():
                self._guard(self._claim, deed)
            case orders.Renew():
                self._guard(self._renew, deed)
            case orders.Sweep():
                self._guard(self._sweep)
            case orders.Fail() | orders.GiveBack():
                self._guard(self._post, deed)
            case orders.Rebirth():
                log.warning("the lease of this worker was lost; going on as a new one", extra={"worker": self.me.id})
                self.me = self._o.born()
            case orders.Leave():
                self._guard(self._leave)

    def _guard(self, do: Callable[..., None], *args: object) -> None:
        """A store that is away is no failure of the work: it is asked again."""
        try:
            do(*args)
        except LeaseLost:
            self._mail.put(happenings.StoreGone(doubt=True))  # only a renewal can tell whether the row is over
        except (StoreAway, errors.NoRoom) as e:
            log.warning("store away: %s", e, extra={"worker": self.me.id})
            self._mail.put(happenings.StoreGone())
        except errors.NotFound:
            pass  # leaving: the row is gone already

    # What the core orders
    def _claim(self, deed: orders.Claim) -> None:
        leases: tuple[Lease, ...] = ()
        if self._has_room():
            leases = self._o.ledger.claim(self.me.id, deed.lanes, min(deed.n, self._o.ledger.batch))
        self._found[deed.lanes] = bool(leases)
        self._mail.put(happenings.Claimed(deed.lanes, leases, deed.n))

    def _renew(self, deed: orders.Renew) -> None:
        reply = self._o.ledger.renew(self.me, deed.holding, deed.progress, deed.note)
        self._mail.put(happenings.RenewalCame(reply.orders, reply.drain, reply.gone))

    def _begin(self, slot: int, lease: Lease) -> None:
        """Start a task; what cannot be started is handed back."""
        try:
            self._start(slot, lease)
        except (RushesError, OSError) as e:
            log.warning("not started: %s", e, extra=self._about(lease))
            why = Failure(type(e).__name__, str(e), "", "")
            self._mail.put(happenings.Broke(lease.task, lease.fence, why, 0.0, counts=False))

    def _start(self, slot: int, lease: Lease) -> None:
        spec = json.loads(lease.spec)
        keys = list(spec["results"].values())
        known = self._o.ledger.known(spec["owner"], keys)
        if keys and len(known) == len(set(keys)):
            results = tuple(known[k] for k in keys)
            self._mail.put(happenings.Made(Finish(lease.task, lease.fence, results, adopted=True)))
            return
        self._child(slot).start(lease)

    def _complete(self, letters: Sequence[orders.Complete]) -> None:
        ready = [letter for letter in letters if self._opened(letter)]
        if not ready:
            return
        reply = self._o.ledger.complete(self.me.id, [x.finish for x in ready])
        self._house_at = 0.0  # that may have been the last of it
        for letter, said in zip(ready, reply.said, strict=True):
            self._mail.put(happenings.Settled(letter))
            self._tell_refusal(letter.lease, said)
        if reply.ready:
            for lane in (*self._o.limits.lanes, "now"):
                self._o.transport.announce(lane, reply.ready)
        if any(r.publishes for x in ready for r in x.finish.results):
            self._sweep()

    def _opened(self, letter: orders.Complete) -> bool:
        """Write the plan before the task that opens it is completed; a plan that cannot be made is a failure."""
        if not self._o.opens_plan(letter.lease.stage):
            return True
        try:
            self._o.open_plan(letter.lease, letter.finish)
        except StoreAway:
            raise
        except LeaseLost:  # of this one task: lost, or its job was cancelled
            self._mail.put(happenings.Settled(letter))
            return False
        except Exception as e:  # noqa: BLE001 - one plan that cannot be made must not end the worker
            log.warning("the plan cannot be made", exc_info=True, extra=self._about(letter.lease))
            said = e if isinstance(e, RushesError) else RushesError(f"{type(e).__name__}: {e}")
            failure = Failure(type(e).__name__, str(said), said.advice, said.verdict)
            delay = None if isinstance(e, errors.NeverWorks) else retry_delay(letter.lease.failures + 1, _jitter())
            self._o.ledger.fail(self.me.id, letter.lease.task, letter.lease.fence, failure, delay)
            self._mail.put(happenings.Settled(letter))
            return False
        return True

    def _post(self, deed: orders.Fail | orders.GiveBack) -> None:
        lease = deed.lease
        if isinstance(deed, orders.Fail):
            said = self._o.ledger.fail(self.me.id, lease.task, lease.fence, deed.failure, deed.delay)
            self._tell_refusal(lease, said)
            log.warning("%s: %s", deed.failure.kind, deed.failure.message, extra=self._about(lease))
        else:
            self._o.ledger.give_back(self.me.id, [(lease.task, lease.fence)], deed.reason)
        self._mail.put(happenings.Settled(deed))

    def _sweep(self) -> None:
        if sweep(self._o.ledger, self._o.blobs).ready:
            self._mail.put(happenings.Hinted())

    def _leave(self) -> None:
        self._o.ledger.control(self.me.id, Command.LEAVE)

    # Slots
    def _child(self, slot: int) -> Child:
        child = self._children.get(slot)
        if child and child.tasks_run >= self._o.slot_tasks:
            child.close()
            child = None
        if child is None or child.killed:
            child = Child(self._o.slot_argv, self._o.slot_env, lambda c, said: self._heard(slot, c, said))
            self._children[slot] = child
        return child

    def _kill(self, slot: int, why: str) -> None:
        child = self._children.get(slot)
        if child:
            child.kill(why)

    def _heard(self, slot: int, child: Child, said: JSON) -> None:
        """Called from the child's reader thread: turn what it says into a happening."""
        lease = child.task
        if said["say"] == "died" and self._children.get(slot) is child:
            del self._children[slot]
        if lease is None:
            return
        if said["say"] == "progress":
            self._mail.put(happenings.Progressed(lease.task, float(said["fraction"])))
            return
        lines = child.lines()
        self._log(child, lease)
        child.release()
        self._mail.put(_outcome(lease, said, child.killed, lines))

    # Housekeeping, once a second
    def _keep_house(self) -> None:
        now = time.monotonic()
        if now < self._house_at:
            return
        self._house_at = now + HOUSEKEEPING_SECONDS
        if not self.state.room:
            self._has_room()
        for child in list(self._children.values()):
            if child.task:
                self._log(child, child.task)
            if self._o.slot_memory and child.memory() > self._o.slot_memory:
                child.kill("memory")
        if self.state.drain_until is None and self._until(self):
            self._mail.put(happenings.Told())
            self._mail.put(happenings.Told())

    def _has_room(self) -> bool:
        room = self._o.blobs.room()
        enough = room is None or room >= self._o.reserve
        if enough != self.state.room:
            word = "there is room again" if enough else "disk full: intake stopped"
            log.warning(word, extra={"worker": self.me.id})
            self._mail.put(happenings.Room(enough))
        return enough

    def _log(self, child: Child, lease: Lease) -> None:
        lines = child.unsent()
        if not lines:
            return
        name = f"{lease.task}#{lease.fence}"
        first = self._sent.get(name, 1)
        self._sent[name] = first + len(lines)
        try:
            self._o.ledger.log(lease.task, lease.fence, first, lines)
        except RushesError as e:
            log.info("log lines lost: %s", e, extra=self._about(lease))

    def _tell_refusal(self, lease: Lease, said: Said) -> None:
        if said is not Said.OK:
            log.warning("refused: the task is %s", said.value, extra=self._about(lease))

    def _about(self, lease: Lease) -> dict[str, object]:
        return {
            "job": lease.job,
            "task": lease.task,
            "stage": lease.stage,
            "chunk": lease.chunk,
            "attempt": lease.fence,
            "worker": self.me.id,
        }


def _outcome(lease: Lease, said: JSON, killed: str, lines: tuple[str, ...]) -> happenings.Happening:
    """What a child's last word about a task means."""
    if said["say"] == "made":
        results = tuple(Result(**r) for r in said["results"])
        return happenings.Made(Finish(lease.task, lease.fence, results, seconds=float(said["seconds"])))
    if said["say"] == "broke":
        failure = Failure(said["kind"], said["message"], said["hint"], said["verdict"], lines)
        return happenings.Broke(lease.task, lease.fence, failure, _jitter(), said["final"], said["counts"])
    return happenings.Broke(lease.task, lease.fence, _death(said["code"], killed, lines), _jitter())


def _jitter() -> float:
    return secrets.randbelow(1000) / 1000


def _death(code: int, killed: str, lines: tuple[str, ...]) -> Failure:
    kind: type[RushesError] = {"time": errors.SlotTimedOut, "memory": errors.SlotTooBig}.get(killed, errors.SlotDied)
    signal = -code if code < 0 else None
    how = {
        "time": "it ran longer than task_seconds allows",
        "memory": "it used more memory than slot_memory_mb allows",
    }.get(killed, f"ended by signal {signal}" if signal else f"exited with code {code} in the middle of its work")
    return Failure(kind.__name__, how, kind.hint, kind.verdict, lines, signal)
