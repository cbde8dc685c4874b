"""Pairs of nets that compare pictures with texts: what a folder says of them, and their embeddings as text."""

import base64
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rushes.domain.errors import ModelMissing
from rushes.domain.keys import JSON

IMAGE_NET, TEXT_NET, TOKENIZER, DESCRIPTION = "image.onnx", "text.onnx", "tokenizer.json", "pictures.toml"
MOST_DIMENSIONS = 4096
_HINT = "Write: mean = [0.48, 0.46, 0.41], std = [0.27, 0.26, 0.28], least = 0.2."
_STEPS = 127  # of a number on each side of zero: cosines change by less than 0.01

Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class PairDescription:
    """How colours are normalised, as in CLIP unless the file says otherwise, and from which cosine on two are alike."""

    mean: Triple = (0.48145466, 0.4578275, 0.40821073)
    std: Triple = (0.26862954, 0.26130258, 0.27577711)
    least: float = 0.2


def describe_pair(folder: Path) -> PairDescription:
    """What `pictures.toml` beside the nets says.

    Raises:
        ModelMissing: it cannot be understood, or a file of the pair is missing.
    """
    if lacks := [name for name in (IMAGE_NET, TEXT_NET, TOKENIZER) if not (folder / name).is_file()]:
        hint = f"It needs {IMAGE_NET}, {TEXT_NET} and {TOKENIZER}."
        raise ModelMissing(f"no {lacks[0]} in the model folder {folder.name}", hint)
    try:
        file = folder / DESCRIPTION
        return _described(tomllib.loads(file.read_text("utf-8"))) if file.is_file() else PairDescription()
    except (ValueError, TypeError) as e:
        raise ModelMissing(f"{DESCRIPTION} of the model {folder.name} cannot be understood: {e}", _HINT) from e


def embedding_text(row: NDArray[np.float32]) -> str:
    """An embedding of length one as a word: a byte for each number."""
    scale = float(np.abs(row).max(initial=0.0)) or 1.0
    return base64.b64encode(np.round(row / scale * _STEPS).astype(np.int8).tobytes()).decode()


def parse_embedding(text: str) -> NDArray[np.float32]:
    """The inverse of embedding_text, of length one. Raises ValueError."""
    row = np.frombuffer(base64.b64decode(text, validate=True), np.int8).astype(np.float32)
    if not 0 < len(row) <= MOST_DIMENSIONS:
        raise ValueError("it has no dimensions")
    return np.asarray(row / max(float(np.linalg.norm(row)), 1e-9), np.float32)


def _described(said: Mapping[str, JSON]) -> PairDescription:
    if unknown := said.keys() - {"mean", "std", "least"}:
        raise ValueError(f"unknown words: {', '.join(sorted(unknown))}")
    plain = PairDescription()
    mean, std = _triple(said.get("mean", plain.mean)), _triple(said.get("std", plain.std))
    if min(std) <= 0:
        raise ValueError("std is not above zero")
    return PairDescription(mean, std, float(said.get("least", plain.least)))


def _triple(said: Sequence[float]) -> Triple:
    red, green, blue = said
    return float(red), float(green), float(blue)
