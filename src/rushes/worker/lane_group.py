"""How work is found, by group of lanes: hinted ids first, then a claim without hints. Pure."""

from dataclasses import dataclass, replace
from math import inf

from rushes.worker.commands import Claim, Command, Listen, PassOn
from rushes.worker.inputs import Claimed

ALL = 10_000  # hints that only wake the worker take no place
LISTEN_SECONDS = 20.0  # the longest wait that SQS offers; sweeps find what no hint named


@dataclass(frozen=True, slots=True)
class LaneGroup:
    """One group of lanes: what was asked, which hints came, when to look without a hint."""

    lanes: tuple[str, ...]
    by_hint: bool  # hints wait in a queue: they are taken first
    look_seconds: float
    look_at: float = 0.0
    asking: bool = False  # a claim has not been answered yet
    listening: bool = False
    empty: bool = False  # the last look without hints found nothing, and no hint came since
    hints: tuple[str, ...] = ()

    def hinted(self, tasks: tuple[str, ...], now: float) -> "LaneGroup":
        """Hints came, or the wait is over."""
        if tasks and self.by_hint:
            return replace(self, listening=False, empty=False, hints=(*self.hints, *tasks))
        trusts = self.by_hint and self.empty  # what no hint named, sweeps find
        return replace(self, listening=False, look_at=self.look_at if trusts else now)

    def woken(self, now: float) -> "LaneGroup":
        """There is, or may be, something ready: look without a hint."""
        return replace(self, empty=False, look_at=now)

    def freed(self, now: float, *, all_free: bool) -> "LaneGroup":
        """A slot became free for more work; when all are, a wait for hints says too late that nothing is left."""
        looks = not self.by_hint or (all_free and self.listening)
        return replace(self, empty=False, look_at=now if looks else self.look_at)

    def answered(self, claimed: Claimed, now: float) -> "LaneGroup":
        """The ledger answered; a full answer means that there is more."""
        wait = 0.0 if len(claimed.leases) == claimed.asked else self.look_seconds
        look_at = inf if self.by_hint else now + wait
        return replace(self, asking=False, empty=not claimed.leases and not claimed.hinted, look_at=look_at)

    def postponed(self, until: float) -> "LaneGroup":
        """The store is unavailable: whatever was asked is asked again then."""
        return replace(self, asking=False, empty=False, look_at=until)

    def next_commands(self, free: int, now: float) -> tuple["LaneGroup", tuple[Command, ...]]:
        """What to ask for now, with so many free slots."""
        if self.asking:
            return self, ()
        mine, rest = self.hints[:free], self.hints[free:]
        more = (PassOn(rest),) if rest else ()
        if mine:
            return replace(self, hints=(), asking=True), (Claim(self.lanes, len(mine), mine), *more)
        me = replace(self, hints=())
        if free and now >= self.look_at:
            return replace(me, asking=True, look_at=inf), (Claim(self.lanes, free), *more)
        looks_soon = self.by_hint and self.look_at < inf  # hints taken while the store is unavailable would be lost
        if free and not self.listening and not looks_soon:
            return replace(me, listening=True), (self._listen(free), *more)
        return me, more

    def _listen(self, free: int) -> Listen:
        """Hints in a queue are taken as they fit, and waited for only when a look found nothing."""
        if not self.by_hint:
            return Listen(self.lanes, ALL, LISTEN_SECONDS)
        return Listen(self.lanes, free, LISTEN_SECONDS if self.empty else 0.0)

    def decline(self) -> tuple["LaneGroup", tuple[Command, ...]]:
        """No work is taken now: hints go back to the others."""
        return replace(self, hints=()), (PassOn(self.hints),) if self.hints else ()
