"""Text segments: readings of the same words merged over time."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from fractions import Fraction
from itertools import groupby

from rushes.domain.observation import Observation

_MIN_CONFIDENCE = 0.8
_CERTAIN = 0.95  # one reading is enough
_MIN_LETTERS = 2
_MIN_SIMILARITY = 0.8  # of letters, for lines in one place: OCR errs on one in ten at worst
_MAX_DISTANCE = 0.5  # heights of a line
_MAX_GAP = Fraction(3, 2)  # seconds: samples are one apart, and one may miss a line


def normalised(text: str) -> str:
    """Small letters and single spaces: what the hash of a text is of."""
    return " ".join(text.lower().split())


def text_hash(text: str) -> str:
    """The same for texts that differ in case and spaces alone."""
    return hashlib.sha256(normalised(text).encode()).hexdigest()[:32]


def is_certain(line: Observation) -> bool:
    """Whether a reading is shown without a second one that agrees."""
    return line.confidence >= _CERTAIN and len(_letters(line.text)) >= _MIN_LETTERS


def merge_readings(readings: Iterable[Observation]) -> list[Observation]:
    """Readings in order of time as segments, in order of time and position."""
    made, open_ = list[_Segment](), list[_Segment]()
    for span, frame in groupby(readings, key=lambda r: r.span):
        open_ = [s for s in open_ if (span.start - s.readings[-1].span.end) * span.base <= _MAX_GAP]
        new = [s for reading, segment in _match(open_, list(frame)) if (s := _extend(reading, segment)) is not segment]
        open_ += new
        made += new
    shown = [s.observation() for s in made if s.is_shown]
    return sorted(shown, key=lambda o: (o.span.start_us, o.box[1] if o.box else 0, o.box[0] if o.box else 0, o.text))


@dataclass(slots=True)
class _Segment:
    """Readings of the same words in successive frames."""

    readings: list[Observation]

    @property
    def is_shown(self) -> bool:
        """Whether it was read twice or with certainty, and has letters."""
        best = max(r.confidence for r in self.readings)
        enough = len(self.readings) > 1 or best >= _CERTAIN
        return enough and best >= _MIN_CONFIDENCE and len(_letters(self.observation().text)) >= _MIN_LETTERS

    def observation(self) -> Observation:
        """The text with the most votes, weighted by confidence, over the time of all readings."""
        votes: Counter[str] = Counter()
        for r in self.readings:
            votes[r.text] += round(r.confidence * 1000)
        text = min(votes, key=lambda t: (-votes[t], t))
        best = max((r for r in self.readings if r.text == text), key=lambda r: (r.confidence, -r.span.start))
        span = replace(best.span, start=self.readings[0].span.start, end=self.readings[-1].span.end)
        return replace(best, span=span, extra={**best.extra, "frames": len(self.readings)})


def _extend(reading: Observation, segment: _Segment | None) -> _Segment:
    if segment is None:
        return _Segment([reading])
    segment.readings.append(reading)
    return segment


def _match(open_: Sequence[_Segment], frame: Sequence[Observation]) -> Iterator[tuple[Observation, _Segment | None]]:
    """Each reading of a frame with the open segment that it continues; the most similar pairs are matched first."""
    scores = [(_similarity(s, r), -i, -j) for i, s in enumerate(open_) for j, r in enumerate(frame)]
    taken: dict[int, _Segment] = {}
    for score, i, j in sorted(scores, reverse=True):
        if score >= _MIN_SIMILARITY and -j not in taken and not any(open_[-i] is s for s in taken.values()):
            taken[-j] = open_[-i]
    return ((reading, taken.get(j)) for j, reading in enumerate(frame))


def _similarity(segment: _Segment, reading: Observation) -> float:
    """2 for the same words in one place, 1 for the same words elsewhere, less for similar words in one place."""
    last, near = segment.readings[-1], _is_near(segment.readings[-1], reading)
    before, now = _letters(last.text), _letters(reading.text)
    if before == now:
        return 1.0 + near
    return SequenceMatcher(None, before, now, autojunk=False).ratio() if near else 0.0


def _is_near(a: Observation, b: Observation) -> bool:
    if not a.box or not b.box:
        return False
    height = max(a.box[3], b.box[3])
    return abs(a.box[1] + a.box[3] / 2 - b.box[1] - b.box[3] / 2) < _MAX_DISTANCE * height and _overlap(a.box, b.box)


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2]


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum()) or text
