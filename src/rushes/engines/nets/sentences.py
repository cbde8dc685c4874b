"""Sentence embeddings by MiniLM in ONNX form."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from rushes.engines.devices import Compute
from rushes.engines.images import Floats
from rushes.engines.nets.onnx import Onnx

MAX_SEQ_LENGTH = 256  # tokens


class MiniLm:
    """Embeds sentences, by mean pooling."""

    def __init__(self, folder: Path, compute: Compute) -> None:
        self._net = Onnx(folder / "model.onnx", compute)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MAX_SEQ_LENGTH)
        self._tokenizer.no_padding()

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row of length one per sentence, each computed alone so that a batch changes nothing."""
        return np.stack([self._embed(text) for text in texts]) if texts else np.zeros((0, 0), np.float32)

    def _embed(self, text: str) -> Floats:
        ids = np.array([self._tokenizer.encode(text).ids], np.int64)
        hidden = self._net.run(ids, np.ones_like(ids), np.zeros_like(ids))[0][0]
        mean = hidden.mean(axis=0)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9), np.float32)
