"""Vision models: the input size of each profile, stored embeddings, what a depth net gives."""

import numpy as np
from numpy.typing import NDArray

from rushes.domain.errors import NeverWorks

MEANINGS = ("auto", "depth", "inverse")
# Clear faces of one person have a cosine of 0.63 and more, of two people 0.33 and less (benchmarks/faces.py).
SAME_PERSON = 0.48
_FLOAT16 = np.dtype("<f2")
# By profile, the longer side of the picture in which lines of text or small faces are searched. For text, CPU-seconds
# and characters wrong on ten frames (1252): tiny 736: 0.14, 5; tiny 960: 0.19, 2; small 736: 0.41, 2; small 960: 0.52,
# 2; small 1280: 0.72, 2.
_SIDES = {
    "text": {"fast": 736, "balanced": 960, "high_quality": 1280},
    "faces": {"fast": 640, "balanced": 960, "high_quality": 1280},
}


def gives_inverse(meaning: str) -> bool | None:
    """Whether a net gives inverse depth; None: it says so itself. Raises NeverWorks: `meaning` is none of MEANINGS."""
    if meaning not in MEANINGS:
        raise NeverWorks(f"unknown depth output {meaning!r}", f"Choose from: {', '.join(MEANINGS)}")
    return None if meaning == "auto" else meaning == "inverse"


def pack_embeddings(embeddings: NDArray[np.floating]) -> bytes:
    """Embeddings as the bytes of an artifact, by row: half precision changes no cosine by more than 0.001."""
    return np.asarray(embeddings, np.float64).round(4).astype(_FLOAT16).tobytes()


def unpack_embeddings(data: bytes, dimensions: int) -> NDArray[np.float32]:
    """The inverse of pack_embeddings, one row for each face."""
    return np.frombuffer(data, _FLOAT16).reshape(-1, max(1, dimensions)).astype(np.float32)


def input_side(capability: str, profile: str) -> int:
    """The longer side, in pixels, at which a profile detects text or faces."""
    return _SIDES[capability].get(profile, _SIDES[capability]["balanced"])
