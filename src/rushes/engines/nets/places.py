"""Where a picture was taken: the place-like classes of ImageNet, or a net for Places365 that somebody dropped in."""

import re
from importlib.resources import files
from pathlib import Path

import numpy as np

from rushes.engines.images import Floats, resized
from rushes.engines.nets.onnx import Onnx
from rushes.engines.nets.tflite import TfLite
from rushes.engines.port import Picture

_SIDE = 224
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)  # of ImageNet
_SPREAD = np.array([0.229, 0.224, 0.225], np.float32)


class Places:
    """Guesses a place. What is no place keeps its share of the certainty: a large object leaves little for places."""

    def __init__(self, folder: Path, threads: int) -> None:
        own = folder / "model.onnx"
        self._net = _Places365(own, threads) if own.is_file() else _ImageNet(folder / "model.tflite", threads)

    def guess(self, picture: Picture, most: int) -> list[tuple[str, float]]:
        """The likeliest places, surest first."""
        shares: dict[str, float] = {}
        for label, share in zip(self._net.labels, self._net.shares(picture), strict=True):
            if label:
                shares[label] = shares.get(label, 0.0) + float(share)
        return sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))[:most]


class _ImageNet:
    def __init__(self, file: Path, threads: int) -> None:
        self._net = TfLite(file, threads)
        text = files(__package__).joinpath("imagenet_places.txt").read_text("utf-8")
        places = dict(line.split(" = ") for line in text.splitlines())
        self.labels = [places.get(label, "") for label in self._net.labels]

    def shares(self, picture: Picture) -> Floats:
        return self._net.run(resized(picture, *self._net.size))[0]


class _Places365:
    """Any classifier in ONNX form that takes 224 x 224, with a text file that names its classes line by line."""

    def __init__(self, file: Path, threads: int) -> None:
        self._net = Onnx(file, threads)
        lines = next(iter(sorted(file.parent.glob("*.txt")))).read_text("utf-8").splitlines()
        self.labels = [_plain(line) for line in lines if line.strip()]

    def shares(self, picture: Picture) -> Floats:
        values = (resized(picture, _SIDE, _SIDE) / np.float32(255) - _MEAN) / _SPREAD
        scores = self._net.run(values.transpose(2, 0, 1)[None].astype(np.float32))[0][0]
        power = np.exp(scores - scores.max())
        return np.asarray(power / power.sum(), np.float32)


def _plain(line: str) -> str:
    """`/b/bazaar/indoor 37` is "bazaar indoor"."""
    name = re.sub(r"^/\w/", "", re.sub(r"\s+\d+$", "", line.strip()))
    return name.replace("/", " ").replace("_", " ")
