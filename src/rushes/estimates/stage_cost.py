"""From what chunks of a stage took to what a film will take. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from rushes.domain.video import VideoFacts
from rushes.estimates.rates import Rate

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
