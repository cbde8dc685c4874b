"""What each stage will take of a film on this machine, by what was learnt here."""

from collections.abc import Mapping, Sequence

from rushes.domain.stage import Scope
from rushes.domain.video import VideoFacts
from rushes.estimates.rates import Rate, RateHistory
from rushes.estimates.stage_cost import StageCost, stage_cost
from rushes.home import Home

ENOUGH = 3  # rates of a stage that make a trial unnecessary


def film_costs(
    home: Home, facts: VideoFacts, stages: Sequence[str], machine: str, least: int = ENOUGH
) -> dict[str, StageCost | None]:
    """The cost of each stage; None where fewer than `least` chunks of it were done on this kind of machine."""
    history = RateHistory(home.ledger, home.records, home.blobs, home.settings.owner).of(stages, machine)
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
