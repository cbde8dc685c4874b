"""Which requests the audit log records: every change, by its own word, and downloads of originals."""

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
    "cancel_upload": "upload cancelled",
    **dict.fromkeys(("undo_correction", "undo_last", "take_back"), "annotation undone"),
    **dict.fromkeys(("forget_path", "forget"), "path forgotten"),
    **dict.fromkeys(
        ("control_job", "control_jobs", "set_priority", "cancel_step", "cancel_task", "enqueue_step", "enqueue_task"),
        "job changed",
    ),
    **dict.fromkeys(("retry_job", "retry_step", "retry_task"), "job retried"),
    **dict.fromkeys(("retry_failed", "discard_failed", "act"), "failed tasks handled"),
    **dict.fromkeys(("drain_worker", "drain"), "worker drained"),
    "get_original": "original exported",
    **dict.fromkeys(
        ("add_videos", "scan_path", "add_place", "begin_upload", "begin_job", "try_sample"), "videos added"
    ),
    **dict.fromkeys(("run_video", "process", "ask_again", "make_3d", "enqueue_job"), "job added"),
    **dict.fromkeys(("make_clip", "cut_clip"), "clip requested"),
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
    "log_in", "set_up", "choose_theme", "continue_upload", "send_upload", "request_parts", "keep_received",
    "validate_path", "serve_mcp", "receive_storage_events"})  # fmt: skip


def note_target(request: Request, what: str) -> None:
    """Set the target of a request whose path does not contain it."""
    request.scope[ABOUT] = what


async def write_entry(audit: Audit, scope: Scope, status: int) -> None:
    """Add an entry before the answer is sent; a store that does not respond does not delay the answer."""
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
