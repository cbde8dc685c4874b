"""What a worker decides: (state, happening) -> (state, orders). Pure: no clock, no I/O, no threads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from rushes.domain.task import RENEW_SECONDS, Lease, Order, retry_delay
from rushes.worker.happenings import (
    Broke,
    Claimed,
    Happening,
    Hinted,
    Made,
    Progressed,
    RenewalCame,
    Room,
    Settled,
    StoreGone,
    Told,
)
from rushes.worker.orders import (
    Claim,
    Complete,
    Deed,
    Fail,
    GiveBack,
    Kill,
    Leave,
    Letter,
    Rebirth,
    Renew,
    Start,
    Sweep,
)

SWEEP_IDLE_SECONDS = 5.0
SWEEP_BUSY_SECONDS = 60.0
REST_SECONDS = 10.0  # after a task was handed back for want of room
PATIENCE_SECONDS = 2.0  # told twice: how long bookkeeping may still take
NOW = ("now",)  # the lane that jumps every queue
RETRY_SECONDS = 1.0  # between tries of the bookkeeping while a store is away


@dataclass(frozen=True, slots=True)
class Limits:
    """What this worker may do at once. The last slot is one more than asked and serves lane `now` alone."""

    slots: int
    lanes: tuple[str, ...] = ("cpu",)
    task_seconds: float = 1800.0
    drain_seconds: float = 120.0
    look_seconds: float = 1.0  # how long an empty claim is believed without a hint


@dataclass(frozen=True, slots=True)
class Holding:
    """A task this worker holds: where it runs, and whether its outcome waits in the outbox."""

    lease: Lease
    slot: int
    since: float
    progress: float = 0.0
    settled: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """All that a worker knows between two happenings."""

    limits: Limits
    now: float = 0.0
    held: Mapping[str, Holding] = field(default_factory=lambda: MappingProxyType({}))
    outbox: tuple[Letter, ...] = ()
    renew_at: float = 0.0
    sweep_at: float = 0.0
    look_at: float = 0.0
    rest_until: float = 0.0  # after a task that could not be worked on here: no claim before
    retry_at: float = 0.0
    drain_until: float | None = None
    told: int = 0
    room: bool = True
    asking: frozenset[tuple[str, ...]] = frozenset()  # lanes in which a claim has not been answered yet
    left: bool = False

    @property
    def note(self) -> str:
        """Why it takes no work, as others see it."""
        if self.drain_until is not None:
            return "draining"
        return "" if self.room else "disk full"

    def free(self) -> list[int]:
        """Slots with nothing to do; the last one is lane now's."""
        busy = {h.slot for h in self.held.values() if not h.settled}
        return [n for n in range(self.limits.slots + 1) if n not in busy]

    def wake_at(self) -> float:
        """When the next tick is due if nothing happens."""
        times = [self.renew_at]
        times += [self.retry_at] if self.outbox else []
        times += [self.sweep_at] if self.drain_until is None else [max(self.drain_until, self.now + 0.1)]
        times += [max(self.look_at, self.rest_until)] if self.drain_until is None and self.room and self.free() else []
        times += [h.since + self.limits.task_seconds for h in self.held.values() if _is_limited(self, h)]
        return min(times)


Step = tuple[State, tuple[Deed, ...]]


def step(state: State, happening: Happening, now: float) -> Step:
    """What the worker knows and does next."""
    state = replace(state, now=now)
    state, first = _take(state, happening)
    state, then = _go_on(state)
    return state, first + then


def _take(state: State, happening: Happening) -> Step:
    match happening:
        case Hinted():
            return replace(state, look_at=state.now), ()
        case Claimed():
            return _start(state, happening)
        case RenewalCame():
            return _obey(state, happening)
        case Progressed(task, fraction) if task in state.held:
            return _hold(state, replace(state.held[task], progress=fraction)), ()
        case Made(finish):
            return _settle(state, finish.task, finish.fence, lambda held: Complete(held.lease, finish))
        case Broke():
            rest = state.rest_until if happening.counts else state.now + REST_SECONDS
            state = replace(state, rest_until=rest)
            return _settle(state, happening.task, happening.fence, lambda held: _failed(held.lease, happening))
        case Settled(letter):
            return _drop(state, letter), ()
        case StoreGone(doubt):
            later, renew = state.now + RETRY_SECONDS, state.now if doubt else state.renew_at
            return replace(state, retry_at=later, look_at=later, asking=frozenset(), renew_at=renew), ()
        case Room(enough):
            look = state.now if enough and not state.room else state.look_at
            return replace(state, room=enough, look_at=look, rest_until=min(state.rest_until, look)), ()
        case Told():
            return _told(state)
        case _:
            return state, ()


def _go_on(state: State) -> Step:
    """What is due now, in this order: overdue attempts, letters, renewal, sweep, new work, or the way out."""
    deeds: list[Deed] = []
    for due in (_overdue, _post, _renew, _sweep, _look, _leave):
        state, more = due(state)
        deeds += more
    return state, tuple(deeds)


def _start(state: State, claimed: Claimed) -> Step:
    deeds: list[Deed] = []
    for lease in claimed.leases:
        slot = next((n for n in state.free() if (n == state.limits.slots) == (claimed.lanes == NOW)), None)
        state = _hold(state, Holding(lease, -1 if slot is None else slot, state.now))
        if slot is None:  # two claims were answered for one slot
            state, _ = _settle(state, lease.task, lease.fence, lambda held: GiveBack(held.lease, "no free slot"))
        else:
            deeds.append(Start(slot, lease))
    more = len(claimed.leases) == claimed.asked
    wait = 0.0 if more else state.limits.look_seconds
    return replace(state, look_at=state.now + wait, asking=state.asking - {claimed.lanes}), tuple(deeds)


def _obey(state: State, came: RenewalCame) -> Step:
    deeds: list[Deed] = []
    orders = dict.fromkeys(state.held, Order.LOST) if came.gone else came.orders
    for task, order in orders.items():
        held = state.held.get(task)
        if held is None or order is Order.KEEP or (order is Order.GIVE_BACK and held.settled):
            continue
        deeds += [] if held.settled else [Kill(held.slot, order.value)]
        if order is Order.GIVE_BACK:
            state, _ = _settle(state, task, held.lease.fence, lambda h: GiveBack(h.lease, "paused"))
        else:
            state = _forget(state, task)
    if came.gone:
        deeds.append(Rebirth())
        state = replace(state, renew_at=state.now, asking=frozenset())
    if came.drain and state.drain_until is None:
        state, _ = _told(state)
    return state, tuple(deeds)


def _told(state: State) -> Step:
    told = state.told + 1
    until = state.now + (state.limits.drain_seconds if told == 1 else 0.0)
    return replace(state, told=told, drain_until=min(until, state.drain_until or until), renew_at=state.now), ()


def _failed(lease: Lease, broke: Broke) -> Letter:
    if not broke.counts:
        return GiveBack(lease, broke.failure.kind)
    delay = None if broke.final else retry_delay(lease.failures + 1, broke.jitter)
    return Fail(lease, broke.failure, delay)


def _overdue(state: State) -> Step:
    deeds: list[Deed] = []
    for held in list(state.held.values()):
        if _is_limited(state, held) and state.now >= held.since + state.limits.task_seconds:
            deeds.append(Kill(held.slot, "time"))
            state = _hold(state, replace(held, since=state.now))  # it dies once; the shell reports how
    if state.drain_until is not None and state.now >= state.drain_until:
        for task, held in list(state.held.items()):
            if not held.settled:
                deeds.append(Kill(held.slot, "drained"))
                state, _ = _settle(state, task, held.lease.fence, lambda h: GiveBack(h.lease, "drained"))
    return state, tuple(deeds)


def _post(state: State) -> Step:
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


def _look(state: State) -> Step:
    if state.drain_until is not None or not state.room or state.now < max(state.look_at, state.rest_until):
        return state, ()
    free = state.free()
    wanted = {state.limits.lanes: sum(n < state.limits.slots for n in free), NOW: int(state.limits.slots in free)}
    deeds = tuple(Claim(lanes, n) for lanes, n in wanted.items() if n and lanes not in state.asking)
    asking = state.asking | {d.lanes for d in deeds}
    return replace(state, look_at=state.now + state.limits.look_seconds, asking=asking), deeds


def _leave(state: State) -> Step:
    if state.drain_until is None or state.left:
        return state, ()
    hurried = state.told > 1 and state.now >= state.drain_until + PATIENCE_SECONDS  # a store away holds nobody
    if (state.held or state.outbox or state.asking) and not hurried:
        return state, ()
    return replace(state, left=True), (Leave(),)


def _settle(state: State, task: str, fence: int, letter_of: Callable[[Holding], Letter]) -> Step:
    held = state.held.get(task)
    if held is None or held.lease.fence != fence or held.settled:
        return state, ()
    state = _hold(state, replace(held, settled=True))
    return replace(state, outbox=(*state.outbox, letter_of(held)), retry_at=state.now, look_at=state.now), ()


def _hold(state: State, holding: Holding) -> State:
    return replace(state, held=MappingProxyType({**state.held, holding.lease.task: holding}))


def _forget(state: State, task: str) -> State:
    held = MappingProxyType({t: h for t, h in state.held.items() if t != task})
    return replace(state, held=held, outbox=tuple(x for x in state.outbox if x.lease.task != task))


def _drop(state: State, letter: Letter) -> State:
    held = state.held.get(letter.lease.task)
    if held is None or held.lease.fence != letter.lease.fence:
        return state
    return replace(_forget(state, letter.lease.task), look_at=state.now)


def _is_limited(state: State, held: Holding) -> bool:
    """Only chunks have a time limit: whole-video work is reported, never ended."""
    return bool(state.limits.task_seconds) and held.lease.chunk is not None and not held.settled
