"""Text segments: readings of the same words merged over time, and the entities in a line of text."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import SequenceMatcher
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation

_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY"}
_CODES = "USD|EUR|GBP|JPY|CHF|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|BRL|MXN|KRW|TRY|RUB"
_SCALES = {"thousand": 3, "k": 3, "million": 6, "mio": 6, "m": 6, "billion": 9, "bn": 9, "trillion": 12, "tn": 12}
_UNITS = (
    "%|‰|°C|°F|°|km/h|mph|m/s|km|cm|mm|m|kg|mg|g|t|lbs?|oz|ml|l|kWh|kW|MW|GW|W|GHz|MHz|kHz|Hz|TB|GB|MB|KB|kB|ms|s|min|h"
    "|ft|in|mi|px|fps|dB|V|A"
)
_NUMBER = re.compile(
    rf"(?<![\w.,:/#@+-])(?P<sign>-)?(?:(?P<mark>[{''.join(_CURRENCIES)}])|(?P<code>{_CODES})\b)?\s?"
    r"(?P<digits>\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?)"
    rf"(?:\s?(?P<scale>{'|'.join(_SCALES)})\b)?(?:\s?(?P<after>[{''.join(_CURRENCIES)}]|(?:{_CODES})\b))?"
    rf"(?:\s?(?P<unit>{_UNITS})(?!\w))?(?![\w:/-]|[.,]\d)"
)
_URL = re.compile(
    r"(?:https?://|www\.)[^\s<>\"']+|(?<![\w@.])(?:[\w-]+\.)+(?:com|org|net|io|dev|tv|eu|de|uk|fr)\b(?:/\S*)?"
)
_MENTION = re.compile(r"(?<![\w.@/])@\w(?:[\w.]*\w)?")
_HASHTAG = re.compile(r"(?<![\w#&/])#(?=\w*[^\W\d_])\w+")
_EMOJI = re.compile(
    "(?:[\U0001f1e6-\U0001f1ff]{2}|[\U0001f300-\U0001faff\u2600-\u27bf\u2b50\u2b55\u231a-\u23ff]"
    "[\ufe0f\U0001f3fb-\U0001f3ff]*(?:\u200d[\U0001f300-\U0001faff\u2600-\u27bf][\ufe0f\U0001f3fb-\U0001f3ff]*)*)"
)
_MIN_CONFIDENCE = 0.8
_CERTAIN = 0.95  # one reading is enough
_MIN_LETTERS = 2
_MIN_SIMILARITY = 0.8  # of letters, for lines in one place: OCR errs on one in ten at worst
_MAX_DISTANCE = 0.5  # heights of a line
_MAX_GAP = Fraction(3, 2)  # seconds: samples are one apart, and one may miss a line


class Entity(NamedTuple):
    """An entity in a text: its type, and the value of a number."""

    text: str
    type: str  # "mention", "hashtag", "url", "emoji", "number"
    meaning: dict[str, JSON]


def find_entities(text: str) -> list[Entity]:
    """All entities in the order of the text; none inside a URL."""
    found = sorted(_matches(text), key=lambda pair: (pair[0][0], -pair[0][1]))
    kept: list[Entity] = []
    end = 0
    for (start, stop), entity in found:
        if start >= end:
            kept.append(entity)
            end = stop
    return kept


def _matches(text: str) -> Iterator[tuple[tuple[int, int], Entity]]:
    for m in _URL.finditer(text):
        plain = m[0].rstrip(".,;:!?)")
        yield (m.start(), m.start() + len(plain)), Entity(plain, "url", {})
    for type, pattern in (("mention", _MENTION), ("hashtag", _HASHTAG), ("emoji", _EMOJI)):
        yield from ((m.span(), Entity(m[0], type, {})) for m in pattern.finditer(text))
    for m in _NUMBER.finditer(text):
        yield m.span(), Entity(m[0].strip(), "number", _meaning(m))


def _meaning(m: re.Match[str]) -> dict[str, JSON]:
    """The value written out, with its currency and unit if there are any."""
    digits = re.sub(r"[,\u00a0\u202f](?=\d{3}(?!\d))", "", m["digits"]).replace(",", ".")
    value = Decimal(digits).scaleb(_SCALES.get(m["scale"] or "", 0)) * (-1 if m["sign"] else 1)
    money = m["mark"] or m["code"] or m["after"]
    doc = {"value": f"{value:f}", "currency": _CURRENCIES.get(money or "", money), "unit": m["unit"]}
    return {k: v for k, v in doc.items() if v}


def is_certain(line: Observation) -> bool:
    """Whether a reading is shown without a second one that agrees."""
    return line.confidence >= _CERTAIN and len(_normalise(line.text)) >= _MIN_LETTERS


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
        return enough and best >= _MIN_CONFIDENCE and len(_normalise(self.observation().text)) >= _MIN_LETTERS

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
    before, now = _normalise(last.text), _normalise(reading.text)
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


def _normalise(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum()) or text
