"""Settings become engines: in this process, in services, or made up."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from rushes.engines.http import InferenceServices
from rushes.engines.models.store import ModelStore
from rushes.engines.port import Engine
from rushes.settings import (
    HTTP,
    LOCAL,
    MODEL_SETTINGS,
    SAGEMAKER,
    STUB,
    Settings,
    inference_of,
    models_folder,
    own_model,
)

_THREADS = 2


def own_models(s: Settings) -> list[str]:
    """The models that were configured instead of a profile's."""
    return [path for capability in MODEL_SETTINGS if (path := own_model(s, capability))]


def open_engine(s: Settings, stage: str) -> Engine:
    """The engine of a stage, for a process that may use the network and waits for the answer."""
    kind, urls = inference_of(s, stage)
    if kind == HTTP:
        from rushes.engines.remote import RemoteEngine

        return RemoteEngine(services_of(s, urls).session().post)
    return slot_engines(_store(s), _THREADS)[LOCAL if kind == SAGEMAKER else kind]()


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
    return store, LocalEngine(store, threads, idle_seconds=0, device=device)


def _store(s: Settings) -> ModelStore:
    return ModelStore(models_folder(s), paths=[Path(path) for path in own_models(s)])


def worker_engine(s: Settings, stage: str) -> str:
    """Where a worker runs the models of a stage: made-up answers are a choice of whoever submits a job, not of it."""
    kind, _ = inference_of(s, stage)
    return LOCAL if kind == STUB else kind
