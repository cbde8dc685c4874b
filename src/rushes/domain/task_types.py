"""Task types of the design documents: which stages make up one task there, and what is reported of it."""

import json
from collections.abc import Mapping

from rushes.domain.job import Job
from rushes.domain.keys import JSON
from rushes.domain.task import Task
from rushes.domain.text import clean_text

TASK_TYPES = {
    "object_detection": ("objects",),
    "face_detection": ("faces",),
    "transcription": ("transcribe", "transcript"),
    "ocr": ("read_text", "segments"),
    "place_detection": ("places",),
    "scene_detection": ("shots",),
}
OPTIONS = {"confidence_threshold": "min_confidence"}  # of a task: their words -> ours
_TYPES = {stages[0]: type for type, stages in TASK_TYPES.items()}


def task_type(stage: str) -> str:
    """What a stage is called there; its own name if it has no other."""
    return _TYPES.get(stage, stage)


def task_config(options: Mapping[str, JSON], profile: str) -> dict[str, JSON]:
    """The options of a task in those words; `profile` is that of its job."""
    words = {ours: theirs for theirs, ours in OPTIONS.items()}
    told = {words.get(name, name): value for name, value in options.items()}
    told["model_profile"] = told.pop("profile", profile)
    return told | ({"language": told["language"] or None} if "language" in told else {})


def describe_task(task: Task, job: Job, path: str) -> str:
    """What a task is about, in JSON and in those words; `path` is where its film lies."""
    video, profile = json.loads(job.facts or "{}").get("video", ""), json.loads(job.payload).get("profile", "")
    told = {"task_id": task.id, "task_type": task_type(task.stage), "video_id": video, "video_path": clean_text(path)}
    return json.dumps(told | {"config": task_config(task.question.get("options", {}), profile)})
