"""Cursors of lists and searches: a place in an order, written so that nobody need understand it."""

import base64
import contextlib
import json
from collections.abc import Sequence

from rushes.domain.keys import JSON


def encode_cursor(place: Sequence[object]) -> str:
    """The cursor that means a place."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def decode_cursor(cursor: str, size: int) -> tuple[JSON, ...] | None:
    """The place a cursor means; one that is not ours begins at the beginning."""
    with contextlib.suppress(ValueError, TypeError):
        place = json.loads(base64.urlsafe_b64decode(cursor))
        if isinstance(place, list) and len(place) == size and all(map(_storable, place)):
            return tuple(place)
    return None


def legible(value: str) -> str:
    """What a database can carry: a name with NUL or lone surrogates is nobody's name there."""
    return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _storable(value: JSON) -> bool:
    if isinstance(value, str):
        return legible(value) == value
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 63)
