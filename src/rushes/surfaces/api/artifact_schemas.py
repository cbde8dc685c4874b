"""Schemas of artifact payloads, by type and version; every payload in an answer is checked against one."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from rushes.domain.errors import NeverWorks

Share = Annotated[float, Field(ge=0, le=1)]


class BoundingBox(BaseModel):
    """A box in the picture, as fractions of its width and height."""

    x: float
    y: float
    width: float
    height: float


class Point(BaseModel):
    """A point in the picture, as fractions of its width and height."""

    x: float
    y: float


class ObjectDetectionV1(BaseModel):
    """An object in a frame."""

    label: str
    confidence: Share
    bounding_box: BoundingBox


class FaceDetectionV1(ObjectDetectionV1):
    """A face in a frame; faces of one person have the same cluster, "" if the face is not clear enough."""

    cluster_id: str


class Word(BaseModel):
    """A spoken word."""

    word: str
    start_ms: int
    end_ms: int
    confidence: Share


class TranscriptSegmentV1(BaseModel):
    """A line of speech."""

    start_ms: int
    end_ms: int
    text: str
    confidence: Share
    words: list[Word]
    language: str


class OcrTextV1(BaseModel):
    """Text on screen."""

    text: str
    confidence: Share
    polygon: list[Point]
    bounding_box: BoundingBox | None


class OcrEntityV1(OcrTextV1):
    """A number, link, address or name in the text on screen."""

    type: str


class Prediction(BaseModel):
    """A class and its probability."""

    label: str
    confidence: Share


class PlaceClassificationV1(BaseModel):
    """The place where a frame was filmed."""

    label: str
    confidence: Share
    predictions: list[Prediction]


class SceneV1(BaseModel):
    """The part of a video between two cuts, numbered from 0."""

    scene_index: Annotated[int, Field(ge=0)]
    start_ms: int
    end_ms: int


SCHEMAS: Mapping[tuple[str, int], type[BaseModel]] = {
    ("object.detection", 1): ObjectDetectionV1,
    ("face.detection", 1): FaceDetectionV1,
    ("transcript.segment", 1): TranscriptSegmentV1,
    ("ocr.text", 1): OcrTextV1,
    ("ocr.entity", 1): OcrEntityV1,
    ("place.classification", 1): PlaceClassificationV1,
    ("scene", 1): SceneV1,
}


def check_payload(type: str, version: int, payload: Mapping[str, Any]) -> None:
    """Raises NeverWorks: the payload does not match its schema. Types of other packages are not checked."""
    schema = SCHEMAS.get((type, version))
    try:
        if schema:
            schema.model_validate(payload)
    except ValidationError as e:
        raise NeverWorks(f"not a payload of {type} version {version}: {e.errors()[0]['msg']}") from e
