"""The grade of a shot: which nearness is far and near in it, how strong its depth is, and what lies on the screen.

Decided once per shot over all chunks, so that nothing pumps and no seam shows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from rushes.domain.errors import NeverWorks
from rushes.domain.keys import JSON
from rushes.media.stereo.depth import Depth, level

AUTO = "auto"
STRONGEST = 3.0  # per cent of the width between the nearest and the farthest: more hurts
BEHIND, BEFORE = 1.5, 2.0  # per cent of the width that eyes bear behind and before the screen
_FAR, _NEAR = 0.02, 0.98  # shares of the picture that may lie beyond
_USUAL = 2.0  # strength of a shot with plenty of depth
_PLENTY = 2.5  # near is so many times as near as far
_FLAT = 0.6  # strength of a shot without any


@dataclass(frozen=True, slots=True)
class Wanted:
    """Strength and convergence in per cent of the width, None where they are to be found."""

    strength: float | None = None
    convergence: float | None = None

    @staticmethod
    def of(options: Mapping[str, JSON]) -> "Wanted":
        """From the options of a stage.

        Raises:
            NeverWorks: a value is no number, or more than eyes bear.
        """
        return Wanted(_number(options, "strength", 0, STRONGEST), _number(options, "convergence", -BEFORE, BEHIND))


@dataclass(frozen=True, slots=True)
class Grade:
    """How a shot is shown: nearness `far` and beyond lies `convergence` per cent of the width behind the screen."""

    start: int  # ticks of the picture's time base
    end: int
    far: float
    near: float
    strength: float
    convergence: float

    def to_json(self) -> JSON:
        """As it is stored."""
        return asdict(self)

    @staticmethod
    def from_json(doc: Mapping[str, JSON]) -> "Grade":
        """The inverse of to_json."""
        return Grade(**doc)


def grades(shots: Iterable[tuple[int, int]], depths: Iterable[Depth], wanted: Wanted) -> list[Grade]:
    """A grade for each shot, given by start and end, from the maps of the whole film in order of time.

    No more maps are held than one shot has.
    """
    rest, found = iter(depths), list[Grade]()
    ahead, before = next(rest, None), None
    for start, end in shots:
        inside: list[Depth] = []
        while ahead is not None and ahead.pts < end:
            inside += [ahead] if ahead.pts >= start else []
            before, ahead = ahead, next(rest, None)
        glimpse = before or ahead  # where nobody kept a frame: what was before is much like it
        found.append(grade(start, end, inside or ([glimpse] if glimpse else []), wanted))
    return found


def grade(start: int, end: int, depths: Sequence[Depth], wanted: Wanted) -> Grade:
    """The grade of one shot, each map weighing as long as it stands."""
    if not depths:
        return Grade(start, end, 0.0, 1.0, 0.0, 0.0)
    times = [max(start, depth.pts) for depth in depths]
    weights = [float(max(1, b - a)) for a, b in pairwise([*times, end])]
    far, middle, near = (level(depths, weights, share) for share in (_FAR, 0.5, _NEAR))
    near = max(near, far + 1e-5)
    strength = _strength(far, near) if wanted.strength is None else wanted.strength
    convergence = strength * (middle - far) / (near - far) if wanted.convergence is None else wanted.convergence
    bounded = min(max(convergence, strength - BEFORE), BEHIND)
    return Grade(start, end, far, near, round(strength, 2), round(bounded, 2))


def _strength(far: float, near: float) -> float:
    """More depth for a shot that has more, never none: a wall is flat."""
    span = near / far if far > 0 else _PLENTY
    return _FLAT + (_USUAL - _FLAT) * min(1.0, max(0.0, (span - 1) / (_PLENTY - 1)))


def _number(options: Mapping[str, JSON], name: str, least: float, most: float) -> float | None:
    value = options.get(name, AUTO)
    if value == AUTO:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError) as e:
        raise NeverWorks(f"the {name} {value!r} is not a number", f"Give percent of the width, or {AUTO}.") from e
    if not least <= number <= most:
        hint = f"Eyes bear {least:g} to {most:g} per cent of the width; {AUTO} finds what suits each shot."
        raise NeverWorks(f"a {name} of {number:g} percent is too large", hint)
    return number
