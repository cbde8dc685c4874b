"""The local engine: models in this process, kept warm, unloaded when nobody asks; never on the network."""

import logging
import os
import threading
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from rushes.engines.models.store import ModelStore
from rushes.engines.port import Heard, Hearing, Pcm

_QUIET = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}


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
        return self._import().voiced(pcm)  # type: ignore[no-any-return]

    def language_of(self, model: str, pcm: Pcm) -> tuple[str, float]:
        """The language of up to 30 s of speech, and how sure that is."""
        with self._lock:
            return self._load(model).language_of(pcm)  # type: ignore[no-any-return]

    def hear(self, model: str, pcm: Pcm, hearing: Hearing) -> Heard:
        """Speech as words with times."""
        with self._lock:
            return self._load(model).hear(pcm, hearing)  # type: ignore[no-any-return]

    def rest(self) -> None:
        """Unload every model; the next question loads it again."""
        with self._lock:
            self._warm.clear()
            if self._timer:
                self._timer.cancel()

    def _load(self, model: str) -> Any:
        if self._timer:
            self._timer.cancel()
        if model not in self._warm:
            whisper, begun = self._import(), time.monotonic()
            self._warm[model] = whisper.Whisper(self._store.find(model), self._threads)
            self.loading += time.monotonic() - begun
        self._timer = threading.Timer(self._idle, self.rest)
        self._timer.daemon = True
        self._timer.start()
        return self._warm[model]

    def _import(self) -> ModuleType:
        begun = time.monotonic()
        whisper = _whisper()
        self.loading += time.monotonic() - begun
        return whisper


def _whisper() -> ModuleType:
    """Imported on first use: it takes a second and 100 MB that most processes never need."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    logging.getLogger("faster_whisper").setLevel(logging.ERROR)
    from rushes.engines import whisper  # noqa: PLC0415

    return whisper
