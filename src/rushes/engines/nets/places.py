"""Scene classification: the scene-like classes of ImageNet, or a net for Places365 given by path."""

import re
from importlib.resources import files
from pathlib import Path

import numpy as np

from rushes.engines.devices import Compute
from rushes.engines.images import Floats, nchw, resize
from rushes.engines.nets.onnx import Onnx
from rushes.engines.nets.tflite import TfLite
from rushes.engines.port import Picture

_SIDE = 224


class PlaceClassifier:
    """Scene classes by probability. Other classes keep their share: a large object leaves little for scenes."""

    def __init__(self, folder: Path, compute: Compute) -> None:
        own = folder / "model.onnx"
        self._net = _Places365(own, compute) if own.is_file() else _ImageNet(folder / "model.tflite", compute)

    def classify(self, picture: Picture, most: int) -> list[tuple[str, float]]:
        """The likeliest scene classes, likeliest first."""
        scores: dict[str, float] = {}
        for label, share in zip(self._net.labels, self._net.probabilities(picture), strict=True):
            if label:
                scores[label] = scores.get(label, 0.0) + float(share)
        return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:most]


class _ImageNet:
    def __init__(self, file: Path, compute: Compute) -> None:
        self._net = TfLite(file, compute)
        text = files(__package__).joinpath("imagenet_places.txt").read_text("utf-8")
        places = dict(line.split(" = ") for line in text.splitlines())
        self.labels = [places.get(label, "") for label in self._net.labels]

    def probabilities(self, picture: Picture) -> Floats:
        return self._net.run(resize(picture, *self._net.size))[0]


class _Places365:
    """A classifier in ONNX form that takes 224 x 224 pixels, with a text file of its classes, one a line."""

    def __init__(self, file: Path, compute: Compute) -> None:
        self._net = Onnx(file, compute)
        lines = next(iter(sorted(file.parent.glob("*.txt")))).read_text("utf-8").splitlines()
        self.labels = [_plain(line) for line in lines if line.strip()]

    def probabilities(self, picture: Picture) -> Floats:
        scores = self._net.run(nchw(resize(picture, _SIDE, _SIDE)))[0][0]
        power = np.exp(scores - scores.max())
        return np.asarray(power / power.sum(), np.float32)


def _plain(line: str) -> str:
    """`/b/bazaar/indoor 37` is "bazaar indoor"."""
    name = re.sub(r"^/\w/", "", re.sub(r"\s+\d+$", "", line.strip()))
    return name.replace("/", " ").replace("_", " ")
