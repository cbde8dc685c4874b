"""Engines as the settings say: in this process, in services, or the stub."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from rushes.engines.devices import CPU, CUDA, choose_device, gpus
from rushes.engines.http import InferenceServices
from rushes.engines.models.store import ModelStore
from rushes.engines.port import Engine
from rushes.model_settings import HTTP, LOCAL, SAGEMAKER, STUB, inference_of, models_folder, own_models
from rushes.settings import Settings

_THREADS = 2


def open_engine(s: Settings, stage: str, seconds: int = 0) -> Engine:
    """The engine of a stage, for a process that may use the network: any thread may ask, and waits for the answer.

    An answer of a service may take so many seconds; 0: as the settings say.
    """
    kind, urls = inference_of(s, stage)
    if kind == HTTP:
        from rushes.engines.remote import RemoteEngine

        services = services_of(replace(s, inference_seconds=seconds or s.inference_seconds), urls)
        return RemoteEngine(partial(_ask, services))
    return slot_engines(_store(s), _THREADS)[LOCAL if kind == SAGEMAKER else kind]()


def _ask(services: InferenceServices, capability: str, call: bytes) -> bytes:
    """Over connections of its own, which no other thread uses."""
    session = services.session()
    try:
        return session.post(capability, call)
    finally:
        session.close()


def services_of(s: Settings, urls: tuple[str, ...]) -> InferenceServices:
    """The services at these addresses."""
    return InferenceServices(urls, s.inference_token, s.inference_seconds, s.inference_max_in_flight)


def slot_engines(store: ModelStore, threads: int) -> Mapping[str, Callable[[], Engine]]:
    """The engines that need no network, by name; each is opened once, when it is asked for."""

    @cache
    def local() -> Engine:
        from rushes.engines.local import LocalEngine

        return LocalEngine(store, threads=threads)

    @cache
    def stub() -> Engine:
        from rushes.engines.stub import StubEngine

        return StubEngine()

    return {LOCAL: local, STUB: stub}


def service_engine(s: Settings, threads: int, device: str) -> tuple[ModelStore, Engine]:
    """The models of an inference service and their engine, which keeps what it has loaded."""
    from rushes.engines.local import LocalEngine

    store = _store(s)
    local = LocalEngine(
        store, threads, idle_seconds=0, device=device, low_memory=s.low_memory, require_gpu=s.require_gpu
    )
    return store, local


def engines_by_device(s: Settings, wanted: str = "") -> Mapping[str, Engine]:
    """The engines that answer here: of a service, or by the devices of this machine, all unless one is wanted.

    Raises:
        Refused: there is no such device.
    """
    kind, _ = inference_of(s, "")
    if kind in (HTTP, STUB):
        return {kind: open_engine(s, "")}
    there = gpus()
    devices = [choose_device(wanted, there)] if wanted else [CPU, *(f"{CUDA}:{gpu.index}" for gpu in there)]
    return {device: service_engine(s, _THREADS, device)[1] for device in devices}


def _store(s: Settings) -> ModelStore:
    return ModelStore(models_folder(s), paths=[Path(path) for _, path in own_models(s)])


def worker_engine(s: Settings, stage: str) -> str:
    """Where a worker runs the models of a stage: made-up answers are a choice of whoever submits a job, not of it."""
    kind, _ = inference_of(s, stage)
    return LOCAL if kind == STUB else kind
