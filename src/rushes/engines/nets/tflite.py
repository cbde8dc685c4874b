"""TFLite files in this process, by LiteRT; heavy to import, so only the nets do."""

import zipfile
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter  # type: ignore[import-untyped]
from numpy.typing import NDArray

from rushes.engines.devices import Compute
from rushes.engines.images import Floats


class TfLite:
    """An interpreter whose one input is a picture."""

    def __init__(self, file: Path, compute: Compute) -> None:
        self._net = Interpreter(str(file), num_threads=compute.threads)  # the processor: it has no CUDA
        self._net.allocate_tensors()
        (self._input,) = self._net.get_input_details()
        self._outputs = self._net.get_output_details()
        self.size: tuple[int, int] = (int(self._input["shape"][2]), int(self._input["shape"][1]))
        self.labels = _labels(file)

    def run(self, picture: NDArray[np.uint8]) -> list[Floats]:
        """Every output for an RGB picture of the right size, dequantized, smallest first."""
        self._net.set_tensor(self._input["index"], picture[None])
        self._net.invoke()
        found = [_dequantize(self._net.get_tensor(o["index"])[0], *o["quantization"]) for o in self._outputs]
        return sorted(found, key=lambda values: values.size)


def _dequantize(values: NDArray[np.generic], scale: float, zero: int) -> Floats:
    return (values.astype(np.float32) - zero) * np.float32(scale) if scale else values.astype(np.float32)


def _labels(file: Path) -> tuple[str, ...]:
    """Class names, from the zip archive appended to the file."""
    with zipfile.ZipFile(file) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".txt"))
        return tuple(archive.read(name).decode().splitlines())
