"""Opaque cursors of lists and searches: a position in an order."""

import base64
import contextlib
import json
from collections.abc import Sequence

from rushes.domain.keys import JSON


def encode_cursor(position: Sequence[object]) -> str:
    """The cursor of a position."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def decode_cursor(cursor: str, size: int) -> tuple[JSON, ...] | None:
    """The position of a cursor; None for one that is not ours, which means the beginning."""
    with contextlib.suppress(ValueError, TypeError):
        position = json.loads(base64.urlsafe_b64decode(cursor))
        if isinstance(position, list) and len(position) == size and all(map(_storable, position)):
            return tuple(position)
    return None


def legible(value: str) -> str:
    """What a database can carry: a name with NUL or lone surrogates is nobody's name there."""
    return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _storable(value: JSON) -> bool:
    if isinstance(value, str):
        return legible(value) == value
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 63)
