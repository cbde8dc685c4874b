"""Object detection by EfficientDet-Lite in TFLite form; the size of its input tells which of the family it is."""

from pathlib import Path

import numpy as np

from rushes.engines.devices import Compute
from rushes.engines.images import Boxes, Floats, letterbox, nms
from rushes.engines.nets.tflite import TfLite
from rushes.engines.port import Detection, Picture

LEVELS = range(3, 8)
NUM_SCALES = 3
ASPECT_RATIOS = (1.0, 2.0, 0.5)
ANCHOR_SCALE = 3.0
IOU_THRESHOLD = 0.55
MAX_DETECTIONS = 25


class EfficientDet:
    """Detects objects of the 80 classes of COCO."""

    def __init__(self, folder: Path, compute: Compute) -> None:
        self._net = TfLite(folder / "model.tflite", compute)
        self._anchors = _anchors(self._net.size[0])

    def find(self, picture: Picture, least: float) -> list[Detection]:
        """Objects with at least that confidence, most confident first."""
        canvas, scale = letterbox(picture, *self._net.size)
        codes, scores = self._net.run(canvas)
        best, likely = scores.argmax(axis=1), scores.max(axis=1)
        some = np.flatnonzero(likely >= least)
        boxes = _decode_boxes(codes[some], self._anchors[some]) / scale
        boxes = np.clip(boxes, 0, [picture.shape[1], picture.shape[0]] * 2)
        kept = nms(boxes, likely[some], IOU_THRESHOLD, MAX_DETECTIONS)
        labels, sure = [self._net.labels[n] for n in best[some]], likely[some].tolist()
        return [Detection(labels[n], sure[n], tuple(boxes[n].tolist())) for n in kept]


def _anchors(side: int) -> Floats:
    """y, x, height, width of every anchor, in pixels of the input."""
    found = []
    for level in LEVELS:
        cells = -(-side // 2**level)
        stride = side / cells
        at = (np.arange(cells) + 0.5) * stride
        sizes = [ANCHOR_SCALE * stride * 2 ** (octave / NUM_SCALES) for octave in range(NUM_SCALES)]
        shapes = [(size / ratio**0.5, size * ratio**0.5) for size in sizes for ratio in ASPECT_RATIOS]
        y, x, n = np.meshgrid(at, at, np.arange(len(shapes)), indexing="ij")
        found.append(np.stack([y, x, *np.array(shapes)[n].transpose(3, 0, 1, 2)], axis=-1).reshape(-1, 4))
    return np.concatenate(found).astype(np.float32)


def _decode_boxes(codes: Floats, anchors: Floats) -> Boxes:
    middle = codes[:, :2] * anchors[:, 2:] + anchors[:, :2]
    half = np.exp(codes[:, 2:]) * anchors[:, 2:] / 2
    return np.concatenate([middle - half, middle + half], axis=1)[:, [1, 0, 3, 2]].astype(np.float64)
