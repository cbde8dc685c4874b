"""A pair of nets in ONNX form that embeds pictures and texts alike, as CLIP and its like do."""

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from rushes.domain.errors import ModelMissing
from rushes.engines.devices import Compute
from rushes.engines.images import Floats, nchw, resize
from rushes.engines.models.pictures import IMAGE_NET, TEXT_NET, TOKENIZER, describe_pair
from rushes.engines.nets.onnx import Onnx
from rushes.engines.port import Picture

_SIDE = 224  # of a net of any input size: what CLIP was trained with
_CONTEXT = 77  # tokens


class PictureText:
    """Embeds the middle of a picture, or a text, in one space."""

    def __init__(self, folder: Path, compute: Compute) -> None:
        self._told = describe_pair(folder)
        self._pictures, self._texts = Onnx(folder / IMAGE_NET, compute), Onnx(folder / TEXT_NET, compute)
        height, width = (n if isinstance(n, int) else _SIDE for n in self._pictures.shape[2:4])
        self._size = width, height
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        length = self._texts.shape[1] if len(self._texts.shape) > 1 else None
        self._tokenizer.enable_truncation(length if isinstance(length, int) else _CONTEXT)
        if isinstance(length, int):
            padding = self._tokenizer.padding or {}
            self._tokenizer.enable_padding(
                length=length, pad_id=padding.get("pad_id", 0), pad_token=padding.get("pad_token", "[PAD]")
            )

    def embed_picture(self, picture: Picture) -> Floats:
        """One row of length one."""
        return _row(self._pictures.run(nchw(_middle(picture, *self._size), self._told.mean, self._told.std)))

    def embed_text(self, text: str) -> Floats:
        """One row of length one."""
        ids = np.array([self._tokenizer.encode(text).ids or [0]], np.int64)
        return _row(self._texts.run(ids, np.ones_like(ids)))


def _middle(picture: Picture, width: int, height: int) -> Picture:
    """The largest part round the middle that has the shape of the net's input, in its size."""
    scale = min(picture.shape[1] / width, picture.shape[0] / height)
    w, h = max(1, int(width * scale)), max(1, int(height * scale))
    left, top = (picture.shape[1] - w) // 2, (picture.shape[0] - h) // 2
    return resize(np.ascontiguousarray(picture[top : top + h, left : left + w]), width, height)


def _row(outputs: list[np.ndarray]) -> Floats:
    """The one output that has a row for each input."""
    row = next((out[0] for out in outputs if out.ndim == 2), None)
    if row is None:
        raise ModelMissing("a model of the pair does not return one row per input", "Export it with its projection.")
    return np.asarray(row / max(float(np.linalg.norm(row)), 1e-9), np.float32)
