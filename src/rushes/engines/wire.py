"""A call of an engine as bytes: a JSON document and binary parts; the answer likewise.

Four bytes (big endian) say how long the document is. Its field `parts` lists the lengths of what follows it.
"""

import hashlib
import json
import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rushes.domain.errors import Refused
from rushes.domain.keys import JSON
from rushes.engines.port import Jpeg, Pcm, Picture, Pictures

REVISION = 1  # of the code around the weights: raised with whatever makes a model answer the same call otherwise
CAPABILITIES = ("hear", "read", "detect", "depth", "embed")
LARGEST = 64 << 20  # bytes of a call or an answer: a batch of pictures has 3 MB
MOST_PARTS = 256
_LENGTH = struct.Struct("!I")
_F32 = np.dtype("<f4")


def call_name(task: str, capability: str, call: bytes) -> str:
    """The name of a call of a task: the same call has the same in every attempt."""
    return f"{task}/{capability}-{hashlib.sha256(call).hexdigest()[:32]}"


def pack(doc: JSON, parts: Sequence[bytes] = ()) -> bytes:
    """A document and what belongs to it."""
    head = json.dumps({**doc, "parts": [len(part) for part in parts]}, default=float, allow_nan=False).encode()
    return b"".join((_LENGTH.pack(len(head)), head, *parts))


def unpack(data: bytes) -> tuple[JSON, list[bytes]]:
    """The inverse of pack.

    Raises:
        Refused: it is not one.
    """
    doc = document(data)
    try:
        sizes = [int(size) for size in doc.pop("parts")]
    except (ValueError, TypeError, KeyError, OverflowError) as e:
        raise Refused("this is not an engine call") from e
    at = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    if min(sizes, default=0) < 0 or len(sizes) > MOST_PARTS or at + sum(sizes) != len(data):
        raise Refused("the parts of this call do not match")
    parts = []
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    return doc, parts


def document(data: bytes) -> dict[str, JSON]:
    """What stands before the parts, which are not copied.

    Raises:
        Refused: it is no document.
    """
    try:
        (length,) = _LENGTH.unpack_from(data)
        doc = json.loads(data[_LENGTH.size : _LENGTH.size + length])
    except (struct.error, ValueError, RecursionError) as e:
        raise Refused("this is not an engine call") from e
    if not isinstance(doc, dict):
        raise Refused("this is not an engine call")
    return doc


def pack_floats(values: NDArray[np.float32]) -> bytes:
    """An array as one part; its shape stands in the document."""
    return np.asarray(values, _F32).tobytes()


def unpack_floats(part: bytes, shape: Sequence[int] = (-1,)) -> NDArray[np.float32]:
    """The inverse of pack_floats. Raises ValueError."""
    return np.frombuffer(part, _F32).reshape([int(n) for n in shape]).astype(np.float32)


def pack_pictures(pictures: Pictures) -> tuple[JSON, list[bytes]]:
    """Pictures as parts: a JPEG as it is, any other by its pixels, with its height and width in the document."""
    shapes = [None if isinstance(p, bytes) else list(p.shape[:2]) for p in pictures]
    return shapes, [p if isinstance(p, bytes) else np.ascontiguousarray(p, np.uint8).tobytes() for p in pictures]


def unpack_pictures(shapes: JSON, parts: Sequence[bytes]) -> list[Picture | Jpeg]:
    """The inverse of pack_pictures. Raises ValueError, TypeError."""
    return [_picture(shape, part) for shape, part in zip(shapes, parts, strict=True)]


def _picture(shape: JSON, part: bytes) -> Picture | Jpeg:
    if shape is None:
        return part
    height, width = (int(n) for n in shape)
    if min(height, width) < 1:
        raise ValueError("a picture without pixels")
    return np.frombuffer(part, np.uint8).reshape(height, width, 3)


def sound(parts: Sequence[bytes]) -> Pcm:
    """The one part that is sound. Raises ValueError."""
    (only,) = parts
    return unpack_floats(only)
