"""How long films of a length would take here, before they are opened: by what was learnt on this machine."""

from dataclasses import dataclass
from fractions import Fraction

from rushes.domain.video import AudioTrack, VideoFacts, VideoTrack
from rushes.estimates.film_cost import film_costs, total_bytes, total_seconds
from rushes.home import Home
from rushes.plan.recipes import stages_of

MS = Fraction(1, 1000)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds as (p50, p90) for a recipe and each of its stages, and bytes that will be kept."""

    recipe: str
    stages: dict[str, tuple[float, float]]
    whole: tuple[float, float]
    size: int
    unknown: tuple[str, ...]  # stages that nothing is known of on this machine, so not in it


def forecast(home: Home, recipe: str, seconds: float, pixels: tuple[int, int], machine: str) -> Forecast:
    """What so many seconds of film would take.

    Raises:
        Refused: there is no such recipe.
    """
    costs = film_costs(home, _film(seconds, pixels), stages_of(recipe, home.specs), machine, least=1)
    known = {stage: cost for stage, cost in costs.items() if cost}
    return Forecast(
        recipe,
        {stage: (cost.p50, cost.p90) for stage, cost in known.items()},
        total_seconds(home, known),
        total_bytes(home, known),
        tuple(stage for stage in costs if stage not in known),
    )


def _film(seconds: float, pixels: tuple[int, int]) -> VideoFacts:
    end = max(1, round(seconds * 1000))
    picture = VideoTrack(0, "", *pixels, base=MS, start=0, end=end, frames=0, keys=(), rate=None)
    return VideoFacts("", 0, "", picture, (AudioTrack(1, "", 48000, 2, MS, 0, end),))
