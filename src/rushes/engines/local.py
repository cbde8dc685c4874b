"""The local engine: models in this process, kept warm, unloaded when nobody asks; never on the network."""

import logging
import os
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rushes.domain.errors import ModelMissing
from rushes.engines.models.store import ModelStore
from rushes.engines.port import Face, Heard, Hearing, Line, Pcm, Picture, Thing

_QUIET = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}
_TESSERACT = "tesseract"  # installed, or not: it has no weights of ours


class LocalEngine:
    """Inference in this process, one question at a time. The number of threads changes no result, only its pace."""

    def __init__(self, store: ModelStore, threads: int = 1, idle_seconds: float = 300.0) -> None:
        self._store = store
        self._threads = max(1, threads)
        self._idle = idle_seconds
        self._warm: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self.loading = 0.0

    def voiced(self, pcm: Pcm) -> Sequence[tuple[int, int]]:
        """Spans of samples in which somebody speaks, in order."""
        return self._import("whisper").voiced(pcm)  # type: ignore[no-any-return]

    def language_of(self, model: str, pcm: Pcm) -> tuple[str, float]:
        """The language of up to 30 s of speech, and how sure that is."""
        with self._lock:
            return self._load("whisper", "Whisper", model).language_of(pcm)  # type: ignore[no-any-return]

    def hear(self, model: str, pcm: Pcm, hearing: Hearing) -> Heard:
        """Speech as words with times."""
        with self._lock:
            return self._load("whisper", "Whisper", model).hear(pcm, hearing)  # type: ignore[no-any-return]

    def read(self, model: str, picture: Picture, side: int, languages: Sequence[str] = ()) -> Sequence[Line]:
        """The lines of text in a picture."""
        with self._lock:
            if model == _TESSERACT:
                return self._import("nets.tesseract").Tesseract().read(picture, languages)  # type: ignore[no-any-return]
            return self._load("nets.text", "Reader", model).read(picture, side)  # type: ignore[no-any-return]

    def things(self, model: str, picture: Picture, least: float) -> Sequence[Thing]:
        """Things of known classes with at least that confidence, surest first."""
        with self._lock:
            return self._load("nets.objects", "Objects", model).find(picture, least)  # type: ignore[no-any-return]

    def faces(self, model: str, picture: Picture, least: float, side: int) -> Sequence[Face]:
        """Faces with at least that confidence, surest first."""
        with self._lock:
            return self._load("nets.faces", "Faces", model).find(picture, least, side)  # type: ignore[no-any-return]

    def places(self, model: str, picture: Picture, most: int) -> Sequence[tuple[str, float]]:
        """The likeliest places with their shares of certainty, surest first."""
        with self._lock:
            return self._load("nets.places", "Places", model).guess(picture, most)  # type: ignore[no-any-return]

    def nearness(self, model: str, picture: Picture, *, inverse: bool) -> NDArray[np.float32]:
        """How near each part of a picture is."""
        with self._lock:
            return self._load("nets.depth", "Depth", model).nearness(picture, inverse=inverse)  # type: ignore[no-any-return]

    def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One direction of length one for each sentence."""
        with self._lock:
            return self._load("nets.sentences", "Sentences", model).embed(texts)  # type: ignore[no-any-return]

    def rest(self) -> None:
        """Unload every model; the next question loads it again."""
        with self._lock:
            self._warm.clear()
            if self._timer:
                self._timer.cancel()

    def _load(self, room: str, name: str, model: str) -> Any:
        if self._timer:
            self._timer.cancel()
        if model not in self._warm:
            code, begun = self._import(room), time.monotonic()
            self._warm[model] = getattr(code, name)(self._store.find(model), self._threads)
            self.loading += time.monotonic() - begun
        self._timer = threading.Timer(self._idle, self.rest)
        self._timer.daemon = True
        self._timer.start()
        return self._warm[model]

    def _import(self, room: str) -> ModuleType:
        begun = time.monotonic()
        code = _imported(room)
        self.loading += time.monotonic() - begun
        return code


def _imported(room: str) -> ModuleType:
    """Imported on first use: it takes a second and 100 MB that most processes never need."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    logging.getLogger("faster_whisper").setLevel(logging.ERROR)
    try:
        return import_module(f"rushes.engines.{room}")
    except ModuleNotFoundError as e:
        raise ModelMissing(f"{e.name} is not installed", "Install it with: pip install 'rushes[see]'") from e
