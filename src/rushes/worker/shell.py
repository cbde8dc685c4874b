"""The worker's shell: carries out what the core orders and reports what happens. It decides nothing."""

import json
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rushes.blobs.local_disk import free_bytes
from rushes.blobs.port import Blobs
from rushes.domain.errors import LeaseLost, NoRoom, NotFound, RushesError, StoreAway, WrongHome
from rushes.domain.job import JobCommand
from rushes.domain.task import Finish, Lease
from rushes.domain.worker import Incarnation
from rushes.ledger.port import Ledger
from rushes.telemetry import log
from rushes.transport.port import Transport
from rushes.worker import commands, core, inputs
from rushes.worker.background import Background
from rushes.worker.hints import Hints
from rushes.worker.outbox import Outbox
from rushes.worker.publish import Sweeper, sweep_page
from rushes.worker.scratch import clear
from rushes.worker.slots import Slots, handed_back

HOUSEKEEPING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class WorkerDeps:
    """What a worker is given to work with; nothing in it is a decision."""

    ledger: Ledger
    transport: Transport
    blobs: Blobs
    sweeper: Sweeper  # the ledger's sweep, and whatever has to be announced after it
    open_plan: Callable[[Lease, Finish], None]  # writes the drafts that a finish will open
    opens_plan: Callable[[str], bool]
    check_plan: Callable[[Lease], Sequence[str]]  # once it is open: tasks to announce, whose results are gone
    lane_of: Callable[[str], str | None]  # of a task; None if this machine does not know its stage
    slot_argv: Sequence[str]
    slot_env: Mapping[str, str]
    limits: core.Limits
    born: Callable[[], Incarnation]
    scratch: Path
    slot_memory: int
    slot_tasks: int
    reserve: int


class Shell:
    """A worker process: one loop, a child per slot, and the ledger."""

    def __init__(self, outfit: WorkerDeps, until: Callable[["Shell"], bool] = lambda _shell: False) -> None:
        """`until` is asked about once a second, and when idle, whether there is nothing left to stay for."""
        self._o = outfit
        self._until = until
        self._mail: queue.SimpleQueue[inputs.Input] = queue.SimpleQueue()
        self.me = outfit.born()
        self.state = core.begin(outfit.limits)
        self.seen: Callable[[inputs.Input], None] = lambda _happening: None  # somebody who looks on
        self._rounds = Background()
        self._hints = Hints(outfit.transport, outfit.lane_of, self._mail.put, outfit.limits.by_hint)
        self._slots = Slots(
            outfit.slot_argv, outfit.slot_env, self._mail.put, self._keep_log, self._tidy, outfit.slot_tasks
        )
        self._letters = Outbox(outfit.ledger, outfit.open_plan, self._mail.put, self._hints, self.about)
        self._refusal: WrongHome | None = None
        self._unchecked: list[Lease] = []  # whose plan is open
        self._house_at = 0.0
        self._until_at = 0.0

    @property
    def idle(self) -> bool:
        """Whether it holds nothing and the last look found nothing."""
        return self.state.idle and self._mail.empty()

    def tell(self, why: str = "", within: float | None = None) -> None:
        """A signal or a notice came: once drains, twice stops at once. Safe inside a signal handler."""
        self._mail.put(inputs.StopRequested(why, within))

    def run(self) -> None:
        """Work until told to stop, or until there is nothing left to stay for.

        Raises:
            WrongHome: the ledger will not have this worker any more; what it had in hand is handed back.
        """
        self._tidy()
        try:
            self._happen(inputs.Tick())
            while not self.state.left:
                self._happen(self._next())
                self._guard(self._keep_house)
                self._guard(self._ask_until)
        finally:
            self._slots.close()
            self._hints.close(core.PATIENCE_SECONDS)
            self._rounds.close(core.PATIENCE_SECONDS)
        if self._refusal:
            raise self._refusal

    def about(self, lease: Lease) -> dict[str, object]:
        """What a log line about a lease carries."""
        return {
            "job": lease.job,
            "task": lease.task,
            "stage": lease.stage,
            "chunk": lease.chunk,
            "attempt": lease.fence,
            "worker": self.me.id,
        }

    def _next(self) -> inputs.Input:
        wait = min(self.state.wake_at(), self._house_at) - time.monotonic()
        try:
            return self._mail.get(timeout=max(0.0, wait)) if wait > 0 else self._mail.get_nowait()
        except queue.Empty:
            return inputs.Tick()

    def _happen(self, happening: inputs.Input) -> None:
        self.seen(happening)
        before = self.state
        self.state, deeds = core.step(self.state, happening, time.monotonic())
        if self.state.why and self.state.note != before.note:
            log.warning(self.state.note, extra={"worker": self.me.id})
        if self.state.room != before.room:
            word = "there is room again" if self.state.room else "disk full: intake stopped"
            log.warning(word, extra={"worker": self.me.id})
        completes = [d for d in deeds if isinstance(d, commands.Complete)]
        for deed in deeds:
            if not isinstance(deed, commands.Complete):
                self._guard(self._do, deed)
        if completes:
            self._guard(self._complete, completes)

    def _do(self, deed: commands.Command) -> None:
        match deed:
            case commands.Start(slot, lease):
                self._begin(slot, lease)
            case commands.Kill(slot, why):
                self._slots.kill(slot, why)
            case commands.Claim():
                self._claim(deed)
            case commands.Listen():
                self._hints.listen(deed)
            case commands.PassOn(tasks):
                self._hints.announce(tasks)
                self._hints.settle(tasks)
            case commands.Renew():
                self._renew(deed)
            case commands.Sweep():
                self._sweep()
            case commands.Fail() | commands.GiveBack():
                self._letters.post(self.me.id, deed)
            case _:
                self._turn(deed)

    def _turn(self, deed: commands.Command) -> None:
        match deed:
            case commands.Report(lease, seconds):
                log.warning("runs for %.0f s already", seconds, extra=self.about(lease))
            case commands.NewIncarnation():
                log.warning("the lease of this worker was lost; going on as a new one", extra={"worker": self.me.id})
                self.me = self._o.born()
            case commands.Leave():
                log.info("leaving (%s)", self.state.why or "nothing left", extra={"worker": self.me.id})
                self._hints.leave()
                self._o.ledger.control(self.me.id, JobCommand.LEAVE)

    def _guard(self, do: Callable[..., None], *args: object) -> None:
        """A store that is away is no failure of the work: it is asked again. Nothing here ends the worker."""
        try:
            do(*args)
        except LeaseLost:
            self._mail.put(inputs.StoreUnavailable(doubt=True))  # only a renewal can tell whether the row is over
        except NotFound:
            pass  # leaving: the row is gone already
        except Exception as e:  # noqa: BLE001 - a bug in one deed must not end the others
            log.warning("store away: %s", e, exc_info=not isinstance(e, RushesError), extra={"worker": self.me.id})
            self._mail.put(inputs.StoreUnavailable())

    # What the core orders
    def _claim(self, deed: commands.Claim) -> None:
        leases: tuple[Lease, ...] = ()
        ledger = self._o.ledger
        hinted = () if ledger.finds_next else deed.hinted  # then a hint means "there is work"; order decides which
        if self._has_room():
            leases = ledger.claim(self.me.id, deed.lanes, min(deed.n, ledger.batch), hinted)
        self._mail.put(inputs.Claimed(deed.lanes, leases, deed.n, bool(hinted)))
        self._hints.settle(frozenset(deed.hinted) - {lease.task for lease in leases})

    def _renew(self, deed: commands.Renew) -> None:
        try:
            reply = self._o.ledger.renew(self.me, deed.holding, deed.progress, deed.note)
        except WrongHome as e:
            return self._leave_for(e)
        self._hints.keep(deed.holding)
        commands = {(task, deed.holding[task]): order for task, order in reply.leases.items()}
        return self._mail.put(inputs.RenewalCame(commands, reply.drain, reply.gone))

    def _leave_for(self, refusal: WrongHome) -> None:
        """A ledger that is damaged, or newer than this worker, is not away: waiting for it helps nobody."""
        if not self._refusal:
            self._refusal = refusal
            self._mail.put(inputs.StopRequested(str(refusal), at_once=True))

    def _begin(self, slot: int, lease: Lease) -> None:
        """Start a task; what cannot be started is handed back."""
        try:
            self._start(slot, lease)
        except Exception as e:  # noqa: BLE001 - one task that cannot be started must not end the worker
            log.warning("not started: %s", e, exc_info=not isinstance(e, RushesError), extra=self.about(lease))
            self._mail.put(handed_back(lease, type(e).__name__, str(e)))

    def _start(self, slot: int, lease: Lease) -> None:
        spec = json.loads(lease.spec)
        keys = list(spec["results"].values())
        known = self._o.ledger.known(spec["owner"], keys)
        if keys and len(known) == len(set(keys)):
            results = tuple(known[k] for k in keys)
            self._mail.put(inputs.TaskFinished(Finish(lease.task, lease.fence, results, adopted=True)))
            return
        self._slots.start(slot, lease)

    def _complete(self, letters: Sequence[commands.Complete]) -> None:
        """Those that open a plan go on a round: they read blobs, which may be slow."""
        for letter in letters:
            if self._o.opens_plan(letter.lease.stage):
                self._rounds.send(partial(self._quietly, self._open, letter), letter.lease.task)
        some = [letter for letter in letters if not self._o.opens_plan(letter.lease.stage)]
        if some:
            self._deliver(some)

    def _open(self, letter: commands.Complete) -> None:
        held = self.state.held.get(letter.lease.task)
        if held and held.lease.fence == letter.lease.fence and self._letters.opened(self.me.id, letter):
            self._deliver([letter])
            self._unchecked.append(letter.lease)
            self._check_plans()

    def _check_plans(self) -> None:
        """On a round; a plan that a store which is away kept from being checked is checked on the next."""
        while self._unchecked:
            lease = self._unchecked.pop()
            try:
                self._hints.announce(self._o.check_plan(lease))
            except (StoreAway, NoRoom):
                self._unchecked.append(lease)
                raise

    def _deliver(self, letters: Sequence[commands.Complete]) -> None:
        self._letters.complete(self.me.id, letters)
        self._until_at = 0.0  # that may have been the last of it
        if any(r.publishes for x in letters for r in x.finish.results):
            self._sweep()

    def _sweep(self) -> None:
        self._rounds.send(partial(self._quietly, self._round), "sweep")

    def _round(self) -> None:
        """Sweep, and pay a page of what is owed; plans that wait to be opened come before the next page."""
        self._check_plans()
        swept, more = sweep_page(self._o.sweeper, self._o.blobs)
        if more:
            self._sweep()
        lanes = frozenset(lane for task in swept.ready if (lane := self._o.lane_of(task)))
        self._mail.put(inputs.Swept(lanes, swept.next_due))

    def _quietly(self, do: Callable[..., None], *args: object) -> None:
        """On a round: a store that is away is asked again on the next."""
        try:
            do(*args)
        except (StoreAway, NoRoom, LeaseLost) as e:
            log.warning("store away: %s", e, extra={"worker": self.me.id})

    # Housekeeping, once a second
    def _keep_house(self) -> None:
        now = time.monotonic()
        if now < self._house_at:
            return
        self._house_at = now + HOUSEKEEPING_SECONDS
        if not self.state.room:
            self._has_room()
        self._slots.look_after(self._o.slot_memory)

    def _ask_until(self) -> None:
        """Once a second, and at once when idle; never while names are being published."""
        now = time.monotonic()
        if self.state.drain_until is not None or self._rounds.busy or not (now >= self._until_at or self.idle):
            return
        self._until_at = now + HOUSEKEEPING_SECONDS
        if self._until(self):
            self._mail.put(inputs.StopRequested(at_once=True))

    def _has_room(self) -> bool:
        room = free_bytes(self._o.blobs)
        enough = room is None or room >= self._o.reserve
        if enough != self.state.room:
            self._mail.put(inputs.DiskSpace(enough, room or 0, self._o.reserve))
        return enough

    def _keep_log(self, lease: Lease, first: int, lines: Sequence[str]) -> None:
        try:
            self._o.ledger.log(lease.task, lease.fence, first, lines)
        except Exception as e:  # noqa: BLE001 - lines are best effort; nothing is worth losing an outcome
            log.info("log lines lost: %s", e, extra=self.about(lease))

    def _tidy(self) -> None:
        self._rounds.send(partial(clear, self._o.scratch), "tidy")
