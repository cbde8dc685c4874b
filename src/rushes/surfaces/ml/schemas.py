"""What the inference service is asked and answers, as the contract in openapi/ml.yaml has it."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, Field, StringConstraints

from rushes.domain.errors import Refused
from rushes.library.inference import Health

VideoPath = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00-\x1f]+$"),
    Field(description="A video below the configured sources: a path, or an address (s3://bucket/key, gs://, az://)"),
]
Interval = Annotated[int, Field(ge=1, le=1_000_000, description="Process every Nth frame")]
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Language = Annotated[str, StringConstraints(min_length=2, max_length=20, pattern=r"^[A-Za-z-]+$")]
Profile = Literal["fast", "balanced", "high_quality"]


class HealthResponse(BaseModel):
    """How the service is."""

    status: Literal["healthy", "degraded", "unhealthy"]
    models_loaded: list[str]
    gpu_available: bool
    gpu_memory_used_mb: int = 0

    @staticmethod
    def of(health: Health) -> "HealthResponse":
        """The same for JSON."""
        return HealthResponse(
            status=health.status,  # type: ignore[arg-type]  # one of the three
            models_loaded=list(health.models_loaded),
            gpu_available=health.gpu_available,
            gpu_memory_used_mb=health.gpu_memory_used_mb,
        )


class FilmRequest(BaseModel):
    """What every question about a film has."""

    video_path: VideoPath
    start_ms: Annotated[int | None, Field(ge=0, le=10**10, description="Only from here on")] = None
    end_ms: Annotated[int | None, Field(ge=0, le=10**10, description="Only up to here")] = None
    model_profile: Profile = "balanced"


class ObjectDetectionRequest(FilmRequest):
    """Objects in every Nth frame."""

    model_name: Annotated[Name, Field(description="A model of the manifest, or yolov8n.pt for the default")]
    frame_interval: Interval = 30
    confidence_threshold: Share = 0.5


class FaceDetectionRequest(FilmRequest):
    """Faces in every Nth frame."""

    model_name: Annotated[Name, Field(description="A model of the manifest, or yolov8n-face.pt for the default")]
    frame_interval: Interval = 30
    confidence_threshold: Share = 0.5


class TranscriptionRequest(FilmRequest):
    """Speech as text."""

    model_name: Annotated[Name, Field(description="A model of the manifest, or a size (tiny, base, ... large-v3)")]
    language: Annotated[Language | None, Field(description="ISO 639-1 code; null: detect")] = None
    vad_filter: bool = True


class OCRRequest(FilmRequest):
    """Text in every Nth frame."""

    frame_interval: Interval = 60
    languages: Annotated[list[Language], Field(max_length=20)] = ["en"]
    use_gpu: bool = True


class PlaceDetectionRequest(FilmRequest):
    """Scene classes of every Nth frame."""

    frame_interval: Interval = 60
    top_k: Annotated[int, Field(ge=1, le=100)] = 5


class SceneDetectionRequest(FilmRequest):
    """Where one scene ends and the next begins."""

    threshold: Share = 0.4
    min_scene_length: Annotated[float, Field(ge=0, le=86_400, description="Seconds")] = 0.6


class Provenance(BaseModel):
    """What produced an answer."""

    run_id: UUID
    config_hash: Annotated[str, Field(description="Hash of configuration for reproducibility")]
    input_hash: Annotated[str, Field(description="Hash of input video for reproducibility")]
    model_profile: str
    producer: str
    producer_version: str
    model: Annotated[str, Field(description="What answered, with the hash of its weights; empty: no model")] = ""


class BoundingBox(BaseModel):
    """In pixels of the picture as it is shown."""

    x: float
    y: float
    width: float
    height: float


class Detection(BaseModel):
    """An object in a frame."""

    frame_index: int
    timestamp_ms: int
    label: str
    confidence: Share
    bbox: BoundingBox


class FaceDetection(Detection):
    """A face in a frame; faces of one person have the same cluster."""

    cluster_id: str


class Word(BaseModel):
    """A spoken word."""

    word: str
    start_ms: int
    end_ms: int
    confidence: float


class SpeechSegment(BaseModel):
    """A spoken line."""

    start_ms: int
    end_ms: int
    text: str
    confidence: float
    words: list[Word]


class Point(BaseModel):
    """In pixels."""

    x: float
    y: float


class TextDetection(BaseModel):
    """A line of text in a frame."""

    frame_index: int
    timestamp_ms: int
    text: str
    confidence: float
    polygon: list[Point]
    bbox: BoundingBox


class Prediction(BaseModel):
    """A scene class."""

    label: str
    confidence: float


class Classification(BaseModel):
    """The likeliest scene classes of a frame."""

    frame_index: int
    timestamp_ms: int
    predictions: list[Prediction]


class Scene(BaseModel):
    """From one cut to the next."""

    scene_index: int
    start_ms: int
    end_ms: int


class ObjectDetectionResponse(Provenance):
    """Objects."""

    detections: list[Detection]


class FaceDetectionResponse(Provenance):
    """Faces."""

    detections: list[FaceDetection]


class TranscriptionResponse(Provenance):
    """Speech."""

    language: str
    segments: list[SpeechSegment]


class OCRResponse(Provenance):
    """Text."""

    detections: list[TextDetection]


class PlaceDetectionResponse(Provenance):
    """Places."""

    classifications: list[Classification]


class SceneDetectionResponse(Provenance):
    """Scenes."""

    scenes: list[Scene]


Address = Annotated[str, StringConstraints(max_length=2000, pattern=r"^(s3://|gs://|az://|/)[^\x00-\x1f]+$")]


class InvocationRequest(BaseModel):
    """A film to make 3D of: addresses by either name, s3://bucket/key (gs://, az://) or paths, below the sources."""

    input_uri: Address | None = None
    s3_input_uri: Address | None = None
    output_uri: Address | None = None
    s3_output_uri: Address | None = None
    mode: Annotated[Name, Field(description="anaglyph, sbs, or another format of rushes stereo")] = "sbs"

    def addresses(self) -> tuple[str, str]:
        """Where it is read and where it is stored. Raises Refused."""
        source, target = self.input_uri or self.s3_input_uri, self.output_uri or self.s3_output_uri
        if not source or not target:
            raise Refused("input_uri and output_uri are required", "s3_input_uri and s3_output_uri mean the same.")
        return source, target


class InvocationResponse(BaseModel):
    """It is there."""

    status: Literal["completed"]
    output_uri: str
