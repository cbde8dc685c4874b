"""The gate before the models and the queue before the gate: bounded, in order, and left by whoever hangs up."""

import threading
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from rushes.domain.errors import InferenceFailed, ModelMissing, Refused
from rushes.engines.devices import Compute, Gpu
from rushes.engines.nets.depth import DepthNet
from rushes.engines.remote import RemoteEngine
from rushes.engines.wire import pack, pack_pictures
from rushes.library.inference import Busy, Cancelled, Gate, InferenceService, Queue
from rushes.settings import Settings

DEADLINE = 20


def stay() -> None:
    """The caller is still there."""


def waiters(gate: Gate, count: int) -> None:
    """Wait until so many wait."""
    pause = threading.Event()
    while len(gate._waiting) != count:
        pause.wait(0.005)


def test_callers_use_a_permit_in_the_order_in_which_they_came() -> None:
    gate, order = Gate(1), list[int]()

    def call(number: int) -> None:
        with gate.permit(stay):
            order.append(number)

    callers = [threading.Thread(target=call, args=(n,)) for n in range(20)]
    with gate.permit(stay):
        for number, caller in enumerate(callers):
            caller.start()
            waiters(gate, number + 1)
    for caller in callers:
        caller.join(DEADLINE)
    assert order == list(range(20))


def test_twenty_callers_use_two_permits_and_give_them_back() -> None:
    gate, order, open_gate = Gate(2), list[int](), threading.Event()

    def call(number: int) -> None:
        with gate.permit(stay):
            order.append(number)
            open_gate.wait(DEADLINE)

    callers = [threading.Thread(target=call, args=(n,)) for n in range(20)]
    for number, caller in enumerate(callers):
        caller.start()
        if number > 1:
            waiters(gate, number - 1)
    assert gate.used == 2
    open_gate.set()
    for caller in callers:
        caller.join(DEADLINE)
    assert gate.most == 2
    assert sorted(order[:2]) == [0, 1]
    assert set(order) == set(range(20))
    assert gate.used == 0
    with gate.permit(stay), gate.permit(stay):
        assert gate.used == 2, "every permit came back"


def test_who_hangs_up_while_waiting_takes_no_permit_with_him() -> None:
    gate, gone, failures = Gate(1), threading.Event(), list[BaseException]()

    def check() -> None:
        if gone.is_set():
            raise Cancelled("gone")

    def call() -> None:
        try:
            with gate.permit(check):
                pass
        except Cancelled as e:
            failures.append(e)

    with gate.permit(stay):
        caller = threading.Thread(target=call)
        caller.start()
        waiters(gate, 1)
        gone.set()
        caller.join(DEADLINE)
        assert len(failures) == 1
        assert not gate._waiting
    with gate.permit(stay):
        pass


def test_one_too_many_is_told_so() -> None:
    queue = Queue(2)
    with queue.enter(), queue.enter(), pytest.raises(Busy), queue.enter():
        pass
    assert (queue.inside, queue.refused) == (0, 1)
    with queue.enter():
        assert queue.inside == 1


def settings(tmp_path: Path, models: str) -> Settings:
    return Settings(models=str(tmp_path / "models"), ml_models=models)


def test_a_service_with_a_model_that_does_not_exist_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="dragon"):
        InferenceService(settings(tmp_path, "fastdepth,dragon")).start()


def test_a_service_with_a_model_that_fails_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = InferenceService(settings(tmp_path, "fastdepth"))

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no kernel for this graph")

    monkeypatch.setattr(service.engine, "inverse_depth", broken)
    with pytest.raises(ModelMissing, match="no kernel"):
        service.start()
    assert service.health().status == "unhealthy"


def test_weights_that_are_not_those_of_the_manifest_are_fetched_again(tmp_path: Path) -> None:
    wanted = settings(tmp_path, "fastdepth")
    InferenceService(wanted).start()
    (file,) = (tmp_path / "models" / "fastdepth").glob("*.onnx")
    good = file.read_bytes()
    file.write_bytes(b"x" * len(good))
    InferenceService(wanted).start()
    assert file.read_bytes() == good


def test_a_model_of_the_hub_is_fetched_at_the_start_and_no_model_that_is_not_named(tmp_path: Path) -> None:
    asked: list[str] = []

    def hub(id: str, into: Path, _revision: str) -> str:
        asked.append(id)
        net = files("rushes.engines.models").joinpath("weights", "fastdepth.onnx")
        (into / "model.onnx").write_bytes(net.read_bytes())
        return "c0ffee"

    service = InferenceService(replace(settings(tmp_path, "tesseract"), depth_model="anna/net"))
    service._store._hub = hub
    service._store._wheels = lambda *named: pytest.fail(f"{named} was fetched")
    service.start()
    assert (asked, service.loaded()) == (["anna/net"], ("anna/net", "tesseract"))
    plain = InferenceService(settings(tmp_path, "tesseract"))
    plain._store._wheels = service._store._wheels
    plain.start()
    assert plain.loaded() == ("tesseract",)


def test_a_caller_names_models_that_are_loaded_and_no_folders(tmp_path: Path) -> None:
    service = InferenceService(settings(tmp_path, "fastdepth"))
    service.start()
    picture = np.zeros((64, 64, 3), np.uint8)
    asked = RemoteEngine(lambda capability, call: service.answer(capability, call, stay))
    for name in ("fastdepth", service._store.known["fastdepth"].name):
        assert len(asked.inverse_depth(name, [picture], inverse=None)) == 1
    for name in ("minilm-l6", str(tmp_path / "models" / "fastdepth"), "../models/fastdepth", "tesseract"):
        with pytest.raises(ModelMissing, match="is loaded"):
            asked.inverse_depth(name, [picture], inverse=None)
    with pytest.raises(ModelMissing, match="for objects is loaded"):
        asked.detect_objects("fastdepth", [picture], 0.4)
    with pytest.raises(ModelMissing, match="for text is loaded"):
        asked.read_text("tesseract", [picture], 960, ["eng"])
    assert service.health().status == "healthy"


def test_tesseract_answers_where_it_was_named(tmp_path: Path) -> None:
    service = InferenceService(settings(tmp_path, "fastdepth,tesseract"))
    service.start()
    asked = RemoteEngine(lambda capability, call: service.answer(capability, call, stay))
    assert asked.read_text("tesseract", [np.zeros((64, 64, 3), np.uint8)], 960, ["eng"]) == [[]]


def test_a_model_that_fails_after_the_start_makes_it_degraded_until_it_answers(tmp_path: Path) -> None:
    service = InferenceService(settings(tmp_path, "fastdepth"))
    service.start()
    assert service.health().status == "healthy"

    def broken() -> bytes:
        raise RuntimeError("out of memory")

    with pytest.raises(InferenceFailed, match="out of memory"):
        service.use("depth", broken, stay)
    assert service.health().status == "degraded"
    service.use("depth", lambda: b"", stay)
    assert service.health().status == "healthy"
    assert service.calls == {("depth", "failed"): 1, ("depth", "answered"): 1}


def test_a_model_that_failed_is_lost_though_another_one_of_its_kind_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = InferenceService(settings(tmp_path, "efficientdet-lite0,yunet-sface"))
    service.start()
    asked = RemoteEngine(lambda capability, call: service.answer(capability, call, stay))
    picture, name = np.zeros((64, 64, 3), np.uint8), service._store.known["efficientdet-lite0"].name
    with monkeypatch.context() as broken:
        broken.setattr(service.engine, "detect_objects", lambda *_: np.linalg.inv(np.zeros((2, 2))))
        with pytest.raises(InferenceFailed, match=f"{name} failed: Singular matrix"):
            asked.detect_objects("efficientdet-lite0", [picture], 0.4)
    assert asked.detect_faces("yunet-sface", [picture], 0.7, 640) == [[]]
    assert service.status() == "degraded"
    assert asked.detect_objects(name, [picture], 0.4) == [[]]
    assert service.status() == "healthy"


def test_who_wants_no_gpu_is_answered_by_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = Gpu(0, "a card", 8000, 0)  # ONNX Runtime here has no CUDA and falls back to the processor
    monkeypatch.setattr("rushes.library.inference.service.gpus", lambda: (card,))
    service = InferenceService(settings(tmp_path, "fastdepth"))
    service.start()
    used: list[str] = []
    monkeypatch.setattr("rushes.engines.nets.depth.DepthNet.__init__", seen(used))
    shapes, parts = pack_pictures([np.zeros((8, 8, 3), np.uint8)])
    call = pack({"model": "fastdepth", "inverse": None, "shapes": shapes}, parts)
    near = service.answer("depth", call, stay)
    assert (service.device, used) == ("cuda:0", []), "its models were loaded at the start"
    assert service.answer("depth", call, stay, use_gpu=False) == near
    assert used == ["cpu"]


def seen(used: list[str]) -> Callable[[DepthNet, Path, Compute], None]:
    """The constructor, which notes the device."""
    usual = DepthNet.__init__

    def construct(self: DepthNet, folder: Path, compute: Compute) -> None:
        used.append(compute.device)
        usual(self, folder, compute)

    return construct
