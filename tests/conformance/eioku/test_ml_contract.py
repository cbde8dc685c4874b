"""The OpenAPI description of the ML service: its operations, their requests and responses."""

import importlib
from typing import Any

import pytest

OPERATIONS = {
    "health": ("get", "getHealth"),
    "infer/objects": ("post", "detectObjects"),
    "infer/faces": ("post", "detectFaces"),
    "infer/transcribe": ("post", "transcribeVideo"),
    "infer/ocr": ("post", "extractOCR"),
    "infer/places": ("post", "classifyPlaces"),
    "infer/scenes": ("post", "detectScenes"),
}
REQUESTS: dict[str, dict[str, Any]] = {  # fields with their defaults; ... is required
    "ObjectDetectionRequest": {"video_path": ..., "model_name": ..., "frame_interval": 30, "confidence_threshold": 0.5,
                               "model_profile": "balanced"},
    "FaceDetectionRequest": {"video_path": ..., "model_name": ..., "frame_interval": 30, "confidence_threshold": 0.5},
    "TranscriptionRequest": {"video_path": ..., "model_name": ..., "language": None, "vad_filter": True},
    "OCRRequest": {"video_path": ..., "frame_interval": 60, "languages": ["en"], "use_gpu": True},
    "PlaceDetectionRequest": {"video_path": ..., "frame_interval": 60, "top_k": 5},
    "SceneDetectionRequest": {"video_path": ..., "threshold": 0.4, "min_scene_length": 0.6},
}  # fmt: skip
PROVENANCE = {"run_id", "config_hash", "input_hash", "model_profile", "producer", "producer_version"}
RESPONSES = {
    "HealthResponse": {"status", "models_loaded", "gpu_available"},
    "ObjectDetectionResponse": {*PROVENANCE, "detections"},
    "FaceDetectionResponse": {*PROVENANCE, "detections"},
    "TranscriptionResponse": {*PROVENANCE, "language", "segments"},
    "OCRResponse": {*PROVENANCE, "detections"},
    "PlaceDetectionResponse": {*PROVENANCE, "classifications"},
    "SceneDetectionResponse": {*PROVENANCE, "scenes"},
    "BoundingBox": {"x", "y", "width", "height"},
    "Detection": {"frame_index", "timestamp_ms", "label", "confidence", "bbox"},
    "SpeechSegment": {"start_ms", "end_ms", "text", "confidence"},
    "Scene": {"scene_index", "start_ms", "end_ms"},
}


@pytest.fixture(scope="module")
def contract() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend("scripts")
        yield importlib.import_module("openapi_contracts").ml_contract()


@pytest.mark.parametrize("path", OPERATIONS)
def test_the_service_has_the_operations_of_the_document(contract: Any, path: str) -> None:
    """OpenAPI Schema File, paths: seven operations with their ids and tags; inference documents 400 and 500.

    Where: surfaces/ml/infer.py, surfaces/ml/app.py
    """
    method, id = OPERATIONS[path]
    found = contract["paths"][f"/{path}"][method]
    assert (found["operationId"], found["tags"]) == (id, ["health" if path == "health" else "inference"])
    assert path == "health" or {"200", "400", "500"} <= set(found["responses"])


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_have_the_fields_of_the_document(contract: Any, name: str) -> None:
    """OpenAPI Schema File, requests: each has the document's fields and defaults, and requires the same ones.

    Where: surfaces/ml/schemas.py
    """
    schema = contract["components"]["schemas"][name]
    assert {field for field, default in REQUESTS[name].items() if default is ...} == set(schema["required"])
    for field, default in REQUESTS[name].items():
        assert default in (..., None) or schema["properties"][field]["default"] == default
    assert set(REQUESTS[name]) <= set(schema["properties"])


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_have_the_fields_of_the_document(contract: Any, name: str) -> None:
    """OpenAPI Schema File, responses: each has the document's fields, and all six have the six fields of provenance.

    Where: surfaces/ml/schemas.py
    """
    assert RESPONSES[name] <= set(contract["components"]["schemas"][name]["required"])


def test_health_answers_one_of_three_words(contract: Any) -> None:
    """OpenAPI Schema File, HealthResponse: status is healthy, degraded or unhealthy; gpu_memory_used_mb is an integer.

    Where: surfaces/ml/schemas.py
    """
    fields = contract["components"]["schemas"]["HealthResponse"]["properties"]
    assert fields["status"]["enum"] == ["healthy", "degraded", "unhealthy"]
    assert fields["gpu_memory_used_mb"]["type"] == "integer"
