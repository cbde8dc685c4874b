"""Devices: which GPUs this machine has, which one models use, and what each runtime is told. No torch is needed."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rushes.domain.errors import Refused
from rushes.telemetry import log

CPU, CUDA, AUTO = "cpu", "cuda", "auto"
CUDA_PROVIDER = "CUDAExecutionProvider"
_FIELDS = "index,name,memory.total,memory.used"
_SECONDS = 10.0
_HINT = "Allowed: auto, cpu, cuda, or cuda:N."


@dataclass(frozen=True, slots=True)
class Gpu:
    """A graphics card that CUDA can use; memory in MB."""

    index: int
    name: str
    memory: int
    used: int


@dataclass(frozen=True, slots=True)
class Compute:
    """What a model may use: threads of the processor, and a device (cpu, or cuda:N)."""

    threads: int = 1
    device: str = CPU
    low_memory: bool = False  # take no more of a GPU than is in use
    required: bool = False  # rather fail than use the processor instead of a GPU

    @property
    def gpu(self) -> int | None:
        """The number of the GPU, None on the processor."""
        return None if self.device == CPU else int(self.device.partition(":")[2] or 0)


def gpus() -> tuple[Gpu, ...]:
    """What NVIDIA's own tool says; none where it is not installed or does not answer."""
    command = shutil.which("nvidia-smi")
    if not command:
        return ()
    argv = [command, f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=True)
        return tuple(_gpu(line) for line in done.stdout.splitlines() if line.strip())
    except (OSError, ValueError, subprocess.SubprocessError):
        return ()


def choose_device(wanted: str, there: Sequence[Gpu], *, required: bool = False) -> str:
    """The device that a setting means here.

    Raises:
        Refused: it names a GPU that is not there, or one is required and none is.
    """
    kind, _, number = wanted.partition(":")
    if kind not in (AUTO, CPU, CUDA) or (number and (kind != CUDA or not number.isdecimal())):
        raise Refused(f"device = {wanted!r} is invalid", _HINT)
    if kind == CPU or (kind == AUTO and not there and not required):
        if required:
            raise Refused("a GPU is required, and device = cpu", "Set require_gpu = false, or device = auto.")
        return CPU
    index = int(number or (there[0].index if there else 0))
    if index not in {gpu.index for gpu in there}:
        why = f"this machine has no GPU {index}" if there else "no GPU was found on this machine"
        raise Refused(why, "To run models on the CPU, set device = auto and REQUIRE_GPU=false.")
    return f"{CUDA}:{index}"


def onnx_providers(compute: Compute, available: Sequence[str]) -> list[str | tuple[str, Mapping[str, Any]]]:
    """The execution providers of ONNX Runtime, best first; the processor takes what a GPU cannot."""
    if compute.gpu is None or CUDA_PROVIDER not in available:
        return ["CPUExecutionProvider"]
    sparing = {"arena_extend_strategy": "kSameAsRequested", "cudnn_conv_use_max_workspace": "0"}
    options = {"device_id": compute.gpu, **(sparing if compute.low_memory else {})}
    return [(CUDA_PROVIDER, options), "CPUExecutionProvider"]


def check_providers(compute: Compute, used: Sequence[str], net: str) -> None:
    """Notice a net that ONNX Runtime runs on the processor although there is a GPU for it.

    Raises:
        Refused: a GPU is required.
    """
    if compute.gpu is None or CUDA_PROVIDER in used:
        return
    hint = "Install onnxruntime-gpu and the CUDA libraries that it needs."
    if compute.required:
        raise Refused(f"a GPU is required, and ONNX Runtime runs {net} on the processor", hint)
    log.warning("ONNX Runtime runs %s on the processor, not on %s. %s", net, compute.device, hint)


def whisper_options(compute: Compute) -> Mapping[str, Any]:
    """The options of CTranslate2; on a GPU the weights stay in 8 bits and sums are made in 16."""
    if compute.gpu is None:
        return {"device": CPU, "compute_type": "int8"}
    return {"device": CUDA, "device_index": compute.gpu, "compute_type": "int8_float16"}


def _gpu(line: str) -> Gpu:
    index, name, memory, used = (field.strip() for field in line.split(","))
    return Gpu(int(index), name, int(memory), int(used))
