"""Failures of an attempt as documents, between slot and worker."""

from collections.abc import Collection
from typing import NoReturn

from rushes.domain import errors
from rushes.domain.errors import (
    Drained,
    LeaseLost,
    NoRoom,
    OverBudget,
    RushesError,
    SourceMissing,
    StoreAway,
    TryAgain,
    is_final,
    is_final_kind,
)
from rushes.domain.keys import JSON
from rushes.domain.redaction import redact
from rushes.domain.text import clean_text
from rushes.files import DISK_FULL

_UNCOUNTED = Drained | LeaseLost | StoreAway
_KNOWN_BY_WORKER = _UNCOUNTED | SourceMissing
_TEXT = 2000  # characters
_BUG = "This looks like a bug in the stage; its log has the traceback."


def failure_of(error: BaseException) -> JSON:
    """What is told of an error: its kind, what to do, whether it is final, and whether it counts as a failure."""
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        error = NoRoom("the disk is full")
    if isinstance(error, RushesError):
        return _told(error, str(error), error.advice, error.verdict)
    if isinstance(error, MemoryError):
        return _told(error, "not enough memory for this chunk", "Run fewer slots.", TryAgain.verdict, "OutOfMemory")
    return _told(error, f"{error}" or "no message", _BUG, TryAgain.verdict)


def raise_failure(told: JSON) -> NoReturn:
    """Raise on this side what failed on the other."""
    raise (_known(str(told["kind"])) or TryAgain)(told["message"], told["hint"])


def believed_failure(said: JSON, told: Collection[str]) -> JSON:
    """What a slot says of its failure, as far as it is believed: short texts without secrets, and what its kind means.

    Only its worker knows of stores, leases and missing originals: these are believed if the worker has `told` of them.
    A full disk the slot may find by itself (`unproven`). A kind that is not ours may be final: it is its own task.

    Raises:
        TypeError, KeyError: it is no failure.
    """
    texts = {name: _text(said[name]) for name in ("kind", "message", "hint", "verdict")}
    kind = _known(texts["kind"])
    unproven = kind is not None and kind.__name__ not in told
    if kind and unproven and issubclass(kind, _KNOWN_BY_WORKER) and kind is not NoRoom:
        kind = TryAgain
        texts |= {"kind": kind.__name__, "hint": kind.hint, "verdict": kind.verdict}
    final = is_final_kind(kind) if kind else said["final"] is True
    counts = said["counts"] is not False or final or not (kind and issubclass(kind, _UNCOUNTED))
    flags = {"replace": said["replace"] is True, "final": final, "counts": counts}
    return {"type": "failed", **texts, **flags, "unproven": unproven and not counts}


def _known(kind: str) -> type[RushesError] | None:
    known = getattr(errors, kind, None)
    return known if isinstance(known, type) and issubclass(known, RushesError) else None


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError("every text of a failure must be a string")
    return redact(clean_text(said[: 2 * _TEXT]))[:_TEXT]  # so that no secret is cut in two before it is found


def _told(error: BaseException, message: str, hint: str, verdict: str, kind: str = "") -> JSON:
    return {
        "type": "failed",
        "kind": kind or type(error).__name__,
        "message": _text(message),
        "hint": _text(hint),
        "verdict": verdict,
        "replace": isinstance(error, OverBudget),
        "final": is_final(error),
        "counts": is_final(error) or not isinstance(error, _UNCOUNTED),
    }
