"""Messages from a slot about its task, validated: a slot is not trusted."""

import json
import math
from collections.abc import Collection

from rushes.domain.keys import JSON
from rushes.worker.broker.failures import believed_failure

LONGEST_ANSWER = 1 << 20  # bytes; a failure has four texts of 2000 characters
_WEEK = 7 * 86400.0  # seconds of work; more is no measurement


def parse_answer(data: bytes, told: Collection[str] = ()) -> JSON:
    """A message of a slot with numbers and texts that every store can hold; None for progress that is no number.

    `told` are the kinds of failures that its worker has answered with.

    Raises:
        ValueError, TypeError, KeyError, OverflowError: invalid message from a slot.
    """
    said = json.loads(data)
    match said["type"]:
        case "progress":
            fraction = float(said["fraction"])
            return {"type": "progress", "fraction": _within(fraction, 1.0)} if math.isfinite(fraction) else None
        case "finished":
            seconds = float(said["seconds"])
            took = _within(seconds, _WEEK) if math.isfinite(seconds) else 0.0
            return {"type": "finished", "seconds": took, "replace": said.get("replace") is True}
        case "failed":
            return believed_failure(said, told)
    raise ValueError("invalid message from a slot")


def _within(number: float, most: float) -> float:
    return min(max(number, 0.0), most)
