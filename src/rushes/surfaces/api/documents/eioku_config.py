"""The configuration of each type of task in Eioku's words: its defaults, its limits, and what it is called here."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rushes.domain.errors import Refused
from rushes.domain.task_types import OPTIONS, TASK_TYPES, task_config
from rushes.library import JobRequest

# The document's names of models stand for the ones that are shipped; what transcribes is looked up with the models.
MODELS = {
    "objects": ("yolov8n.pt",),
    "faces": ("yolov8n-face.pt",),
    "read_text": ("easyocr",),
    "places": ("resnet18_places365",),
    "shots": ("scenedetect",),
}
_CAPABILITIES = {"transcribe": "speech", "read_text": "text"}  # of a stage, where it is not called like it

Interval = Annotated[int, Field(ge=1, le=100_000, description="every Nth frame")]
Share = Annotated[float, Field(ge=0, le=1)]
Model = Annotated[str, Field(max_length=100)]
_Profile = Literal["fast", "balanced", "high_quality"]


class _Config(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class ObjectConfig(_Config):
    """Objects."""

    model_name: Model = "yolov8n.pt"
    frame_interval: Interval = 30
    confidence_threshold: Share = 0.5
    model_profile: _Profile = "balanced"


class FaceConfig(_Config):
    """Faces."""

    model_name: Model = "yolov8n-face.pt"
    frame_interval: Interval = 30
    confidence_threshold: Share = 0.5


class TranscriptionConfig(_Config):
    """Speech."""

    model_name: Model = "large-v3"
    language: Annotated[str, Field(max_length=20)] | None = None
    vad_filter: bool = True


class OcrConfig(_Config):
    """Text on screen."""

    frame_interval: Interval = 60
    languages: Annotated[list[Annotated[str, Field(max_length=20)]], Field(min_length=1, max_length=20)] = ["en"]
    use_gpu: bool = True


class PlaceConfig(_Config):
    """Places."""

    frame_interval: Interval = 60
    top_k: Annotated[int, Field(ge=1, le=365)] = 5


class SceneConfig(_Config):
    """Scenes."""

    threshold: Share = 0.4
    min_scene_length: Annotated[float, Field(ge=0, le=3600)] = 0.6


class TaskConfigs(_Config):
    """The configuration of all six types; what is left out is the document's default."""

    object_detection: ObjectConfig = ObjectConfig()
    face_detection: FaceConfig = FaceConfig()
    transcription: TranscriptionConfig = TranscriptionConfig()
    ocr: OcrConfig = OcrConfig()
    place_detection: PlaceConfig = PlaceConfig()
    scene_detection: SceneConfig = SceneConfig()

    def wanted(self) -> JobRequest:
        """As the library takes it.

        Raises:
            Refused: there is no model of that name.
        """
        asked = {stages[0]: getattr(self, type).model_dump() for type, stages in TASK_TYPES.items()}
        options = {stage: _options(stage, config) for stage, config in asked.items()}
        if not self.transcription.vad_filter:
            options["audio"] = {"vad_filter": False}
        profile = str(options["objects"].pop("model_profile"))
        return JobRequest(profile=profile, options=options)


def config_of(stage: str, options: Mapping[str, Any], profile: str, models: Mapping[str, str]) -> dict[str, Any]:
    """What a step was asked, in the document's words, and the model that answers."""
    told = task_config(options, profile)
    model = models.get(_CAPABILITIES.get(stage, stage))
    return told | ({"model": model} if model else {})


def stored_configs(options: Mapping[str, Any], profile: str) -> dict[str, dict[str, Any]]:
    """What was asked of each type, with the fields of TaskConfigs; a place stored without any has none."""
    found = {}
    for type, defaults in TaskConfigs():
        if (stage := TASK_TYPES[type][0]) in options:
            told = config_of(stage, options[stage], profile, {})
            found[type] = {name: told.get(name, default) for name, default in defaults}
    return found


def _options(stage: str, config: Mapping[str, Any]) -> dict[str, Any]:
    model = config.get("model_name")
    if model is not None and model not in MODELS.get(stage, (model,)):
        raise Refused(f"unknown model {model[:60]!r}", f"Choose from: {', '.join(MODELS[stage])}")
    options = {OPTIONS.get(name, name): value for name, value in config.items()}
    return options | ({"language": options["language"] or ""} if "language" in options else {})
