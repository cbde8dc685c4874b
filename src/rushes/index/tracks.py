"""Tracks as an index keeps them. Pure."""

from rushes.domain.keys import JSON
from rushes.domain.span import Span
from rushes.index.changes import Track

Box = tuple[float, float, float, float]


def track_doc(track: Track) -> JSON:
    """Everything but its video and its embedding."""
    detections = [[span.to_json(), list(box), confidence] for span, box, confidence in track.detections]
    return {"span": track.span.to_json(), "box": list(track.box), "detections": detections}


def track_of(video: str, doc: JSON, embedding: bytes) -> Track:
    """The inverse."""
    rows = doc["detections"]
    detections = tuple((Span.from_json(span), box_of(box), float(confidence)) for span, box, confidence in rows)
    return Track(video, Span.from_json(doc["span"]), box_of(doc["box"]), detections, embedding)


def box_of(value: JSON) -> Box:
    """Left, top, width and height, of exactly four numbers."""
    x, y, width, height = map(float, value)
    return x, y, width, height
