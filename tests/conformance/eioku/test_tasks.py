"""Tasks: how they are made, listed, enqueued, cancelled and tried again."""

import json
from typing import Any

import pytest

from rushes.domain.task import Failure, Verdict
from rushes.domain.task_types import TASK_TYPES
from rushes.surfaces.api.documents.eioku_config import TaskConfigs, TranscriptionConfig
from tests.conformance.conftest import Site
from tests.conformance.eioku.conftest import Bench

DEFAULTS: dict[str, dict[str, Any]] = {
    "object_detection": {"model_name": "yolov8n.pt", "frame_interval": 30, "confidence_threshold": 0.5,
                         "model_profile": "balanced"},
    "face_detection": {"model_name": "yolov8n-face.pt", "frame_interval": 30, "confidence_threshold": 0.5},
    "transcription": {"model_name": "large-v3", "language": None, "vad_filter": True},
    "ocr": {"frame_interval": 60, "languages": ["en"], "use_gpu": True},
    "place_detection": {"frame_interval": 60, "top_k": 5},
    "scene_detection": {"threshold": 0.4, "min_scene_length": 0.6},
}  # fmt: skip
BROKEN = Failure("BadMedia", "no key frame", "hint", "never works")


@pytest.mark.parametrize("type", DEFAULTS)
def test_each_type_has_its_default_configuration(bench: Bench, type: str) -> None:
    """Video Discovery Service, default config: each task type has the document's default configuration.

    Where: surfaces/api/documents/eioku_config.py
    """
    told = bench.tasks(bench.discover())[type]["config"]
    assert DEFAULTS[type].items() <= told.items()
    assert ("model" in told) is (type != "scene_detection"), "what answers here"


def test_the_six_types_are_those_of_the_document(bench: Bench) -> None:
    """Task Creation Flow: a video gets one task for each of the six types.

    Where: domain/task_types.py
    """
    assert set(bench.tasks(bench.discover())) == set(DEFAULTS)


def test_tasks_are_there_before_the_file_was_opened(bench: Bench) -> None:
    """Task Creation Flow: tasks are PENDING as soon as a video is discovered, before anything runs.

    Where: jobs/steps.py
    """
    tasks = bench.tasks(bench.discover())
    assert {(task["status"], task["started_at"], task["completed_at"]) for task in tasks.values()} == {
        ("PENDING", None, None)
    }


def test_a_video_is_discovered_once(bench: Bench) -> None:
    """Video Discovery Service: discovering a known path again creates no tasks.

    Where: jobs/submit.py
    """
    job = bench.discover()
    path = bench.folder / job.name
    (again,) = bench.server.library.add([path], TaskConfigs().wanted())
    assert again.job is not None
    assert (again.job.id, again.created) == (job.id, False)


@pytest.mark.parametrize("type", DEFAULTS)
def test_a_task_has_the_columns_of_its_table(bench: Bench, type: str) -> None:
    """Database Schema, tasks: a task has a field for every column of the table.

    Where: surfaces/api/documents/eioku.py
    """
    row = bench.tasks(bench.discover())[type]
    columns = {"task_id", "video_id", "task_type", "status", "priority", "dependencies", "started_at", "completed_at"}
    assert {*columns, "error", "created_at"} <= set(row)
    assert row["priority"] == 0
    assert bench.task(row["task_id"]) == row


def test_dependencies_are_tasks(bench: Bench) -> None:
    """Database Schema, tasks: dependencies are ids of tasks that GET /tasks/{task_id} finds.

    Where: jobs/steps.py
    """
    row = bench.tasks(bench.discover())["object_detection"]
    assert row["dependencies"]
    assert [bench.task(id)["task_id"] for id in row["dependencies"]] == row["dependencies"]


def test_tasks_are_found_by_video_status_and_type(bench: Bench) -> None:
    """API Service, REST endpoints: GET /tasks filters by video, status and type.

    Where: surfaces/api/documents/eioku.py
    """
    job, worker = bench.planned("objects")
    bench.claim(worker, [f"{job.id}.objects.00000"])
    video = json.loads(bench.home.ledger.job(job.id).facts)["video"]
    running = bench.server.get("/tasks", params={"video_id": video, "status": "RUNNING"})["items"]
    assert [task["task_type"] for task in running] == ["object_detection"]
    assert running[0]["video_id"] == video
    (one,) = bench.server.get("/tasks", params={"video_id": video, "task_type": "ocr"})["items"]
    assert (one["task_type"], one["status"]) == ("ocr", "PENDING")
    bench.server.get("/tasks", 422, params={"status": "SLEEPING"})


def test_tasks_of_all_videos_come_in_pages(bench: Bench) -> None:
    """API Service, REST endpoints: GET /tasks without filters lists the tasks of every video, each once.

    Where: surfaces/api/documents/eioku.py
    """
    mine = {task["task_id"] for _ in range(3) for task in bench.tasks(bench.discover()).values()}
    found: list[str] = []
    place = "/tasks?limit=12"
    while place and not mine <= set(found):
        page = bench.server.get(place)
        assert len(page["items"]) <= 12
        found, place = found + [task["task_id"] for task in page["items"]], page["next"]
        assert len(found) == len(set(found))
    assert mine <= set(found)


def test_every_step_can_be_asked_for(bench: Bench) -> None:
    """API Service, REST endpoints: GET /tasks/{task_id} finds every step of a job.

    Where: surfaces/api/documents/eioku.py
    """
    job, _ = bench.planned()
    for step in bench.server.library.jobs.steps(job.id):
        assert bench.task(step.id)["task_id"] == step.id


def test_a_task_is_enqueued_by_hand(bench: Bench) -> None:
    """Manual Task Enqueueing Endpoint: POST /tasks/{task_id}/enqueue returns task_id, job_id and status.

    Where: surfaces/api/documents/eioku.py
    """
    task = bench.tasks(bench.discover())["ocr"]["task_id"]
    answer = bench.server.post(f"/tasks/{task}/enqueue")
    assert answer == {"task_id": task, "job_id": f"ml_{task}", "status": "enqueued"}


@pytest.mark.parametrize("move", ["enqueue", "cancel", "retry"])
def test_an_unknown_task_is_not_found(bench: Bench, move: str) -> None:
    """Manual Task Enqueueing Endpoint: an unknown task is 404, with the detail `Task not found`.

    Where: surfaces/api/documents/eioku.py
    """
    for unknown in (f"{bench.discover().id}.nothing", "nobody.ocr"):
        assert bench.server.post(f"/tasks/{unknown}/{move}", status=404)["detail"] == "Task not found"


def test_only_a_pending_task_can_be_enqueued(bench: Bench) -> None:
    """Manual Task Enqueueing Endpoint: unless the task is PENDING, the answer is 400 and names its status.

    Where: surfaces/api/documents/eioku.py
    """
    job, worker = bench.planned("objects")
    (lease,) = bench.claim(worker, [f"{job.id}.objects.00000"])
    told = bench.server.post(f"/tasks/{job.id}.objects/enqueue", status=400)
    assert told["detail"] == "Cannot enqueue task in status RUNNING"
    bench.finish(worker, [lease])
    for move in ("enqueue", "cancel", "retry"):
        bench.server.post(f"/tasks/{job.id}.objects/{move}", status=400)


def test_a_cancelled_task_leaves_its_siblings_alone(bench: Bench) -> None:
    """Task Status Lifecycle: the API cancels one PENDING task; the others of its video stay as they are.

    Where: jobs/steps.py
    """
    job = bench.discover()
    before = bench.tasks(job)
    assert bench.server.post(f"/tasks/{before['ocr']['task_id']}/cancel")["status"] == "CANCELLED"
    after = bench.tasks(job)
    assert {type for type in after if after[type]["status"] != before[type]["status"]} == {"ocr"}
    bench.server.post(f"/tasks/{before['ocr']['task_id']}/cancel", status=400)


def test_what_was_cancelled_before_the_plan_is_never_run(bench: Bench) -> None:
    """Task Cancellation: no worker picks up a job that was aborted while it was queued.

    Where: ledger/sql/intake.py
    """
    job, worker = bench.discover(), bench.worker()
    bench.server.post(f"/tasks/{job.id}.objects/cancel")
    bench.open_plan(job, worker)
    bench.finish(worker, bench.claim(worker, [f"{job.id}.develop.00000"]))
    assert bench.claim(worker, [f"{job.id}.objects.00000"]) == ()
    assert bench.claim(worker, [f"{job.id}.faces.00000"])
    assert bench.tasks(job)["object_detection"]["status"] == "CANCELLED"


def test_a_retried_task_runs_again_and_its_siblings_stay(bench: Bench) -> None:
    """Task Status Lifecycle: the retry API sets one FAILED or CANCELLED task back to PENDING; the others stay.

    Where: jobs/steps.py
    """
    job, worker = bench.planned("objects")
    leases = bench.claim(worker, [f"{job.id}.objects.00000", f"{job.id}.faces.00000"])
    for lease in leases:
        assert bench.home.ledger.fail(worker, lease.task, lease.fence, BROKEN, None) is Verdict.OK
    assert bench.task(f"{job.id}.faces")["error"] == "BadMedia: no key frame"
    told = bench.server.post(f"/tasks/{job.id}.objects/retry")
    assert (told["status"], told["error"]) == ("PENDING", None)
    assert bench.task(f"{job.id}.faces")["status"] == "FAILED"
    assert bench.claim(worker, [f"{job.id}.objects.00000"])


def test_one_task_of_a_cancelled_job_goes_on_alone(bench: Bench) -> None:
    """Task Status Lifecycle: one task of a cancelled job can be retried; the others stay CANCELLED.

    Where: jobs/steps.py
    """
    job, worker = bench.planned()
    bench.server.post(f"/api/v1/jobs/{job.id}/cancel")
    assert {task["status"] for task in bench.tasks(job).values()} == {"CANCELLED"}
    bench.server.post(f"/tasks/{job.id}.faces/retry")
    states = {type: task["status"] for type, task in bench.tasks(job).items()}
    assert states == dict.fromkeys(TASK_TYPES, "CANCELLED") | {"face_detection": "PENDING"}
    bench.finish(worker, bench.claim(worker, [f"{job.id}.develop.00000"]))
    bench.finish(worker, bench.claim(worker, [f"{job.id}.faces.00000"]))
    assert bench.task(f"{job.id}.faces")["status"] == "COMPLETED"
    assert bench.server.get(f"/api/v1/jobs/{job.id}")["state"] == "completed"


def test_a_transcription_is_complete_when_its_transcript_is(bench: Bench) -> None:
    """Task Status Lifecycle: a task is COMPLETED when its artifacts exist, even if it has two stages here.

    Where: jobs/steps.py
    """
    job, worker = bench.planned()
    for stage in ("develop", "read_text"):
        bench.finish(worker, bench.claim(worker, [f"{job.id}.{stage}.00000"]))
    assert bench.tasks(job)["ocr"]["status"] == "RUNNING"
    bench.finish(worker, bench.claim(worker, [f"{job.id}.segments"]))
    told = bench.tasks(job)["ocr"]
    assert (told["status"], bool(told["started_at"]), bool(told["completed_at"])) == ("COMPLETED", True, True)


def test_configurations_are_kept_with_the_place(bench: Bench, films: Any) -> None:
    """Video Discovery Service, config: a path can have its own configuration, which its tasks get.

    Where: library/watching/path_watcher.py
    """
    folder = bench.folder / "own config"
    folder.mkdir(exist_ok=True)
    config: dict[str, Any] = {"object_detection": {"frame_interval": 10}, "place_detection": {"top_k": 3}}
    config["transcription"] = {"vad_filter": False}
    made = bench.server.post("/paths", {"path": str(folder), "config": config}, 201)
    assert made in bench.server.get("/paths")
    assert made["path"] == str(folder)
    assert made["config"] == {type: DEFAULTS[type] | config.get(type, {}) for type in DEFAULTS}
    again = bench.server.post("/paths", {"path": str(folder), "config": made["config"]}, 201)
    assert again["config"] == made["config"]
    options = made["doc"]["options"]
    assert (options["objects"]["frame_interval"], options["objects"]["min_confidence"]) == (10, 0.5)
    assert options["places"] == {"frame_interval": 60, "top_k": 3}
    assert options["audio"] == {"vad_filter": False}
    assert bench.server.http.delete(f"/paths/{made['id']}").status_code == 204


@pytest.mark.parametrize(
    ("type", "config", "hint"),
    [
        ("object_detection", {"model_name": "yolov99.pt"}, "yolov8n.pt"),
        ("transcription", {"model_name": "huge"}, "tiny"),
        ("transcription", {"model_name": "medium"}, "rushes models pull Systran/faster-whisper-medium"),
        ("transcription", {"language": "xx"}, "Use a code such as en"),
    ],
)
def test_an_unknown_model_or_language_is_refused(bench: Bench, type: str, config: dict[str, str], hint: str) -> None:
    """ML Service OpenAPI, model_name and language: an unknown model or language is 400, with a hint.

    Where: jobs/intake.py, engines/models/speech.py
    """
    asked = {"path": str(bench.folder), "config": {type: config}}
    assert hint in bench.server.post("/paths", asked, 400)["hint"]


def test_a_size_of_whisper_is_that_size(bench: Bench) -> None:
    """ML Service OpenAPI, transcription model_name: the size of Whisper to use; without large-v3, the profile's model.

    Where: engines/models/speech.py
    """
    told = {}
    for size in ("tiny", "base", "large-v3"):
        (bench.folder / f"{size}.mp4").write_bytes(size.encode())
        wanted = TaskConfigs(transcription=TranscriptionConfig(model_name=size)).wanted()
        (added,) = bench.server.library.add([bench.folder / f"{size}.mp4"], wanted)
        assert added.job
        told[size] = bench.tasks(added.job)["transcription"]["config"]
        assert told[size]["model_name"] == size
    assert "whisper-tiny.en@" in told["tiny"]["model"]
    assert told["base"]["model"] == told["large-v3"]["model"] != told["tiny"]["model"]


def test_a_stored_path_is_watched_and_its_film_worked_on(site: Site, video: dict[str, Any]) -> None:
    """Video Discovery → Task Creation → Job Enqueueing: a film in a stored path is found, and its six tasks complete.

    Where: library/watching/path_watcher.py, surfaces/server/app.py
    """
    rows = site.http.get("/tasks", params={"video_id": video["id"]}).json()["items"]
    assert {row["task_type"] for row in rows} == set(TASK_TYPES)
    assert all(row["created_at"] <= row["started_at"] <= row["completed_at"] for row in rows)
    assert {row["video_id"] for row in rows} == {video["id"]}


def test_a_video_has_the_whole_path_of_its_file(bench: Bench) -> None:
    """Video Discovery Service: file_path is the path of the file, also of one beside the home.

    Where: home.py
    """
    job, _ = bench.planned()
    bench.home.follower.catch_up()
    assert bench.server.get(f"/videos/{bench.video(job)}")["file_path"] == str(bench.folder / job.name)
