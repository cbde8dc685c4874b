"""The local engine: models in this process, loaded on first use, unloaded when idle; never on the network."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rushes.domain.errors import ModelMissing
from rushes.engines.devices import CPU, Compute
from rushes.engines.images import pixels
from rushes.engines.models.manifest import TESSERACT
from rushes.engines.models.store import ModelStore
from rushes.engines.port import BATCH, DecodingOptions, Detection, Face, Pcm, Pictures, TextLine, Transcription

_OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}

Warm = tuple[Any, threading.Lock]  # a loaded model, and whose turn it is


class LocalEngine:
    """Inference in this process, one call of a model at a time. The number of threads changes only the speed."""

    def __init__(
        self,
        store: ModelStore,
        threads: int = 1,
        idle_seconds: float = 300.0,
        device: str = CPU,
        *,
        low_memory: bool = False,
        require_gpu: bool = False,
    ) -> None:
        """Models are unloaded after so many idle seconds; 0: never."""
        self._store = store
        self._compute = Compute(max(1, threads), device, low_memory, require_gpu)
        self._idle = idle_seconds
        self._warm: dict[str, Warm] = {}  # by the names with hashes: a model has several names, a folder several models
        self._by_name: dict[str, Warm] = {}  # by the names that callers use: to look one up takes 0.1 ms
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self.loading = 0.0
        self.batch = BATCH

    def detect_speech(self, pcm: Pcm) -> Sequence[tuple[int, int]]:
        """Spans of samples with speech, in order (voice activity detection)."""
        return self._import("whisper").detect_speech(pcm)  # type: ignore[no-any-return]

    def detect_language(self, model: str, pcm: Pcm) -> tuple[str, float]:
        """The language of up to 30 s of speech, and its probability."""
        return self._run("whisper", "Whisper", model, "window_language", pcm)  # type: ignore[no-any-return]

    def transcribe(self, model: str, pcm: Pcm, options: DecodingOptions) -> Transcription:
        """The words of up to 30 s of speech, with times."""
        return self._run("whisper", "Whisper", model, "transcribe_window", pcm, options)  # type: ignore[no-any-return]

    def read_text(
        self, model: str, pictures: Pictures, side: int, languages: Sequence[str] = (), *, use_gpu: bool = True
    ) -> list[Sequence[TextLine]]:
        """The lines of text in each picture."""
        if model == TESSERACT:
            with self._lock:
                command = self._import("nets.tesseract").Tesseract()
                return [command.read(picture, languages) for picture in map(pixels, pictures)]
        if not use_gpu and self._compute.gpu is not None:
            return self._on_processor.read_text(model, pictures, side)
        return self._each("nets.text", "PpOcr", model, "read", pictures, side)

    def detect_objects(self, model: str, pictures: Pictures, least: float) -> list[Sequence[Detection]]:
        """Objects with at least that confidence, most confident first."""
        return self._each("nets.objects", "EfficientDet", model, "find", pictures, least)

    def detect_faces(self, model: str, pictures: Pictures, least: float, side: int) -> list[Sequence[Face]]:
        """Faces with at least that confidence, most confident first."""
        return self._each("nets.faces", "Faces", model, "find", pictures, least, side)

    def classify_place(self, model: str, pictures: Pictures, most: int) -> list[Sequence[tuple[str, float]]]:
        """The likeliest scene classes with their probabilities, likeliest first."""
        return self._each("nets.places", "PlaceClassifier", model, "classify", pictures, most)

    def inverse_depth(self, model: str, pictures: Pictures, *, inverse: bool | None) -> list[NDArray[np.float32]]:
        """A map of inverse depth."""
        return self._each("nets.depth", "DepthNet", model, "inverse_depth", pictures, inverse=inverse)

    def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One embedding of length one for each sentence."""
        return self._run("nets.sentences", "MiniLm", model, "embed", texts)  # type: ignore[no-any-return]

    def embed_pictures(self, model: str, pictures: Pictures) -> NDArray[np.float32]:
        """One embedding of length one for each picture."""
        return _rows(self._each("nets.picture_text", "PictureText", model, "embed_picture", pictures))

    def embed_captions(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One embedding of length one for each text, near those of the pictures that show it."""
        with self._loaded("nets.picture_text", "PictureText", model) as net:
            return _rows([net.embed_text(text) for text in texts])

    def unload(self) -> None:
        """Unload every model; the next call loads it again."""
        with self._lock:
            self._warm.clear()
            self._by_name.clear()
            if self._timer:
                self._timer.cancel()

    @cached_property
    def _on_processor(self) -> "LocalEngine":
        """The same models without a GPU; loaded when they are asked for."""
        return LocalEngine(self._store, self._compute.threads, self._idle)

    def _each(
        self, room: str, name: str, model: str, method: str, pictures: Pictures, *given: Any, **named: Any
    ) -> list[Any]:
        with self._loaded(room, name, model) as net:
            answer = getattr(net, method)
            return [answer(pixels(picture), *given, **named) for picture in pictures]

    def _run(self, room: str, name: str, model: str, method: str, *given: Any) -> Any:
        with self._loaded(room, name, model) as net:
            return getattr(net, method)(*given)

    @contextlib.contextmanager
    def _loaded(self, room: str, name: str, model: str) -> Iterator[Any]:
        """A model, for one caller at a time; another model may be used meanwhile."""
        with self._lock:
            net, lock = self._load(room, name, model)
        with lock:
            yield net
        with self._lock:
            self._unload_later()

    def _load(self, room: str, name: str, model: str) -> Warm:
        if self._timer:
            self._timer.cancel()
        if model not in self._by_name:
            folder = self._store.checked(model)
            full_name = self._store.full_name(folder)
            if full_name not in self._warm:
                code, begun = self._import(room), time.monotonic()
                self._warm[full_name] = getattr(code, name)(folder, self._compute), threading.Lock()
                self.loading += time.monotonic() - begun
            self._by_name[model] = self._warm[full_name]
        return self._by_name[model]

    def _unload_later(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._idle:
            self._timer = threading.Timer(self._idle, self.unload)
            self._timer.daemon = True
            self._timer.start()

    def _import(self, room: str) -> ModuleType:
        begun = time.monotonic()
        code = _imported(room)
        self.loading += time.monotonic() - begun
        return code


def _rows(rows: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    return np.stack(rows) if rows else np.zeros((0, 0), np.float32)


def _imported(room: str) -> ModuleType:
    """Import on first use: it takes a second and 100 MB that most processes never need."""
    for name, value in _OFFLINE.items():
        os.environ.setdefault(name, value)
    logging.getLogger("faster_whisper").setLevel(logging.ERROR)
    try:
        return import_module(f"rushes.engines.{room}")
    except ModuleNotFoundError as e:
        raise ModelMissing(f"{e.name} is not installed", f"Install it with: pip install {e.name}") from e
