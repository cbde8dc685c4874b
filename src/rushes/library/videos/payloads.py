"""Artifact payloads by type: an observation in the field names of the design documents."""

from collections.abc import Callable, Mapping

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation

Payload = dict[str, JSON]
TYPES = {
    "speech": "transcript.segment",
    "text": "ocr.text",
    "entity": "ocr.entity",
    "object": "object.detection",
    "face": "face.detection",
    "place": "place.classification",
    "shot": "scene",
}  # our kinds -> the words of the documents


def payload_of(line: Observation, number: int, cluster: str = "") -> Payload:
    """The payload of the `number`th observation of its kind; `cluster` is the person whose face it is."""
    payload = _PAYLOADS[line.kind](line, number) if line.kind in _PAYLOADS else {**line.to_json()}
    return payload | {"cluster_id": cluster} if line.kind == "face" else payload


def _speech(line: Observation, _: int) -> Payload:
    ms = line.span.base * 1000
    words = [
        {"word": text, "start_ms": int(start * ms), "end_ms": int(end * ms), "confidence": confidence}
        for text, start, end, confidence in line.words
    ]
    return {**_times(line), "text": line.text, "confidence": line.confidence, "words": words, "language": line.language}


def _text(line: Observation, _: int) -> Payload:
    polygon = [{"x": x, "y": y} for x, y in line.extra.get("polygon", ())]
    return {"text": line.text, "confidence": line.confidence, "polygon": polygon, "bounding_box": _box(line)}


def _entity(line: Observation, number: int) -> Payload:
    return _text(line, number) | {"type": line.extra.get("type", "")}


def _object(line: Observation, _: int) -> Payload:
    return {"label": line.text or line.kind, "confidence": line.confidence, "bounding_box": _box(line)}


def _place(line: Observation, _: int) -> Payload:
    predictions = [{"label": label, "confidence": share} for label, share in line.extra.get("top", ())]
    return {"label": line.text, "confidence": line.confidence, "predictions": predictions}


def _scene(line: Observation, number: int) -> Payload:
    return {"scene_index": number, **_times(line)}


def _times(line: Observation) -> Payload:
    return {"start_ms": line.span.start_us // 1000, "end_ms": line.span.end_us // 1000}


def _box(line: Observation) -> Payload | None:
    return dict(zip(("x", "y", "width", "height"), line.box, strict=True)) if line.box else None


_PAYLOADS: Mapping[str, Callable[[Observation, int], Payload]] = {
    "speech": _speech,
    "text": _text,
    "entity": _entity,
    "object": _object,
    "face": _object,
    "place": _place,
    "shot": _scene,
}
