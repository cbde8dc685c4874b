"""How near things are: FastDepth, or any net in ONNX form that gives depth or its inverse."""

from pathlib import Path

import numpy as np

from rushes.engines.images import Floats, resized
from rushes.engines.nets.onnx import Onnx
from rushes.engines.port import Picture

_MEAN = np.array([0.485, 0.456, 0.406], np.float32)  # of ImageNet
_SPREAD = np.array([0.229, 0.224, 0.225], np.float32)
_NEAREST = 0.1  # metres: nothing is nearer than the lens can see
_SIDE = 518  # of a net that takes any size: the one that Depth Anything was trained with
_PLAIN = "fastdepth"  # takes colours as they are; all others want them normalised


class Depth:
    """A net that looks at the whole picture, squeezed into its own size."""

    def __init__(self, folder: Path, threads: int) -> None:
        file = next(iter(sorted(folder.glob("*.onnx"))))
        self._net = Onnx(file, threads)
        self._plain = folder.name.startswith(_PLAIN)
        height, width = self._net.shape[2:4]
        self._size = tuple(n if isinstance(n, int) else _SIDE for n in (width, height))

    def nearness(self, picture: Picture, *, inverse: bool) -> Floats:
        """How near each part is; larger is nearer."""
        values = resized(picture, *self._size) / np.float32(255)
        if not self._plain:
            values = (values - _MEAN) / _SPREAD
        said = self._net.run(values.transpose(2, 0, 1)[None].astype(np.float32))[0]
        found = np.asarray(said, np.float32).reshape(said.shape[-2:])
        return found if inverse else np.asarray(1 / np.maximum(found, _NEAREST), np.float32)
