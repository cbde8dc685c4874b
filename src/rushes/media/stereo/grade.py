"""The depth grade of a shot: its range of inverse depth, its strength and its convergence.

Decided once per shot over all chunks, so that depth neither pumps nor jumps between chunks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from rushes.domain.errors import NeverWorks
from rushes.domain.keys import JSON
from rushes.media.stereo.depth_maps import DepthEntry, weighted_quantile

AUTO = "auto"
MAX_STRENGTH = 3.0  # per cent of the width between nearest and farthest; more hurts
MAX_POSITIVE_PARALLAX = 1.5  # per cent of the width, behind the screen
MAX_NEGATIVE_PARALLAX = 2.0  # in front of it
_FAR_QUANTILE, _NEAR_QUANTILE = 0.02, 0.98  # clipped beyond these
_DEEP_STRENGTH = 2.0  # strength of a deep shot
_DEEP_RATIO = 2.5  # ratio near / far of inverse depth of a deep shot
_FLAT_STRENGTH = 0.6  # strength of a flat shot


@dataclass(frozen=True, slots=True)
class GradeOptions:
    """Strength and convergence in per cent of the width; None: automatic."""

    strength: float | None = None
    convergence: float | None = None

    @staticmethod
    def of(options: Mapping[str, JSON]) -> "GradeOptions":
        """From the options of a stage. Raises NeverWorks if a value is not a number or out of range."""
        return GradeOptions(
            _number(options, "strength", 0, MAX_STRENGTH),
            _number(options, "convergence", -MAX_NEGATIVE_PARALLAX, MAX_POSITIVE_PARALLAX),
        )


@dataclass(frozen=True, slots=True)
class Grade:
    """How a shot is shown: inverse depth `far` lies `convergence` per cent of the width behind the screen."""

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


def grade_shots(shots: Iterable[tuple[int, int]], depths: Iterable[DepthEntry], options: GradeOptions) -> list[Grade]:
    """A grade for each shot (start, end), from the maps of the film in order of time; holds the maps of one shot."""
    rest, found = iter(depths), list[Grade]()
    ahead, before = next(rest, None), None
    for start, end in shots:
        inside: list[DepthEntry] = []
        while ahead is not None and ahead.pts < end:
            inside += [ahead] if ahead.pts >= start else []
            before, ahead = ahead, next(rest, None)
        nearest = before or ahead  # no frame was packed here, so the one before is much like it
        found.append(grade_shot(start, end, inside or ([nearest] if nearest else []), options))
    return found


def grade_shot(start: int, end: int, depths: Sequence[DepthEntry], options: GradeOptions) -> Grade:
    """The grade of one shot; each map weighs as long as it holds."""
    if not depths:
        return Grade(start, end, 0.0, 1.0, 0.0, 0.0)
    times = [max(start, depth.pts) for depth in depths]
    weights = [float(max(1, b - a)) for a, b in pairwise([*times, end])]
    far, middle, near = (weighted_quantile(depths, weights, share) for share in (_FAR_QUANTILE, 0.5, _NEAR_QUANTILE))
    near = max(near, far + 1e-5)
    strength = _strength(far, near) if options.strength is None else options.strength
    convergence = strength * (middle - far) / (near - far) if options.convergence is None else options.convergence
    bounded = min(max(convergence, strength - MAX_NEGATIVE_PARALLAX), MAX_POSITIVE_PARALLAX)
    return Grade(start, end, far, near, round(strength, 2), round(bounded, 2))


def _strength(far: float, near: float) -> float:
    """Stronger for a deeper shot, never zero."""
    span = near / far if far > 0 else _DEEP_RATIO
    return _FLAT_STRENGTH + (_DEEP_STRENGTH - _FLAT_STRENGTH) * min(1.0, max(0.0, (span - 1) / (_DEEP_RATIO - 1)))


def _number(options: Mapping[str, JSON], name: str, least: float, most: float) -> float | None:
    value = options.get(name, AUTO)
    if value == AUTO:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError) as e:
        raise NeverWorks(f"{name} {value!r} is not a number", f"Give per cent of the width, or {AUTO}.") from e
    if not least <= number <= most:
        hint = f"Choose {least:g} to {most:g} per cent of the width, or {AUTO}."
        raise NeverWorks(f"{name} {number:g} per cent is out of range and would hurt the eyes", hint)
    return number
