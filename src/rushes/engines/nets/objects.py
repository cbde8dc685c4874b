"""Objects in pictures, by EfficientDet in TFLite form: any of the Lite family, told apart by the size of its input."""

from pathlib import Path

import numpy as np

from rushes.engines.images import Floats, fitted
from rushes.engines.nets.nms import Boxes, surest
from rushes.engines.nets.tflite import TfLite
from rushes.engines.port import Picture, Thing

_LEVELS = range(3, 8)
_OCTAVES = 3
_RATIOS = (1.0, 2.0, 0.5)
_SCALE = 3.0
_OVERLAP = 0.55
_MOST = 25  # in one picture


class Objects:
    """Finds things of the 80 classes of COCO."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._net = TfLite(folder / "model.tflite", threads)
        self._anchors = _anchors(self._net.size[0])

    def find(self, picture: Picture, least: float) -> list[Thing]:
        """Things with at least that confidence, surest first."""
        canvas, scale = fitted(picture, *self._net.size)
        codes, scores = self._net.run(canvas)
        best, likely = scores.argmax(axis=1), scores.max(axis=1)
        some = np.flatnonzero(likely >= least)
        boxes = _boxes(codes[some], self._anchors[some]) / scale
        boxes = np.clip(boxes, 0, [picture.shape[1], picture.shape[0]] * 2)
        kept = surest(boxes, likely[some], _OVERLAP)[:_MOST]
        return [Thing(self._net.labels[best[some[n]]], float(likely[some[n]]), tuple(boxes[n].tolist())) for n in kept]


def _anchors(side: int) -> Floats:
    """y, x, height, width of every box that the net starts from, in pixels of its input."""
    found = []
    for level in _LEVELS:
        cells = -(-side // 2**level)
        stride = side / cells
        at = (np.arange(cells) + 0.5) * stride
        shapes = [
            (_SCALE * stride * 2 ** (o / _OCTAVES) / r**0.5, _SCALE * stride * 2 ** (o / _OCTAVES) * r**0.5)
            for o in range(_OCTAVES)
            for r in _RATIOS
        ]
        y, x, n = np.meshgrid(at, at, np.arange(len(shapes)), indexing="ij")
        found.append(np.stack([y, x, *np.array(shapes)[n].transpose(3, 0, 1, 2)], axis=-1).reshape(-1, 4))
    return np.concatenate(found).astype(np.float32)


def _boxes(codes: Floats, anchors: Floats) -> Boxes:
    middle = codes[:, :2] * anchors[:, 2:] + anchors[:, :2]
    half = np.exp(codes[:, 2:]) * anchors[:, 2:] / 2
    return np.concatenate([middle - half, middle + half], axis=1)[:, [1, 0, 3, 2]].astype(np.float64)
