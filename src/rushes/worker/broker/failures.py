"""Why an attempt failed, as a document: said by a slot or by its worker, and meant in the same way by both."""

from typing import NoReturn

from rushes.domain import errors
from rushes.domain.errors import Drained, LeaseLost, NoRoom, OverBudget, RushesError, StoreAway, TryAgain, is_final
from rushes.domain.keys import JSON
from rushes.domain.redaction import redact
from rushes.domain.text import clean_text
from rushes.files import DISK_FULL

_UNCOUNTED = Drained | LeaseLost | StoreAway
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
    kind = getattr(errors, str(told["kind"]), TryAgain)
    known = isinstance(kind, type) and issubclass(kind, RushesError)
    raise (kind if known else TryAgain)(told["message"], told["hint"])


def believed_failure(said: JSON) -> JSON:
    """What a slot says of its failure, as far as it is believed: short texts without secrets, and known kinds.

    Raises:
        TypeError, KeyError: it is no failure.
    """
    texts = {name: _text(said[name]) for name in ("kind", "message", "hint", "verdict")}
    flags = {name: said[name] is True for name in ("replace", "final")}
    counts = said["counts"] is not False or not _may_be_uncounted(texts["kind"])
    return {"type": "failed", **texts, **flags, "counts": counts}


def _may_be_uncounted(kind: str) -> bool:
    known = getattr(errors, kind, None)
    return isinstance(known, type) and issubclass(known, _UNCOUNTED)


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError("a failure is told in words")
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
