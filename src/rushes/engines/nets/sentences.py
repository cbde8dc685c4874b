"""Sentences as directions: those that mean alike point alike (MiniLM in ONNX form)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from rushes.engines.images import Floats
from rushes.engines.nets.onnx import Onnx

_LONGEST = 256  # tokens: what the net was trained on


class Sentences:
    """Turns sentences into vectors of length one."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._net = Onnx(folder / "model.onnx", threads)
        self._tokens = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokens.enable_truncation(_LONGEST)
        self._tokens.no_padding()

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row for each sentence, each by itself, so that neighbours change nothing."""
        return np.stack([self._one(text) for text in texts]) if texts else np.zeros((0, 0), np.float32)

    def _one(self, text: str) -> Floats:
        ids = np.array([self._tokens.encode(text).ids], np.int64)
        hidden = self._net.run(ids, np.ones_like(ids), np.zeros_like(ids))[0][0]
        mean = hidden.mean(axis=0)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9), np.float32)
