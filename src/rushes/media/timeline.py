"""Moments that must not depend on how a film is cut into chunks, all in media time."""

from fractions import Fraction

from rushes.domain.video import VideoFacts

SEGMENT_SECONDS = 4  # of a playlist
SAMPLE = Fraction(1, 10)
ANEW = Fraction(5)  # comparison forgets what was before at the first key frame at or after each multiple


class Beat:
    """Says of each frame in turn whether it is the first at or after a multiple of a period."""

    def __init__(self, period: Fraction, base: Fraction) -> None:
        self._over = base.numerator * period.denominator
        self._under = base.denominator * period.numerator
        self._last: int | None = None

    def strikes(self, pts: int) -> bool:
        """Whether a multiple lies between the frame before and this one (the first frame always strikes)."""
        now = pts * self._over // self._under
        struck = self._last is None or now > self._last
        self._last = now
        return struck


def shift_seconds(facts: VideoFacts) -> int:
    """Seconds added to media time in files of ours, the same for all tracks, so that no time is negative."""
    return 10 - facts.start.__floor__()


def timescale(base: Fraction) -> int:
    """Ticks per second for a track of ours in which every tick of a time base is a whole number of ticks."""
    scale = base.denominator
    while scale < 10_000:
        scale *= 2
    return scale
