"""Lines over time: readings of the same words become one range, and what was read once and unsurely is left out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from fractions import Fraction
from itertools import groupby

from rushes.domain.observation import Observation

_SHOWN = 0.8
_SURE = 0.95  # one look is enough
_LETTERS = 2
_ALIKE = 0.8  # of the letters, for lines in one place: OCR errs on one in ten at worst
_NEAR = 0.5  # heights of a line
_GAP = Fraction(3, 2)  # seconds: looks are one apart, and a line may be overlooked in one


def sure_alone(line: Observation) -> bool:
    """Whether a reading is shown without another that agrees."""
    return line.confidence >= _SURE and len(_plain(line.text)) >= _LETTERS


def segments(readings: Iterable[Observation]) -> list[Observation]:
    """Readings in order of time as ranges, in order of time and place."""
    made, open_ = list[_Segment](), list[_Segment]()
    for span, look in groupby(readings, key=lambda r: r.span):
        open_ = [s for s in open_ if (span.start - s.readings[-1].span.end) * span.base <= _GAP]
        new = [s for reading, segment in _paired(open_, list(look)) if (s := _taken(reading, segment)) is not segment]
        open_ += new
        made += new
    shown = [s.observation() for s in made if s.is_shown]
    return sorted(shown, key=lambda o: (o.span.start_us, o.box[1] if o.box else 0, o.box[0] if o.box else 0, o.text))


@dataclass(slots=True)
class _Segment:
    """The same words, seen in one look after another."""

    readings: list[Observation]

    @property
    def is_shown(self) -> bool:
        """Whether it was seen twice or very surely, and says something."""
        best = max(r.confidence for r in self.readings)
        enough = len(self.readings) > 1 or best >= _SURE
        return enough and best >= _SHOWN and len(_plain(self.observation().text)) >= _LETTERS

    def observation(self) -> Observation:
        """The reading that most looks agree on, weighed by how sure they were, over the time of all."""
        votes: Counter[str] = Counter()
        for r in self.readings:
            votes[r.text] += round(r.confidence * 1000)
        text = min(votes, key=lambda t: (-votes[t], t))
        best = max((r for r in self.readings if r.text == text), key=lambda r: (r.confidence, -r.span.start))
        span = replace(best.span, start=self.readings[0].span.start, end=self.readings[-1].span.end)
        return replace(best, span=span, extra={**best.extra, "frames": len(self.readings)})


def _taken(reading: Observation, segment: _Segment | None) -> _Segment:
    if segment is None:
        return _Segment([reading])
    segment.readings.append(reading)
    return segment


def _paired(open_: Sequence[_Segment], look: Sequence[Observation]) -> Iterator[tuple[Observation, _Segment | None]]:
    """Each reading of a look with the segment that it goes on with, the most alike first."""
    scores = [(_likeness(s, r), -i, -j) for i, s in enumerate(open_) for j, r in enumerate(look)]
    taken: dict[int, _Segment] = {}
    for score, i, j in sorted(scores, reverse=True):
        if score >= _ALIKE and -j not in taken and not any(open_[-i] is s for s in taken.values()):
            taken[-j] = open_[-i]
    return ((reading, taken.get(j)) for j, reading in enumerate(look))


def _likeness(segment: _Segment, reading: Observation) -> float:
    """2 for the same words in the same place, 1 for the same words elsewhere, less for alike words in one place."""
    last, near = segment.readings[-1], _is_near(segment.readings[-1], reading)
    before, now = _plain(last.text), _plain(reading.text)
    if before == now:
        return 1.0 + near
    return SequenceMatcher(None, before, now, autojunk=False).ratio() if near else 0.0


def _is_near(a: Observation, b: Observation) -> bool:
    if not a.box or not b.box:
        return False
    height = max(a.box[3], b.box[3])
    return abs(a.box[1] + a.box[3] / 2 - b.box[1] - b.box[3] / 2) < _NEAR * height and _overlap(a.box, b.box)


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2]


def _plain(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum()) or text
