"""Observations: time-aligned rows inside an artifact, one JSON object a line."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rushes.domain.keys import JSON, canonical
from rushes.domain.span import Span

MEDIA_TYPE = "application/x-ndjson; observations"  # of an artifact whose rows are observations


@dataclass(frozen=True, slots=True)
class Observation:
    """One time-aligned row: span, kind, value, confidence, place in the picture.

    `words` are (text, span start, span end, confidence) in the span's own base, for what is said.
    """

    kind: str  # "speech", later "text", "object", "face", "place"
    span: Span
    text: str
    confidence: float
    language: str = ""
    words: tuple[tuple[str, int, int, float], ...] = ()
    box: tuple[float, float, float, float] | None = None  # x, y, width, height as parts of the picture
    extra: Mapping[str, JSON] = field(default_factory=dict)

    def to_json(self) -> JSON:
        """A line of the artifact; empty fields are left out."""
        doc: dict[str, JSON] = {
            "kind": self.kind,
            "span": self.span.to_json(),
            "text": self.text,
            "confidence": self.confidence,
        }
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
    """Observations as the bytes of an artifact."""
    return b"".join(canonical(o.to_json()) + b"\n" for o in observations)


def load(data: bytes) -> Iterator[Observation]:
    """The inverse of dump."""
    return (Observation.from_json(json.loads(line)) for line in data.splitlines())
