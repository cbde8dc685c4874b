"""The worker's shell: carries out the core's commands and reports inputs to it. It decides nothing."""

import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rushes.domain.errors import LeaseLost, NeverWorks, NoRoom, NotAllowed, NotFound, RushesError, StoreAway, WrongHome
from rushes.domain.job import JobCommand
from rushes.domain.task import Finish, Lease, parse_spec
from rushes.domain.worker import DiskSpace, Incarnation
from rushes.files import folder_identity
from rushes.ledger.port import SweepResult, WorkLedger
from rushes.ledger.unserved_lanes import UnservedLanes
from rushes.telemetry import BugLog, Outage, log
from rushes.transport.port import Transport
from rushes.worker import commands, core, inputs
from rushes.worker.child import ChildDeps
from rushes.worker.hints import Background, Hints
from rushes.worker.lanes import EngineLanes, SiteLanes
from rushes.worker.outbox import Outbox
from rushes.worker.scratch import clear
from rushes.worker.slots import Slots, given_back, never_started
from rushes.worker.task_filter import FilteredTasks

HOUSEKEEPING_SECONDS = 1.0
RETENTION_SECONDS = 300.0  # before the first step of clearing up, and after one that failed
OUTAGES = (StoreAway, NoRoom, NotAllowed)  # not a failure of the work: the core tries again


@dataclass(frozen=True, slots=True)
class WorkerDeps:
    """What a worker is given to work with; nothing in it is a decision."""

    ledger: WorkLedger
    transport: Transport
    free_bytes: Callable[[], int | None]  # of the disk that results are written on, None where there is none
    sweep: Callable[[], tuple[SweepResult, bool]]  # pays what is owed as well; and whether there is more to pay
    open_plan: Callable[[Lease, Finish], None]  # writes the drafts that a completion will open
    opens_plan: Callable[[str], bool]
    check_plan: Callable[[Lease], Sequence[str]]  # once it is open: tasks to announce because their results are missing
    lane_of: Callable[[str], str | None]  # of a task; None if its stage is not known here
    child: ChildDeps
    limits: core.Limits
    new_incarnation: Callable[[], Incarnation]
    slot_memory: int
    slot_tasks: int
    reserve: int  # bytes of the disk that must stay free
    filter: FilteredTasks | None = None  # which tasks it takes; None: all
    retention: Callable[[], float] | None = None  # clears up a little; answers the seconds until the next time
    hear_answers: Callable[[], None] | None = None  # makes tasks due whose late answers are there


class Shell:
    """A worker process: one loop, a child per slot, and the ledger."""

    def __init__(self, deps: WorkerDeps, until: Callable[["Shell"], bool] = lambda _shell: False) -> None:
        """`until` is asked about once a second, and when idle, whether the worker may leave."""
        self._deps = deps
        self._until = until
        self._inputs: queue.SimpleQueue[inputs.Input] = queue.SimpleQueue()
        self.me = deps.new_incarnation()
        self.state = core.begin(deps.limits)
        self.on_input: Callable[[inputs.Input], None] = lambda _input: None  # called in the worker's loop
        self.bugs, self._outage = BugLog(), Outage("store unavailable")
        self._filtered = deps.filter
        self._site_lanes, self._engine_lanes = SiteLanes(deps.ledger), EngineLanes()
        self._left = UnservedLanes(deps.ledger)
        self._background = Background(self.bugs)
        self._retention, self._retention_at = Background(self.bugs), time.monotonic() + RETENTION_SECONDS
        report = self._inputs.put
        by_hint = deps.limits.by_hint
        self._hints = Hints(deps.transport, deps.lane_of, report, self.bugs, takes=by_hint, lanes_now=self._lanes)
        self._slots = Slots(deps.child, report, self._keep_log, self._clear_scratch, deps.slot_tasks)
        self._outbox = Outbox(deps.ledger, deps.open_plan, report, self._hints, self.about)
        self._answers = Background(self.bugs)
        self._refusal: WrongHome | None = None
        self._opened: list[Lease] = []  # whose plan is open and not checked yet
        self._home = folder_identity(deps.child.scratch.parent)
        self._housekeeping_at = 0.0
        self._until_at = 0.0

    @property
    def idle(self) -> bool:
        """Whether it holds nothing, and the last look at all that it takes found nothing."""
        halfway = self._filtered and self._filtered.halfway
        return self.state.idle and self._inputs.empty() and not halfway and not self._engine_lanes.tried_lately

    def request_stop(self, reason: str = "", within: float | None = None) -> None:
        """The first request drains, the second stops at once. Safe inside a signal handler."""
        self._inputs.put(inputs.StopRequested(reason, within))

    def run(self) -> None:
        """Work until a stop is requested, or until there is nothing left to stay for.

        Raises:
            WrongHome: the ledger refuses this worker; what it held is given back.
        """
        self._clear_scratch()
        try:
            self._step(inputs.Tick())
            while not self.state.left:
                self._step(self._next())
                self._guard(self._housekeep)
                self._guard(self._ask_until)
        finally:
            self._slots.close()
            self._hints.close(core.PATIENCE_SECONDS)
            self._background.close(core.PATIENCE_SECONDS)
            self._retention.close(core.PATIENCE_SECONDS)
            self._answers.close(core.PATIENCE_SECONDS)
        if self._refusal:
            raise self._refusal

    def about(self, lease: Lease) -> dict[str, object]:
        """The fields of a log line about a lease."""
        named = {name: getattr(lease, name) for name in ("job", "task", "stage", "chunk")}
        return {**named, "attempt": lease.fence, "worker": self.me.id}

    def _next(self) -> inputs.Input:
        wait = min(self.state.wake_at(), self._housekeeping_at) - time.monotonic()
        try:
            return self._inputs.get(timeout=max(0.0, wait)) if wait > 0 else self._inputs.get_nowait()
        except queue.Empty:
            return inputs.Tick()

    def _step(self, input: inputs.Input) -> None:
        input = self._judged(input)
        self.on_input(input)
        before = self.state
        self.state, todo = core.step(self.state, input, time.monotonic())
        self._log_changes(before)
        completes = [command for command in todo if isinstance(command, commands.Complete)]
        for command in todo:
            if not isinstance(command, commands.Complete):
                self._guard(self._do, command)
        if completes:
            self._guard(self._complete, completes)

    def _judged(self, input: inputs.Input) -> inputs.Input:
        """The outcome of a task in the light of what this worker sees: originals, models."""
        match input:
            case inputs.TaskFailed(task) if held := self.state.held.get(task):
                return self._engine_lanes.judge(self._site_lanes.judge(self.me, held.lease, input))
            case inputs.TaskFinished(finish) if held := self.state.held.get(finish.task):
                self._engine_lanes.done(held.lease.lane)
        return input

    def _log_changes(self, before: core.State) -> None:
        if self.state.stop_reason and self.state.note != before.note:
            log.warning(self.state.note, extra={"worker": self.me.id})
        if self.state.has_space != before.has_space:
            word = "the disk has space again" if self.state.has_space else "disk full: no new tasks are taken"
            log.warning(word, extra={"worker": self.me.id})

    def _do(self, command: commands.Command) -> None:
        match command:
            case commands.Start(slot, lease):
                self._start(slot, lease)
            case commands.Kill(slot, reason):
                self._slots.kill(slot, reason)
            case commands.Claim():
                self._claim(command)
            case commands.Listen():
                self._hints.listen(command)
            case commands.PassOn(tasks):
                self._hints.announce(tasks)
                self._hints.settle(tasks)
            case commands.Renew():
                self._renew(command)
            case commands.Sweep():
                self._sweep()
            case commands.Fail() | commands.GiveBack():
                self._outbox.send(self.me.id, command)
            case _:
                self._do_rarely(command)

    def _do_rarely(self, command: commands.Command) -> None:
        match command:
            case commands.ReportLongTask(lease, seconds):
                log.warning("has been running for %.0f s", seconds, extra=self.about(lease))
            case commands.NewIncarnation():
                log.warning("this worker lost its lease and continues as a new one", extra={"worker": self.me.id})
                self.me = self._deps.new_incarnation()
            case commands.Leave():
                log.info("leaving (%s)", self.state.stop_reason or "nothing left", extra={"worker": self.me.id})
                self._hints.leave()
                self._deps.ledger.control(self.me.id, JobCommand.LEAVE)

    def _guard(self, do: Callable[..., None], *args: object) -> None:
        """Nothing that fails here ends the worker: an outage is a warning, anything unknown a bug; both are retried."""
        try:
            do(*args)
        except LeaseLost:
            self._inputs.put(inputs.StoreUnavailable(doubt=True))  # only a renewal can tell whether the row is over
        except NotFound:
            pass  # leaving: the row is gone already
        except OUTAGES as e:
            self._outage.began(e, worker=self.me.id)
            self._inputs.put(inputs.StoreUnavailable())
        except Exception as e:  # noqa: BLE001 - a bug in one command must not end the others
            self.bugs.add(e, worker=self.me.id)
            self._inputs.put(inputs.StoreUnavailable())

    # The core's commands
    def _claim(self, command: commands.Claim) -> None:
        ledger = self._deps.ledger
        hinted = () if ledger.finds_next else command.hinted  # then a hint means "there is work"; order decides which
        leases = self._lease(command, hinted) if self._check_disk_space() else ()
        self._inputs.put(inputs.Claimed(command.lanes, leases, command.n, bool(hinted)))
        self._hints.settle(frozenset(command.hinted) - {lease.task for lease in leases})

    def _lease(self, command: commands.Claim, hinted: Sequence[str]) -> tuple[Lease, ...]:
        ledger, lanes = self._deps.ledger, self._lanes(command.lanes)
        n = min(command.n, ledger.batch)
        if self._filtered and self._filtered.is_on:
            hinted = self._filtered.find(lanes, n)
            if not hinted:
                return ()
        return ledger.claim(self.me.id, lanes, n, hinted)

    def _lanes(self, lanes: Sequence[str]) -> tuple[str, ...]:
        """What these lanes of the core mean now: less while originals or models are away, more if others take less."""
        return self._engine_lanes.lanes(self._site_lanes.lanes((*lanes, *self._left.beside(lanes))))

    def _renew(self, command: commands.Renew) -> None:
        try:
            note = command.note or self._site_lanes.note or self._engine_lanes.note
            reply = self._deps.ledger.renew(self.me, command.holding, command.progress, note)
        except WrongHome as e:
            return self._leave_because(e)
        self._outage.ended(worker=self.me.id)
        self._hints.keep(command.holding)
        statuses = {(task, command.holding[task]): status for task, status in reply.leases.items()}
        return self._inputs.put(inputs.RenewalReply(statuses, reply.drain, reply.gone))

    def _leave_because(self, refusal: WrongHome) -> None:
        """A ledger that is damaged, or newer than this worker, does not come back by waiting."""
        if not self._refusal:
            self._refusal = refusal
            self._inputs.put(inputs.StopRequested(str(refusal), at_once=True))

    def _start(self, slot: int, lease: Lease) -> None:
        """Start a task; one that cannot be started is given back, unless it never can be."""
        try:
            self._start_or_adopt(slot, lease)
        except NeverWorks as e:
            self._inputs.put(never_started(lease, e))
        except Exception as e:  # noqa: BLE001 - one task that cannot be started must not end the worker
            log.warning("not started: %s", e, exc_info=not isinstance(e, RushesError), extra=self.about(lease))
            self._inputs.put(given_back(lease, type(e).__name__, str(e)))

    def _start_or_adopt(self, slot: int, lease: Lease) -> None:
        spec = parse_spec(lease.spec)
        keys = list(spec["results"].values())
        known = self._deps.ledger.known(spec["owner"], keys)
        if keys and len(known) == len(set(keys)):
            results = tuple(known[k] for k in keys)
            self._inputs.put(inputs.TaskFinished(Finish(lease.task, lease.fence, results, adopted=True)))
            return
        self._slots.start(slot, lease)
        log.info("started", extra=self.about(lease))

    def _complete(self, entries: Sequence[commands.Complete]) -> None:
        """Those that open a plan are completed in the background: they read blobs, which may be slow."""
        for entry in entries:
            if self._deps.opens_plan(entry.lease.stage):
                self._background.run(partial(self._guard_background, self._open, entry), entry.lease.task)
        some = [entry for entry in entries if not self._deps.opens_plan(entry.lease.stage)]
        if some:
            self._write(some)

    def _open(self, entry: commands.Complete) -> None:
        held = self.state.held.get(entry.lease.task)
        if held and held.lease.fence == entry.lease.fence and self._outbox.open_plan_of(self.me.id, entry):
            self._write([entry])
            self._opened.append(entry.lease)
            self._check_plans()

    def _check_plans(self) -> None:
        """In the background; what an outage kept from being checked is checked at the next sweep."""
        while self._opened:
            lease = self._opened.pop()
            try:
                self._hints.announce(self._deps.check_plan(lease))
            except OUTAGES:
                self._opened.append(lease)
                raise

    def _write(self, entries: Sequence[commands.Complete]) -> None:
        self._outbox.complete(self.me.id, entries)
        self._until_at = 0.0  # that may have been the last of it
        if any(r.publishes for x in entries for r in x.finish.results):
            self._sweep()

    def _sweep(self) -> None:
        self._background.run(partial(self._guard_background, self._sweep_page), "sweep")

    def _sweep_page(self) -> None:
        """Sweep, and pay a page of what is owed; plans that wait to be opened come before the next page."""
        self._check_plans()
        swept, more = self._deps.sweep()
        if more:
            self._sweep()
        lanes = frozenset(lane for task in swept.ready if (lane := self._deps.lane_of(task)))
        mine = frozenset(self.me.lanes) if lanes.intersection(self._left.beside(self.me.lanes)) else frozenset()
        self._inputs.put(inputs.Swept(lanes | mine, swept.next_due, swept.quiet))

    def _guard_background(self, do: Callable[..., None], *args: object) -> None:
        """After an outage the next sweep, or the core, tries again."""
        try:
            do(*args)
        except (*OUTAGES, LeaseLost) as e:
            self._outage.began(e, worker=self.me.id)

    # Housekeeping, once a second
    def _housekeep(self) -> None:
        now = time.monotonic()
        if now < self._housekeeping_at:
            return
        self._housekeeping_at = now + HOUSEKEEPING_SECONDS
        if not self.state.has_space:
            self._check_disk_space()
        self._slots.check(self._deps.slot_memory)
        if folder_identity(home := self._deps.child.scratch.parent) != self._home:
            self._leave_because(WrongHome(f"{home} is gone", "Start a worker in another home."))
        if self._deps.retention and now >= self._retention_at and self.state.drain_until is None:
            self._retention_at = now + RETENTION_SECONDS
            self._retention.run(partial(self._guard_background, self._clear_up, self._deps.retention), "retention")

        if self._deps.hear_answers:
            self._answers.run(partial(self._guard_background, self._deps.hear_answers), "answers")

    def _clear_up(self, step: Callable[[], float]) -> None:
        """In a thread of its own: what waits for the sweep must not wait for this."""
        self._retention_at = time.monotonic() + step()

    def _ask_until(self) -> None:
        """Once a second, and at once when idle; never while names are being published."""
        now = time.monotonic()
        if self.state.drain_until is not None or self._background.busy or not (now >= self._until_at or self.idle):
            return
        self._until_at = now + HOUSEKEEPING_SECONDS
        if self._until(self):
            self._inputs.put(inputs.StopRequested(at_once=True))

    @property
    def free_bytes(self) -> int | None:
        """Of the disk that results are written on, None where there is none."""
        return self._deps.free_bytes()

    def _check_disk_space(self) -> bool:
        free = self.free_bytes
        enough = free is None or free >= self._deps.reserve
        if enough != self.state.has_space:
            self._inputs.put(DiskSpace(enough, free or 0, self._deps.reserve))
        return enough

    def _keep_log(self, lease: Lease, first: int, lines: Sequence[str]) -> None:
        try:
            self._deps.ledger.log(lease.task, lease.fence, first, lines)
        except Exception as e:  # noqa: BLE001 - lines are best effort; nothing is worth losing an outcome
            log.info("log lines lost: %s", e, extra=self.about(lease))

    def _clear_scratch(self) -> None:
        self._background.run(partial(clear, self._deps.child.scratch), "scratch")
