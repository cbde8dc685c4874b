"""What each stage will take of a film on this machine, by the rates that were learnt here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rushes.domain.stage import Scope
from rushes.domain.video import VideoFacts
from rushes.estimates.rates import Rate, RateHistory
from rushes.home import Home

ENOUGH = 3  # rates of a stage that make a trial unnecessary


_LEAST_VOICED = 0.5  # seconds of speech below which a time says nothing about transcription


@dataclass(frozen=True, slots=True)
class StageCost:
    """Seconds of one stage on one film: half of all runs need at most p50, nine of ten p90; and the bytes it makes."""

    p50: float = 0.0
    p90: float = 0.0
    size: float = 0.0

    def part(self, share: float) -> "StageCost":
        """That share of the work."""
        return StageCost(self.p50 * share, self.p90 * share, self.size * share)


def stage_cost(rates: Sequence[Rate], facts: VideoFacts, *, by_pixels: bool) -> StageCost | None:
    """What a stage will take of a film; None if no rate of it says so."""
    seen = [r for r in rates if r.media_seconds > 0]
    if not seen:
        return None
    length = float(facts.duration)
    size = _median([r.size / r.media_seconds for r in seen]) * length
    if any(r.voiced_seconds is not None for r in seen):
        return _by_voice(seen, length if facts.audio else 0.0, size)
    pixels = facts.video.width * facts.video.height if facts.video else 0
    costs = [r.seconds / r.media_seconds * (pixels / r.pixels if by_pixels and r.pixels else 1.0) for r in seen]
    return StageCost(_median(costs) * length, _p90(costs) * length * _margin(costs), size)


def _by_voice(seen: Sequence[Rate], length: float, size: float) -> StageCost | None:
    """Transcription takes time where somebody speaks: by the second of speech, and the share of speech in a film."""
    voiced = [(r.seconds, r.voiced_seconds) for r in seen if r.voiced_seconds and r.voiced_seconds >= _LEAST_VOICED]
    if not voiced:
        return None if length else StageCost()
    costs = [seconds / speech for seconds, speech in voiced]
    share = sum(r.voiced_seconds or 0.0 for r in seen) / sum(r.media_seconds for r in seen)
    most = max(share, _p90([(r.voiced_seconds or 0.0) / r.media_seconds for r in seen]))
    return StageCost(_median(costs) * share * length, _p90(costs) * most * length * _margin(costs), size)


def _margin(costs: Sequence[float]) -> float:
    """The range is wider where few rates are known."""
    return 1.0 + 0.5 / len(costs)


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _p90(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.9))]


def film_costs(
    home: Home, facts: VideoFacts, stages: Sequence[str], machine: str, least: int = ENOUGH
) -> dict[str, StageCost | None]:
    """The cost of each stage; None where fewer than `least` chunks of it were done on this kind of machine."""
    history = RateHistory(home.ledger, home.records, home.blobs, home.owner).of(stages, machine)
    return {stage: _cost(home, facts, stage, history[stage], least) for stage in stages}


def total_seconds(home: Home, costs: Mapping[str, StageCost]) -> tuple[float, float]:
    """p50 and p90 of all stages together: slots share the chunks; work on the whole video runs in one."""
    low = high = 0.0
    for stage, cost in costs.items():
        share = home.slots if home.specs[stage].scope is Scope.CHUNK else 1
        low, high = low + cost.p50 / share, high + cost.p90 / share
    return low, max(high, low * 1.1)


def total_bytes(home: Home, costs: Mapping[str, StageCost]) -> int:
    """Bytes that will be kept: of stages that read the original, for the others refer to these."""
    return int(sum(cost.size for stage, cost in costs.items() if home.specs[stage].reads_source))


def _cost(home: Home, facts: VideoFacts, stage: str, rates: Sequence[Rate], least: int) -> StageCost | None:
    spec = home.specs.get(stage)
    if spec is None:  # of a package that is not installed any more
        return None
    if spec.scope is not Scope.CHUNK:  # work on whole videos is quick beside that on chunks
        return stage_cost(rates, facts, by_pixels=False) or StageCost()
    return stage_cost(rates, facts, by_pixels=spec.reads_source) if len(rates) >= least else None
