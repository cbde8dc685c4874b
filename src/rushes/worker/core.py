"""What a worker decides: (state, input) -> (state, commands). Pure: no clock, no I/O, no threads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from rushes.domain.errors import EngineAway
from rushes.domain.task import RENEW_SECONDS, Lease, LeaseStatus, retry_delay
from rushes.domain.worker import NOW, DiskSpace, lanes_at
from rushes.worker.commands import (
    Command,
    Complete,
    Fail,
    GiveBack,
    Kill,
    Leave,
    NewIncarnation,
    OutboxEntry,
    Renew,
    ReportLongTask,
    Start,
    Sweep,
)
from rushes.worker.inputs import (
    Claimed,
    Hinted,
    Input,
    OutboxEntryWritten,
    Progressed,
    RenewalReply,
    StopRequested,
    StoreUnavailable,
    Swept,
    TaskFailed,
    TaskFinished,
)
from rushes.worker.lane_group import LaneGroup

SWEEP_IDLE_SECONDS = 5.0
SWEEP_BUSY_SECONDS = 15.0  # so what a vanished worker held is taken up within 45 s, though everybody is busy
REST_SECONDS = 10.0  # after a task was given back because the disk was full
PATIENCE_SECONDS = 2.0  # after a second request to stop: how long bookkeeping may still take
RETRY_SECONDS = 1.0  # between tries of the bookkeeping while the store is unavailable


@dataclass(frozen=True, slots=True)
class Limits:
    """What this worker may do at once. One slot more than asked serves lane `now` alone."""

    slots: int
    lanes: tuple[str, ...] = ("cpu",)
    task_seconds: float = 1800.0  # 0: no limit
    drain_seconds: float = 120.0
    look_seconds: float = 1.0  # how long an empty claim is believed without a hint
    by_hint: bool = False  # hints wait in a queue: take them first
    site: str = ""  # whose originals it sees, beside those that every worker does


@dataclass(frozen=True, slots=True)
class Holding:
    """A task this worker holds: where it runs, and whether its outcome waits in the outbox."""

    lease: Lease
    slot: int
    since: float
    progress: float = 0.0
    settled: bool = False
    reported: bool = False  # that it runs long


@dataclass(frozen=True, slots=True)
class State:
    """All that a worker knows between two inputs."""

    limits: Limits
    now: float = 0.0
    held: Mapping[str, Holding] = field(default_factory=lambda: MappingProxyType({}))
    outbox: tuple[OutboxEntry, ...] = ()
    renew_at: float = 0.0
    sweep_at: float = 0.0
    lane_groups: tuple[LaneGroup, ...] = ()
    rest_until: float = 0.0  # no claim before, after a task that could not be worked on here
    retry_at: float = 0.0
    drain_until: float | None = None
    stop_requests: int = 0
    stop_reason: str = ""
    has_space: bool = True
    left: bool = False

    @property
    def note(self) -> str:
        """Why it takes no work, as others see it."""
        if self.drain_until is not None:
            return f"draining: {self.stop_reason}" if self.stop_reason else "draining"
        return "" if self.has_space else "disk full"

    @property
    def idle(self) -> bool:
        """Whether it holds nothing and the last look in every lane found nothing."""
        return not self.held and all(i.empty and not i.asking for i in self.lane_groups)

    @property
    def takes(self) -> bool:
        """Whether it takes work now."""
        return self.drain_until is None and self.has_space and self.now >= self.rest_until

    def free(self) -> list[int]:
        """Slots with nothing to do; the last one is lane now's."""
        busy = {h.slot for h in self.held.values() if not h.settled}
        return [n for n in range(self.limits.slots + 1) if n not in busy]

    def free_for(self, lanes: tuple[str, ...]) -> list[int]:
        """Slots with nothing to do that serve these lanes."""
        return [n for n in self.free() if (n == self.limits.slots) == (lanes[0] in NOW)]

    def wake_at(self) -> float:
        """When the next tick is due if nothing happens."""
        times = [self.renew_at]
        times += [self.retry_at] if self.outbox else []
        times += [self.sweep_at] if self.drain_until is None else [max(self.drain_until, self.now + 0.1)]
        if self.drain_until is None and self.has_space:
            times += [max(i.look_at, self.rest_until) for i in self.lane_groups if self.free_for(i.lanes)]
            times += [self.rest_until] if self.rest_until > self.now else []
        times += [h.since + self.limits.task_seconds for h in self.held.values() if _is_limited(self, h)]
        return min(times)


Step = tuple[State, tuple[Command, ...]]


def begin(limits: Limits) -> State:
    """The state of a worker that knows nothing yet."""
    lanes = tuple(lane for lane in limits.lanes if lane not in NOW)
    groups = [lanes_at(group, limits.site) for group in ([lanes, NOW] if limits.slots and lanes else [NOW])]
    return State(limits, lane_groups=tuple(LaneGroup(group, limits.by_hint, limits.look_seconds) for group in groups))


def step(state: State, input: Input, now: float) -> Step:
    """What the worker knows and does next."""
    state = replace(state, now=now)
    state, first = _react(state, input)
    state, then = _do_what_is_due(state)
    return state, first + then


def _react(state: State, input: Input) -> Step:
    match input:
        case Claimed():
            return _start(state, input)
        case RenewalReply():
            return _apply_renewal(state, input)
        case TaskFinished(finish):
            return _settle(state, finish.task, finish.fence, lambda held: Complete(held.lease, finish))
        case TaskFailed():
            if not input.counts and not input.delay:  # and others see at once what it takes no more
                state = replace(state, rest_until=state.now + REST_SECONDS, renew_at=state.now)
            if input.failure.kind == EngineAway.__name__:  # the same of lane gpu
                state = replace(state, renew_at=state.now)
            return _settle(state, input.task, input.fence, lambda held: _failed(held.lease, input))
        case _:
            return _update(state, input), ()


def _update(state: State, input: Input) -> State:
    match input:
        case Hinted(lanes, tasks):
            state = _sweep_soon(state) if tasks else state
            return _each(state, lambda i: i.hinted(tasks, state.now) if i.lanes == lanes else i)
        case Swept():
            return _swept(state, input)
        case Progressed(task, fraction) if task in state.held:
            return _hold(state, replace(state.held[task], progress=fraction))
        case OutboxEntryWritten(entry):
            return _drop(state, entry)
        case StoreUnavailable(doubt):
            later, renew = state.now + RETRY_SECONDS, state.now if doubt else state.renew_at
            return replace(_each(state, lambda i: i.postponed(later)), retry_at=later, renew_at=renew)
        case DiskSpace(enough):
            if enough and not state.has_space:
                state = replace(_each(state, lambda i: i.woken(state.now)), rest_until=state.now)
            renew_at = state.now if enough != state.has_space else state.renew_at  # others ask why nothing runs
            return replace(state, has_space=enough, renew_at=renew_at)
        case StopRequested():
            return _request_stop(state, input)
        case _:
            return state


def _do_what_is_due(state: State) -> Step:
    """What is due now, in this order: overdue attempts, renewal, outbox, sweep, new work, or the way out."""
    commands: list[Command] = []
    for due in (_overdue, _drain, _renew, _send_outbox, _sweep, _claim_work, _leave):
        state, more = due(state)
        commands += more
    return state, tuple(commands)


def _start(state: State, claimed: Claimed) -> Step:
    commands: list[Command] = []
    for lease in claimed.leases:
        if lease.task in state.held:  # cancelled and revived since the last renewal: the old lease is lost
            state, ends = _lose(state, lease.task, LeaseStatus.LOST)
            commands += ends
        slot = next(iter(state.free_for(claimed.lanes)), None)
        state = _hold(state, Holding(lease, -1 if slot is None else slot, state.now))
        if slot is None:  # two claims were answered for one slot
            state, _ = _settle(state, lease.task, lease.fence, lambda held: GiveBack(held.lease, "no free slot"))
        else:
            commands.append(Start(slot, lease))
    state = _each(state, lambda i: i.answered(claimed, state.now) if i.lanes == claimed.lanes else i)
    return _sweep_soon(state) if claimed.leases else state, tuple(commands)


def _swept(state: State, swept: Swept) -> State:
    """Where nothing goes on, the next sweep waits as long as an empty look is believed."""
    if swept.quiet and not state.held:
        return replace(state, sweep_at=state.now + max(SWEEP_IDLE_SECONDS, state.limits.look_seconds))
    due = state.now + swept.next_due if swept.next_due is not None else state.sweep_at
    state = replace(state, sweep_at=min(state.sweep_at, max(due, state.now + RETRY_SECONDS)))
    return _each(state, lambda i: i.woken(state.now) if swept.lanes.intersection(i.lanes) else i)


def _sweep_soon(state: State) -> State:
    """Something goes on: who works on it may vanish."""
    return replace(state, sweep_at=min(state.sweep_at, state.now + SWEEP_IDLE_SECONDS))


def _apply_renewal(state: State, renewal: RenewalReply) -> Step:
    commands: list[Command] = []
    leases = {(task, held.lease.fence) for task, held in state.held.items()}
    for (task, fence), status in (
        dict.fromkeys(leases, LeaseStatus.LOST) if renewal.gone else renewal.statuses
    ).items():
        if (task, fence) in leases and status is not LeaseStatus.KEEP:
            state, ends = _lose(state, task, status)
            commands += ends
    if renewal.gone:
        commands.append(NewIncarnation())
        state = replace(_each(state, lambda i: i.postponed(state.now)), renew_at=state.now)
    if renewal.drain and state.drain_until is None:
        state = _request_stop(state, StopRequested("by order"))
    return state, tuple(commands)


def _lose(state: State, task: str, status: LeaseStatus) -> Step:
    held = state.held[task]
    if status is LeaseStatus.GIVE_BACK and held.settled:
        return state, ()
    ends = () if held.settled else (Kill(held.slot, status.value),)
    if status is LeaseStatus.GIVE_BACK:
        state, _ = _settle(state, task, held.lease.fence, lambda h: GiveBack(h.lease, "paused"))
        return state, ends
    return _forget(state, task), ends


def _request_stop(state: State, request: StopRequested) -> State:
    requests = state.stop_requests + (2 if request.at_once else 1)
    grace = state.limits.drain_seconds if requests == 1 else 0.0
    until = state.now + min(grace, grace if request.within is None else request.within)
    until = until if state.drain_until is None else min(until, state.drain_until)
    reason = state.stop_reason or request.reason
    return replace(state, stop_requests=requests, stop_reason=reason, drain_until=until, renew_at=state.now)


def _failed(lease: Lease, failed: TaskFailed) -> OutboxEntry:
    if not failed.counts:
        return GiveBack(lease, failed.failure.kind, failed.delay)
    delay = None if failed.final else retry_delay(lease.failures + 1, failed.jitter)
    return Fail(lease, failed.failure, delay)


def _overdue(state: State) -> Step:
    commands: list[Command] = []
    for held in list(state.held.values()):
        ran = state.now - held.since
        if not state.limits.task_seconds or held.settled or ran < state.limits.task_seconds:
            continue
        if _is_limited(state, held):
            commands.append(Kill(held.slot, "time"))
            state = _hold(state, replace(held, since=state.now))  # it dies once; the shell reports how
        elif not held.reported:
            commands.append(ReportLongTask(held.lease, ran))
            state = _hold(state, replace(held, reported=True))
    return state, tuple(commands)


def _drain(state: State) -> Step:
    if state.drain_until is None or state.now < state.drain_until:
        return state, ()
    commands: list[Command] = []
    reason = f"drained: {state.stop_reason}" if state.stop_reason else "drained"
    for task, held in list(state.held.items()):
        if not held.settled:
            commands.append(Kill(held.slot, "drained"))
            state, _ = _settle(state, task, held.lease.fence, lambda h: GiveBack(h.lease, reason))
    return state, tuple(commands)


def _send_outbox(state: State) -> Step:
    if not state.outbox or state.now < state.retry_at:
        return state, ()
    return replace(state, retry_at=state.now + RETRY_SECONDS), state.outbox


def _renew(state: State) -> Step:
    if state.now < state.renew_at:
        return state, ()
    holding = {task: h.lease.fence for task, h in state.held.items()}
    progress = {task: h.progress for task, h in state.held.items()}
    return replace(state, renew_at=state.now + RENEW_SECONDS), (Renew(holding, progress, state.note),)


def _sweep(state: State) -> Step:
    if state.now < state.sweep_at or state.drain_until is not None:
        return state, ()
    waits = any(n < state.limits.slots for n in state.free())
    pause = SWEEP_IDLE_SECONDS if waits or not state.held else SWEEP_BUSY_SECONDS
    return replace(state, sweep_at=state.now + pause), (Sweep(),)


def _claim_work(state: State) -> Step:
    takes = state.takes
    commands: list[Command] = []
    lane_groups: list[LaneGroup] = []
    for one in state.lane_groups:
        group, more = one.next_commands(len(state.free_for(one.lanes)), state.now) if takes else one.decline()
        lane_groups.append(group)
        commands += more
    return replace(state, lane_groups=tuple(lane_groups)), tuple(commands)


def _leave(state: State) -> Step:
    if state.drain_until is None or state.left:
        return state, ()
    patient = state.stop_requests <= 1 or state.now < state.drain_until + PATIENCE_SECONDS
    if patient and (state.held or state.outbox or any(i.asking for i in state.lane_groups)):
        return state, ()
    return replace(state, left=True), (Leave(),)


def _settle(state: State, task: str, fence: int, entry_of: Callable[[Holding], OutboxEntry]) -> Step:
    held = state.held.get(task)
    if held is None or held.lease.fence != fence or held.settled:
        return state, ()
    state = _freed(_hold(state, replace(held, settled=True)), held)
    return replace(state, outbox=(*state.outbox, entry_of(held)), retry_at=state.now), ()


def _hold(state: State, holding: Holding) -> State:
    return replace(state, held=MappingProxyType({**state.held, holding.lease.task: holding}))


def _forget(state: State, task: str) -> State:
    held = MappingProxyType({t: h for t, h in state.held.items() if t != task})
    return replace(state, held=held, outbox=tuple(x for x in state.outbox if x.lease.task != task))


def _drop(state: State, entry: OutboxEntry) -> State:
    held = state.held.get(entry.lease.task)
    if held is None or held.lease.fence != entry.lease.fence:
        return state
    return _freed(_forget(state, entry.lease.task), held)


def _freed(state: State, held: Holding) -> State:
    """Its slot takes more; and what it made ready may be in any lane, which only hints in a queue would tell."""
    now_slot, all_free = held.slot == state.limits.slots, not state.held
    return _each(
        state,
        lambda i: i.freed(state.now, all_free=all_free) if not i.by_hint or (i.lanes[0] in NOW) == now_slot else i,
    )


def _each(state: State, change: Callable[[LaneGroup], LaneGroup]) -> State:
    return replace(state, lane_groups=tuple(map(change, state.lane_groups)))


def _is_limited(state: State, held: Holding) -> bool:
    """Only chunks have a time limit: whole-video work is reported, never killed."""
    return bool(state.limits.task_seconds) and held.lease.chunk is not None and not held.settled
