"""ONNX files in this process; heavy to import, so only the nets do."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from numpy.typing import NDArray

from rushes.engines.devices import Compute, check_providers, onnx_providers

_FATAL = 4  # ONNX Runtime warns about harmless leftovers of exporters


class Onnx:
    """An inference session."""

    def __init__(self, file: Path, compute: Compute) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _FATAL
        options.intra_op_num_threads, options.inter_op_num_threads = compute.threads, 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads burn no CPU
        providers = onnx_providers(compute, onnxruntime.get_available_providers())
        self._session = onnxruntime.InferenceSession(str(file), options, providers=providers)
        check_providers(compute, self._session.get_providers(), file.name)
        first, *unused = self._session.get_inputs()
        self._inputs = [first.name, *(i.name for i in unused)]
        # Replaced weights may still be listed as inputs that nothing reads.
        fixed = [i for i in unused if all(isinstance(d, int) for d in i.shape)]
        self._unused = {i.name: np.zeros(i.shape, np.float32) for i in fixed}
        self.shape: tuple[int | str, ...] = tuple(first.shape)
        self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)

    def run(self, *inputs: NDArray[Any]) -> list[NDArray[Any]]:
        """Every output for these inputs, in the order of the file."""
        return list(self._session.run(None, self._unused | dict(zip(self._inputs, inputs, strict=False))))

    def named(self, *inputs: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The outputs by name."""
        return dict(zip((o.name for o in self._session.get_outputs()), self.run(*inputs), strict=True))
