"""What requests the audit log tells of: every change, each under its own word, and originals that are handed out."""

from collections.abc import Mapping

from anyio.to_thread import run_sync
from fastapi import Request
from starlette.types import Scope

from rushes.domain.errors import RushesError
from rushes.library.access.accounts import Caller
from rushes.library.access.audit import Audit
from rushes.surfaces.http.access import CALLER
from rushes.telemetry import log

ABOUT = "rushes.about"  # in the scope: what a form was about, where its path does not say
ACTIONS: Mapping[str, str] = {  # by the name of the endpoint
    **dict.fromkeys(("delete_video", "delete"), "video deleted"),
    "drop_upload": "upload dropped",
    **dict.fromkeys(("undo_correction", "undo_last", "take_back"), "annotation undone"),
    **dict.fromkeys(("forget_path", "forget"), "path forgotten"),
    **dict.fromkeys(
        ("steer_job", "steer_jobs", "set_priority", "cancel_step", "cancel_task", "enqueue_step", "enqueue_task"),
        "job steered",
    ),
    **dict.fromkeys(("retry_job", "retry_step", "retry_task"), "job retried"),
    **dict.fromkeys(("retry_failed", "discard_failed", "act"), "failed tasks handled"),
    **dict.fromkeys(("drain_worker", "drain"), "worker drained"),
    "get_original": "original exported",
    **dict.fromkeys(
        ("add_videos", "scan_path", "add_place", "begin_upload", "begin_job", "try_sample"), "videos added"
    ),
    **dict.fromkeys(("run_video", "process", "ask_again", "make_3d"), "job added"),
    **dict.fromkeys(("make_clip", "cut_clip"), "clip ordered"),
    **dict.fromkeys(("delete_clip", "drop_clip"), "clip deleted"),
    "add_path": "path added",
    "select_run": "run selected",
    "name_video": "video renamed",
    "repair_video": "video repaired",
    **dict.fromkeys(("add_correction", "correct_line"), "text corrected"),
    **dict.fromkeys(("change_person", "merge_person", "split", "name", "merge", "hide"), "person changed"),
    "log_out": "logout",
}
UNTOLD = frozenset({  # logins and what agents do are written elsewhere; the rest is part of something, or no change
    "log_in", "set_up", "choose_theme", "continue_upload", "send_upload", "ask_for_parts", "keep_received",
    "validate_path", "serve_mcp", "tell_storage_events"})  # fmt: skip


def note_target(request: Request, what: str) -> None:
    """Say what a request is about whose path does not tell."""
    request.scope[ABOUT] = what


async def write_entry(audit: Audit, scope: Scope, status: int) -> None:
    """Add an entry before the answer goes out; a store that is away does not hold the answer back."""
    endpoint, caller = scope.get("endpoint"), scope.get(CALLER)
    action = ACTIONS.get(getattr(endpoint, "__name__", ""))
    if not action or not caller or status >= 400 or scope["method"] == "HEAD":
        return
    try:
        await run_sync(_write, audit, action, caller, scope.get(ABOUT) or scope["path"])
    except RushesError as e:
        log.error("the audit log cannot be written: %s", e)


def _write(audit: Audit, action: str, caller: Caller, target: str) -> None:
    audit.write(action, caller.name, caller.address, target)
