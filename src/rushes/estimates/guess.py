"""From what tasks took to what a film will take. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from rushes.domain.video import VideoFacts
from rushes.estimates.rates import Rate

_HEARD = 0.5  # seconds of speech below which a time says nothing about listening


@dataclass(frozen=True, slots=True)
class Guess:
    """Seconds of one stage on one film: half of all runs need at most p50, nine of ten p90; and the bytes it makes."""

    p50: float = 0.0
    p90: float = 0.0
    size: float = 0.0

    def part(self, share: float) -> "Guess":
        """That share of the work."""
        return Guess(self.p50 * share, self.p90 * share, self.size * share)


def guess(rates: Sequence[Rate], facts: VideoFacts, *, by_pixels: bool) -> Guess | None:
    """What a stage will need, None if nothing that was seen of it tells."""
    seen = [r for r in rates if r.media_seconds > 0]
    if not seen:
        return None
    length = float(facts.duration)
    size = _middle([r.size / r.media_seconds for r in seen]) * length
    if any(r.voiced_seconds is not None for r in seen):
        return _by_voice(seen, length if facts.audio else 0.0, size)
    pixels = facts.video.width * facts.video.height if facts.video else 0
    costs = [r.seconds / r.media_seconds * (pixels / r.pixels if by_pixels and r.pixels else 1.0) for r in seen]
    return Guess(_middle(costs) * length, _high(costs) * length * _few(costs), size)


def _by_voice(seen: Sequence[Rate], length: float, size: float) -> Guess | None:
    """Listening takes time where somebody speaks: by the second of speech, and how much of a film is speech."""
    heard = [(r.seconds, r.voiced_seconds) for r in seen if r.voiced_seconds and r.voiced_seconds >= _HEARD]
    if not heard:
        return None if length else Guess()
    costs = [seconds / voiced for seconds, voiced in heard]
    share = sum(r.voiced_seconds or 0.0 for r in seen) / sum(r.media_seconds for r in seen)
    most = max(share, _high([(r.voiced_seconds or 0.0) / r.media_seconds for r in seen]))
    return Guess(_middle(costs) * share * length, _high(costs) * most * length * _few(costs), size)


def _few(costs: Sequence[float]) -> float:
    """Little was seen: the range is wider."""
    return 1.0 + 0.5 / len(costs)


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _high(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.9))]
