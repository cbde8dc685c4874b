"""Observations: time-aligned rows inside an artifact, one JSON object a line."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from rushes.domain.keys import JSON, canonical
from rushes.domain.span import Span

_SLACK = 0.001  # rounding

MEDIA_TYPE = "application/x-ndjson; observations"  # of an artifact whose rows are observations
READINGS = "application/x-ndjson; readings"  # the same rows, but not sifted yet: nobody is shown them


@dataclass(frozen=True, slots=True)
class Observation:
    """One time-aligned row: span, kind, value, confidence, place in the picture.

    `words` are (text, span start, span end, confidence) in the span's own base, for what is said.
    """

    kind: str  # "speech", "text", "entity", "object", "face", "place", "shot"
    span: Span
    text: str
    confidence: float
    language: str = ""
    words: tuple[tuple[str, int, int, float], ...] = ()
    box: tuple[float, float, float, float] | None = None  # x, y, width, height as parts of the picture
    extra: Mapping[str, JSON] = field(default_factory=dict)

    def moved(self, seconds: Fraction) -> "Observation":
        """The same row earlier or later, with its words."""
        spans = (Span(a, b, self.span.base).moved(seconds) for _, a, b, _ in self.words)
        words = tuple((w[0], s.start, s.end, w[3]) for w, s in zip(self.words, spans, strict=True))
        return replace(self, span=self.span.moved(seconds), words=words)

    def to_json(self) -> JSON:
        """A line of the artifact; empty fields are left out."""
        doc = {"kind": self.kind, "span": self.span.to_json(), "text": self.text, "confidence": self.confidence}
        optional = {
            "language": self.language,
            "words": [list(w) for w in self.words],
            "box": list(self.box) if self.box else None,
            "extra": dict(self.extra),
        }
        return doc | {k: v for k, v in optional.items() if v}

    @staticmethod
    def from_json(doc: JSON) -> "Observation":
        """The inverse of to_json."""
        box = doc.get("box")
        return Observation(
            kind=doc["kind"],
            span=Span.from_json(doc["span"]),
            text=doc["text"],
            confidence=float(doc["confidence"]),
            language=doc.get("language", ""),
            words=tuple((str(t), int(a), int(b), float(c)) for t, a, b, c in doc.get("words", ())),
            box=(float(box[0]), float(box[1]), float(box[2]), float(box[3])) if box else None,
            extra=doc.get("extra", {}),
        )


def dump(observations: Iterable[Observation]) -> bytes:
    """Observations as the bytes of an artifact.

    Raises:
        ValueError: one of them cannot be true; nothing wrong is ever written.
    """
    return b"".join(canonical(_checked(o).to_json()) + b"\n" for o in observations)


def load(data: bytes) -> Iterator[Observation]:
    """The inverse of dump."""
    return (Observation.from_json(json.loads(line)) for line in data.splitlines())


def _checked(seen: Observation) -> Observation:
    """Schema 1: a kind, a time that does not run backwards, a confidence and a place from 0 to 1."""
    edges = (seen.box[0], seen.box[1], seen.box[0] + seen.box[2], seen.box[1] + seen.box[3]) if seen.box else ()
    inside = all(-_SLACK <= edge <= 1 + _SLACK for edge in edges)
    if not (seen.kind and seen.span.start <= seen.span.end and 0 <= seen.confidence <= 1 and inside):
        raise ValueError(f"not an observation: {seen}")
    return seen
