"""The contract of the inference service: what the document asks for, whatever stores are installed."""

import importlib
import subprocess
import sys
from pathlib import Path
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
def contract() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend("scripts")
        yield importlib.import_module("openapi_contracts").ml_contract()


def schema(contract: Any, holder: Any) -> Any:
    name = holder["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    return contract["components"]["schemas"][name]


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


NO_STORES = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("psycopg", "boto3", "botocore", "redis", "obstore"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Blocked())
from rushes.library.inference import InferenceService
from rushes.settings import Settings
from rushes.surfaces.ml.app import create
settings = Settings(models=sys.argv[1], ml_models="fastdepth")
service = InferenceService(settings)
service.start()
create(service, settings)
print(service.health().status, "rushes.ledger.sqlite" in sys.modules)
"""


def test_the_service_starts_without_any_library_of_a_store_and_opens_no_ledger(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", NO_STORES, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.split()[:2] == ["healthy", "False"], done.stderr
    assert not list(tmp_path.glob("**/*.sqlite"))
