"""Monocular depth: FastDepth, or any net in ONNX form that gives depth or inverse depth."""

from pathlib import Path

import numpy as np

from rushes.engines.devices import Compute
from rushes.engines.images import Floats, nchw, resize
from rushes.engines.nets.onnx import Onnx
from rushes.engines.port import Picture

_MIN_METRES = 0.1  # bounds inverse depth
_SIDE = 518  # for a net of any input size: what Depth Anything was trained with
_UNNORMALISED = "fastdepth"  # takes RGB from 0 to 1; all others take it normalised


class DepthNet:
    """Runs a net on the whole picture, squeezed into its input size."""

    def __init__(self, folder: Path, compute: Compute) -> None:
        file = next(iter(sorted(folder.glob("*.onnx"))))
        self._net = Onnx(file, compute)
        self._normalised = not folder.name.startswith(_UNNORMALISED)
        height, width = self._net.shape[2:4]
        self._size = tuple(n if isinstance(n, int) else _SIDE for n in (width, height))

    def inverse_depth(self, picture: Picture, *, inverse: bool) -> Floats:
        """A map of inverse depth: larger is nearer."""
        output = self._net.run(nchw(resize(picture, *self._size), normalised=self._normalised))[0]
        found = np.asarray(output, np.float32).reshape(output.shape[-2:])
        return found if inverse else np.asarray(1 / np.maximum(found, _MIN_METRES), np.float32)
