"""Times that do not depend on the grid of chunks, all in media time."""

from fractions import Fraction
from math import lcm

from rushes.domain.video import VideoFacts

SEGMENT_SECONDS = 4  # of HLS
SAMPLE_PERIOD = Fraction(1, 10)
RESTART_PERIOD = Fraction(5)  # chunks may begin at the first key frame at or after each multiple


class PeriodicSampler:
    """Tells of each frame in turn whether it is the first at or after a multiple of a period."""

    def __init__(self, period: Fraction, base: Fraction) -> None:
        self._over = base.numerator * period.denominator
        self._under = base.denominator * period.numerator
        self._last: int | None = None

    def is_due(self, pts: int) -> bool:
        """Whether a multiple lies between the last frame and this one; true of the first frame."""
        now = pts * self._over // self._under
        due = self._last is None or now > self._last
        self._last = now
        return due


def shift_seconds(facts: VideoFacts) -> int:
    """Seconds added to media time in our fMP4 files, the same for all tracks, so that no time is negative."""
    return 10 - facts.start.__floor__()


def timescale(base: Fraction) -> int:
    """A timescale in which every tick of a time base is a whole number of ticks."""
    scale = base.denominator
    while scale < 10_000:
        scale *= 2
    return scale


def movie_timescale(*scales: int) -> int:
    """A timescale for the edit lists of an MP4: by default starts and lengths of tracks are rounded to milliseconds."""
    common = lcm(*scales)
    return common if common < 1 << 31 else max(scales)
