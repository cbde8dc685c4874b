"""The generated clients, each installed from its own wheel: a job and an inference by typed calls alone."""

import importlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rushes.library import JobRequest
from tests.acceptance.conftest import draw
from tests.api.kit import serving
from tests.inference_service import inference_service

JOB = """
import json, sys
from rushes_client import Client
from rushes_client.api.jobs import get_job
from rushes_client.api.videos import add_videos, list_videos
from rushes_client.models import AddIn, AddedShape, JobShape, PageVideoShape, Problem
with Client(sys.argv[1]) as client:
    if sys.argv[2]:
        (added,) = add_videos.sync(client=client, body=AddIn(paths=[sys.argv[2]], only=["probe"]))
        assert isinstance(added, AddedShape) and isinstance(added.job, JobShape), added
        refused = add_videos.sync(client=client, body=AddIn(paths=[]))
        assert isinstance(refused, Problem) and refused.hint, refused
        print(json.dumps(added.job.id))
    else:
        page = list_videos.sync(client=client)
        assert isinstance(page, PageVideoShape), page
        print(json.dumps([get_job.sync(sys.argv[3], client=client).state, page.items[0].name]))
"""
INFERENCE = """
import json, sys
from rushes_ml_client import AuthenticatedClient
from rushes_ml_client.api.health import get_health
from rushes_ml_client.api.inference import detect_objects
from rushes_ml_client.models import ObjectDetectionRequest, ObjectDetectionResponse, Problem
with AuthenticatedClient(sys.argv[1], token="a-long-token") as client:
    asked = ObjectDetectionRequest(video_path=sys.argv[2], model_name="yolov8n.pt", frame_interval=5)
    found = detect_objects.sync(client=client, body=asked)
    assert isinstance(found, ObjectDetectionResponse), found
    asked.video_path = "/etc/passwd"
    assert isinstance(detect_objects.sync(client=client, body=asked), Problem)
    print(json.dumps([get_health.sync(client=client).status.value, found.model_profile, len(found.detections)]))
"""


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which both wheels are unpacked."""
    made = tmp_path_factory.mktemp("clients")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend("scripts")
        assert importlib.import_module("make_clients").main([str(made)]) == 0
    for wheel in sorted(made.glob("*.whl")):
        zipfile.ZipFile(wheel).extractall(made)
    assert {folder.name for folder in made.glob("*.dist-info")} == {
        "rushes_client-0.1.0.dist-info",
        "rushes_ml_client-0.1.0.dist-info",
    }
    return made


def said(clients: Path, program: str, *argv: str) -> object:
    """What a program says that has the clients."""
    path = f"import sys; sys.path.insert(0, {str(clients)!r})\n"
    done = subprocess.run([sys.executable, "-c", path + program, *argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_job_is_run_with_the_client_of_the_api(clients: Path, tmp_path: Path) -> None:
    film = draw(tmp_path / "film.mp4", 1, (64, 36))
    with serving(tmp_path / "home", sources=str(tmp_path)) as server:
        job = said(clients, JOB, server.url, str(film), "")
        assert server.library.run([film], JobRequest(only=("probe",))).exit_code == 0
        assert said(clients, JOB, server.url, "", str(job)) == ["completed", "film.mp4"]


def test_an_inference_is_asked_for_with_the_client_of_the_service(clients: Path, tmp_path: Path) -> None:
    film = draw(tmp_path / "film.mp4", 1, (64, 36))
    settings = {"sources": str(tmp_path), "ml_models": "efficientdet-lite0", "inference_token": "a-long-token"}
    with inference_service(tmp_path, **settings) as url:
        assert said(clients, INFERENCE, url, str(film)) == ["healthy", "balanced", 0]
