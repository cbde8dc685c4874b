"""Models that are loaded and tried at the start, and answer calls from then on."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from rushes.domain.errors import InferenceFailed, ModelMissing, NeverWorks, OtherModel, Refused, RushesError, SlotTooBig
from rushes.engines.calls import LoadedModel, answer
from rushes.engines.devices import AUTO, CPU, CUDA, choose_device, gpus
from rushes.engines.models.benchmark import trial_call
from rushes.engines.models.fetch import is_hub_id
from rushes.engines.models.manifest import TESSERACT
from rushes.engines.models.speech import ENGLISH, MULTILINGUAL
from rushes.engines.models.store import OnProgress
from rushes.engines.port import Engine
from rushes.engines.wire import document
from rushes.library.inference.gate import Cancelled, Check, Gate, OutOfTime, Queue
from rushes.metrics import Histogram
from rushes.model_settings import own_models
from rushes.settings import Settings
from rushes.telemetry import log
from rushes.wiring.engines import service_engine

HEALTHY, DEGRADED, UNHEALTHY = "healthy", "degraded", "unhealthy"
_OF_THE_CALL = (Refused, NeverWorks, Cancelled, OutOfTime, SlotTooBig)  # errors that say nothing about the model
_MEASURE_SECONDS = 10.0  # between two looks at the memory of the GPUs
Found = TypeVar("Found")

_CAPABILITIES = {  # of the questions about films; scenes need no model
    "objects": "objects",
    "faces": "faces",
    "transcribe": "speech",
    "ocr": "text",
    "places": "places",
    "scenes": "",
}
_SIZES = ("base", "small", "medium", "large", "large-v2", "large-v3")
_ALIASES: Mapping[
    str, Mapping[str, tuple[str, ...]]
] = {  # names of the documents, by question -> what we ship, the first that is loaded; none: any of the profile
    "objects": {"yolov8n.pt": ()},
    "faces": {"yolov8n-face.pt": ()},
    "transcribe": {"tiny": (ENGLISH, MULTILINGUAL), **dict.fromkeys(_SIZES, (MULTILINGUAL, ENGLISH))},
    "ocr": {"": ()},
    "places": {"": ()},
}


@dataclass(frozen=True, slots=True)
class Health:
    """How an inference service is."""

    status: str
    models_loaded: tuple[str, ...]
    gpu_available: bool = False
    gpu_memory_used_mb: int = 0


class InferenceService:
    """Answers calls with the models of this machine, so many at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._gpus = gpus()
        self.device = choose_device(settings.device, self._gpus, required=settings.require_gpu)
        self._threads = settings.threads or os.cpu_count() or 1
        self._store, self.engine = service_engine(settings, self._threads, self.device)
        self.gate = Gate(1 if settings.low_memory else settings.gpu_concurrency)
        self.queue = Queue(settings.inference_queue)
        self._loaded: list[str] = []
        self._names: dict[str, LoadedModel] = {}  # what is loaded, by all its names
        self._failing = set[str]()  # models whose last call failed
        self._lock, self._measuring = threading.Lock(), threading.Lock()
        self._gpu_used, self._measure_after = sum(gpu.used for gpu in self._gpus), 0.0
        self.calls: Counter[tuple[str, str]] = Counter()  # by capability and outcome
        self.seconds: Counter[str] = Counter()  # of models at work, by capability
        self._waits = Histogram()  # seconds until a model was free

    @property
    def device_name(self) -> str:
        """The device as people know it, with its memory where it is a GPU."""
        used = [gpu for gpu in self._gpus if self.device == f"{CUDA}:{gpu.index}"]
        return f"{self.device} ({used[0].name}, {used[0].memory} MB)" if used else self.device

    def start(self, on_fetch: OnProgress = lambda _model, _done, _all: None) -> None:
        """Fetch, verify, load and try every model.

        Raises:
            RushesError: one of them cannot be had, is not what was promised, or fails.
        """
        for gpu in self._gpus:
            log.info("GPU %d: %s, %d MB", gpu.index, gpu.name, gpu.memory)
        if self.device == CPU and self._settings.device == AUTO:
            log.warning("no GPU was found: models run on the CPU, which is slower")
        log.info("models run on %s", self.device)
        own = own_models(self._settings)
        ids = [id.strip() for id in self._settings.ml_models.split(",") if id.strip()] or list(self._store.known)
        ids = list(dict.fromkeys([*ids, *(model for _, model in own if model in self._store.known)]))
        far = [model for _, model in own if is_hub_id(model) and not Path(model).is_dir()]
        if fetched := [*far, *(id for id in ids if id in self._store.known)]:  # none would mean all
            self._store.pull(fetched, on_fetch)
        known = [(self._store.known[id].capability, id) for id in ids if id in self._store.known]
        if TESSERACT in ids:  # a command, which has no weights
            ids.remove(TESSERACT)
            own = [*own, ("text", TESSERACT)]
        if unknown := ", ".join(id for id in ids if id not in self._store.known):
            raise Refused(
                f"ml_models names unknown models: {unknown}", f"Known models: {', '.join(self._store.known)}."
            )
        for capability, model in (*known, *(one for one in own if one[1] not in self._store.known)):
            self._try(capability, model)
        log.info("models loaded: %d", len(self._loaded))

    def answer(self, capability: str, call: bytes, check: Check, *, use_gpu: bool = True) -> bytes:
        """The answer to a call, in turn; on the processor if whoever asks wants no GPU.

        Raises:
            Refused, NeverWorks: the call is not possible as it is.
            Cancelled: the caller went away.
            InferenceFailed: the model failed.
        """
        engine = self.engine if use_gpu else self._on_processor
        ask = partial(answer, engine, capability, call, check, self._names)
        return self.use(capability, ask, check, self._model_in(call))

    @cached_property
    def _on_processor(self) -> Engine:
        """The same models without a GPU; loaded when they are asked for."""
        return self.engine if self.device == CPU else service_engine(self._settings, self._threads, CPU)[1]

    def _model_in(self, call: bytes) -> str:
        """The model that a call asks, by its full name; empty if it is not loaded."""
        with suppress(Refused):
            named = self._names.get(str(document(call).get("model")))
            return named.name if named else ""
        return ""

    def use(self, capability: str, ask: Callable[[], Found], check: Check, model: str = "") -> Found:
        """What a model says, in turn; raises as `answer`."""
        came = time.monotonic()
        with self.gate.permit(check):
            begun = time.monotonic()
            with self._lock:
                self._waits.add(begun - came)
            try:
                found = ask()
            except _OF_THE_CALL as e:
                outcome = "cancelled" if isinstance(e, Cancelled | OutOfTime) else "refused"
                self._note(capability, model, begun, outcome)
                raise
            except Exception as e:
                self._note(capability, model, begun, "failed")
                log.exception("%s failed", model or capability)
                raise InferenceFailed(f"{model or f'a model of {capability}'} failed: {e}") from e
            self._note(capability, model, begun, "answered")
            return found

    def status(self) -> str:
        """Whether every model answers; one that failed is lost until it answers again."""
        with self._lock:
            return UNHEALTHY if not self._loaded else DEGRADED if self._failing else HEALTHY

    def health(self) -> Health:
        """The status, and what is loaded; it may take seconds, because GPUs are asked."""
        return Health(self.status(), tuple(self._loaded), bool(self._gpus), self._gpu_memory())

    def _gpu_memory(self) -> int:
        """MB in use, measured now and then and by one caller at a time; others are told the last figure."""
        if self._gpus and time.monotonic() >= self._measure_after and self._measuring.acquire(blocking=False):
            try:
                self._gpu_used = sum(gpu.used for gpu in gpus())
                self._measure_after = time.monotonic() + _MEASURE_SECONDS
            finally:
                self._measuring.release()
        return self._gpu_used

    def choose(self, question: str, model: str, profile: str) -> str:
        """The models that answer a question about a film, by a name of ours or of the documents.

        Raises:
            OtherModel: it is loaded in another version.
            Refused: there is no such model, or it was not loaded.
        """
        capability = _CAPABILITIES[question]
        if not capability:
            return ""
        loaded = [name for name in self._loaded if self._names[name].capability == capability]
        chosen = model if model in self._names else _default(question, model, profile, loaded)
        found = self._names.get(chosen)
        if found and found.capability == capability:
            return found.name
        if "@" in model and (other := self._names.get(model.partition("@")[0])):
            raise OtherModel(f"{model} was requested, but {other.name} is loaded")
        named = f"model {model!r}" if model else f"model for {capability}"
        raise Refused(f"no {named} is loaded", f"Loaded models: {', '.join(loaded) or 'none'}.")

    def _try(self, capability: str, model: str) -> None:
        subject, run = trial_call(self.engine, capability, model)
        try:
            run()
        except RushesError:
            raise
        except Exception as e:
            raise ModelMissing(f"the model {model} fails on {subject}: {e}", "See the log.") from e
        self._loaded.append(model)
        self._names |= self._named(capability, model)
        log.info("the model %s is ready", model)

    def _named(self, capability: str, model: str) -> Mapping[str, LoadedModel]:
        """How callers may name a model: as we do, by its folder, and with the hash that is part of result keys."""
        folder = self._store.find(model) if model != TESSERACT else Path(model)
        full = self._store.full_name(folder) if model != TESSERACT else model
        return dict.fromkeys((model, folder.name, full), LoadedModel(capability, full))

    def _note(self, capability: str, model: str, begun: float, outcome: str) -> None:
        with self._lock:
            self.calls[capability, outcome] += 1
            self.seconds[capability] += time.monotonic() - begun  # type: ignore[assignment]  # a sum of seconds
            if outcome == "failed":
                self._failing.add(model or capability)
            elif outcome == "answered":
                self._failing.discard(model or capability)

    def loaded(self) -> Sequence[str]:
        """The models that are loaded."""
        return tuple(self._loaded)

    def waits(self) -> Histogram:
        """How long calls waited until a model was free."""
        with self._lock:
            return deepcopy(self._waits)


def _default(question: str, model: str, profile: str, loaded: Sequence[str]) -> str:
    """What stands for a name of the documents: empty if the name is unknown or nothing of it is loaded."""
    if model not in _ALIASES[question] or not loaded:
        return ""
    order: Sequence[str] = _ALIASES[question][model]
    order = order or (loaded if profile == "fast" else loaded[::-1])  # the manifest has the fast one first
    return next((name for name in order if name in loaded), "")
