"""The contract of the inference service: what the document asks for, and the committed file as the program says it."""

import importlib
from typing import Any

import pytest

QUESTIONS: dict[
    str, tuple[str, dict[str, Any], set[str]]
] = {  # by the document: operation, fields with their defaults (... if required), fields of the answer
    "objects": (
        "detectObjects",
        {
            "video_path": ...,
            "model_name": ...,
            "frame_interval": 30,
            "confidence_threshold": 0.5,
            "model_profile": "balanced",
        },
        {"detections"},
    ),
    "faces": (
        "detectFaces",
        {"video_path": ..., "model_name": ..., "frame_interval": 30, "confidence_threshold": 0.5},
        {"detections"},
    ),
    "transcribe": (
        "transcribeVideo",
        {"video_path": ..., "model_name": ..., "language": None, "vad_filter": True},
        {"language", "segments"},
    ),
    "ocr": (
        "extractOCR",
        {"video_path": ..., "frame_interval": 60, "languages": ["en"], "use_gpu": True},
        {"detections"},
    ),
    "places": ("classifyPlaces", {"video_path": ..., "frame_interval": 60, "top_k": 5}, {"classifications"}),
    "scenes": ("detectScenes", {"video_path": ..., "threshold": 0.4, "min_scene_length": 0.6}, {"scenes"}),
}
PROVENANCE = {"run_id", "config_hash", "input_hash", "model_profile", "producer", "producer_version"}


@pytest.fixture(scope="module")
def maker() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend("scripts")
        yield importlib.import_module("make_openapi")


@pytest.fixture(scope="module")
def contract(maker: Any) -> Any:
    return maker.contract()


def schema(contract: Any, holder: Any) -> Any:
    name = holder["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    return contract["components"]["schemas"][name]


def test_the_committed_contract_is_what_the_service_says(maker: Any) -> None:
    assert maker.main(["--check"]) == 0


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_the_fields_of_the_document(contract: Any, question: str) -> None:
    operation, fields, answer = QUESTIONS[question]
    found = contract["paths"][f"/infer/{question}"]["post"]
    asked, told = schema(contract, found["requestBody"]), schema(contract, found["responses"]["200"])
    assert found["operationId"] == operation
    assert {"400", "500"} <= found["responses"].keys()
    assert {name for name, default in fields.items() if default is ...} == set(asked["required"])
    defaults = {name: default for name, default in fields.items() if default is not ... and default is not None}
    assert {name: asked["properties"][name]["default"] for name in defaults} == defaults
    assert set(told["required"]) == PROVENANCE | answer


def test_health_has_the_fields_of_the_document(contract: Any) -> None:
    health = schema(contract, contract["paths"]["/health"]["get"]["responses"]["200"])
    assert set(health["required"]) >= {"status", "models_loaded", "gpu_available"}
    assert health["properties"]["status"]["enum"] == ["healthy", "degraded", "unhealthy"]
    assert health["properties"]["gpu_memory_used_mb"]["type"] == "integer"
