"""Types of tasks as other designs call them, each with the stages that are one task there."""

TASK_TYPES = {
    "object_detection": ("objects",),
    "face_detection": ("faces",),
    "transcription": ("transcribe", "transcript"),
    "ocr": ("read_text", "segments"),
    "place_detection": ("places",),
    "scene_detection": ("shots",),
}
_TYPES = {stages[0]: type for type, stages in TASK_TYPES.items()}


def task_type(stage: str) -> str:
    """What a stage is called there; its own name if it has no other."""
    return _TYPES.get(stage, stage)
