"""Devices: which one is chosen and what the runtimes are told, with GPUs that are made up; none is here."""

from dataclasses import replace
from pathlib import Path

import pytest

from rushes.domain.errors import Refused
from rushes.engines.devices import (
    Compute,
    Gpu,
    check_providers,
    choose_device,
    gpus,
    onnx_providers,
    whisper_options,
)
from rushes.library.inference import InferenceService
from rushes.settings import Settings

TWO = (Gpu(0, "A10G", 23028, 4), Gpu(1, "A10G", 23028, 512))
BOTH = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
TOOL = """#!/bin/sh
case "$1" in --query-gpu=index,name,memory.total,memory.used) ;; *) exit 9 ;; esac
echo "0, NVIDIA A10G, 23028, 4"
echo "1, NVIDIA A10G, 23028, 512"
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tool that tells of two GPUs."""
    command = tmp_path / "nvidia-smi"
    command.write_text(TOOL)
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return command


@pytest.mark.parametrize(
    ("wanted", "there", "device"),
    [
        ("auto", (), "cpu"),
        ("auto", TWO, "cuda:0"),
        ("auto", TWO[1:], "cuda:1"),
        ("cpu", TWO, "cpu"),
        ("cuda", TWO, "cuda:0"),
        ("cuda:1", TWO, "cuda:1"),
    ],
)
def test_a_setting_means_a_device(wanted: str, there: tuple[Gpu, ...], device: str) -> None:
    assert choose_device(wanted, there) == device


@pytest.mark.parametrize(
    ("wanted", "there", "required"),
    [
        ("cuda", (), False),
        ("cuda:2", TWO, False),
        ("auto", (), True),
        ("cpu", TWO, True),
        ("gpu", TWO, False),
        ("cpu:1", TWO, False),
        ("cuda:x", TWO, False),
    ],
)
def test_what_is_not_there_is_refused(wanted: str, there: tuple[Gpu, ...], required: bool) -> None:
    with pytest.raises(Refused):
        choose_device(wanted, there, required=required)


def test_each_runtime_is_told_of_the_device() -> None:
    near, far = Compute(2), Compute(2, "cuda:1")
    assert onnx_providers(near, BOTH) == ["CPUExecutionProvider"]
    assert onnx_providers(far, BOTH) == [("CUDAExecutionProvider", {"device_id": 1}), "CPUExecutionProvider"]
    sparing = {"device_id": 1, "arena_extend_strategy": "kSameAsRequested", "cudnn_conv_use_max_workspace": "0"}
    assert onnx_providers(replace(far, low_memory=True), BOTH)[0] == ("CUDAExecutionProvider", sparing)
    assert onnx_providers(far, ["CPUExecutionProvider"]) == ["CPUExecutionProvider"], "a build without CUDA"
    assert whisper_options(near) == {"device": "cpu", "compute_type": "int8"}
    assert whisper_options(far) == {"device": "cuda", "device_index": 1, "compute_type": "int8_float16"}


def test_a_net_that_runs_on_the_processor_instead_of_the_gpu_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    check_providers(Compute(), ["CPUExecutionProvider"], "net.onnx")
    check_providers(Compute(device="cuda:0", required=True), BOTH[1:], "net.onnx")
    assert not caplog.records
    check_providers(Compute(device="cuda:0"), ["CPUExecutionProvider"], "net.onnx")
    assert "net.onnx on the processor, not on cuda:0" in caplog.text
    with pytest.raises(Refused, match=r"net\.onnx"):
        check_providers(Compute(device="cuda:0", required=True), ["CPUExecutionProvider"], "net.onnx")


def test_gpus_are_found_by_their_own_tool(tool: Path) -> None:
    assert [(gpu.index, gpu.name, gpu.memory, gpu.used) for gpu in gpus()] == [
        (0, "NVIDIA A10G", 23028, 4),
        (1, "NVIDIA A10G", 23028, 512),
    ]
    tool.write_text("#!/bin/sh\necho No devices were found\n")
    assert gpus() == ()
    tool.unlink()
    assert gpus() == ()


def test_a_service_uses_a_gpu_that_is_there_and_does_not_start_without_one_that_is_required(
    tool: Path, tmp_path: Path
) -> None:
    service = InferenceService(Settings(models=str(tmp_path / "models")))
    assert (service.device, service.device_name) == ("cuda:0", "cuda:0 (NVIDIA A10G, 23028 MB)")
    assert (service.health().gpu_available, service.health().gpu_memory_used_mb) == (True, 516)
    tool.unlink()
    assert InferenceService(Settings()).device == "cpu"
    with pytest.raises(Refused, match="no GPU was found"):
        InferenceService(Settings(require_gpu=True))


def test_a_service_that_requires_a_gpu_does_not_start_if_a_net_falls_back_to_the_processor(
    tool: Path, tmp_path: Path
) -> None:
    wanted = Settings(models=str(tmp_path / "models"), ml_models="fastdepth", require_gpu=True)
    with pytest.raises(Refused, match=r"GPU is required, and ONNX Runtime runs .* on the processor"):
        InferenceService(wanted).start()
