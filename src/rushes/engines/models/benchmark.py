"""How fast a model runs on this machine, on a synthetic picture or sound: for choosing, not for quality."""

import time
from collections.abc import Callable

import numpy as np

from rushes.engines.models.manifest import Model
from rushes.engines.models.store import ModelSpeed
from rushes.engines.port import RATE, DecodingOptions, Engine, Pcm, Picture

_REPEATS = 3
_SECONDS = 10
CAPABILITIES = ("speech", "text", "objects", "faces", "places", "depth", "sentences", "pictures")


def benchmark(engine: Engine, model: Model, device: str = "") -> ModelSpeed | None:
    """Run a model a few times; None where there is no benchmark for its capability."""
    if model.capability not in CAPABILITIES:
        return None
    subject, run = trial_call(engine, model.capability, model.id)
    before = engine.loading
    run()
    loading, cpu, wall = engine.loading - before, [], []
    for _ in range(_REPEATS):
        begun, began = time.process_time(), time.monotonic()
        run()
        cpu.append(time.process_time() - begun)
        wall.append(time.monotonic() - began)
    return ModelSpeed(model.id, subject, device, round(min(cpu), 4), round(min(wall), 4), round(loading, 2))


def trial_call(engine: Engine, capability: str, model: str) -> tuple[str, Callable[[], object]]:
    """What a model of a capability can be tried with, and how. Raises KeyError: there is no such capability."""
    picture, frame = _picture(), "a 720p frame"
    calls: dict[str, tuple[str, Callable[[], object]]] = {
        "speech": (f"{_SECONDS} s of sound", lambda: engine.transcribe(model, _sound(), DecodingOptions("en"))),
        "text": (frame, lambda: engine.read_text(model, [picture], 960)),
        "objects": (frame, lambda: engine.detect_objects(model, [picture], 0.4)),
        "faces": (frame, lambda: engine.detect_faces(model, [picture], 0.7, 960)),
        "places": (frame, lambda: engine.classify_place(model, [picture], 5)),
        "depth": (frame, lambda: engine.inverse_depth(model, [picture], inverse=None)),
        "sentences": ("a sentence", lambda: engine.embed(model, ["it was the best of times"])),
        "pictures": (frame, lambda: engine.embed_pictures(model, [picture])),
    }
    return calls[capability]


def _picture() -> Picture:
    """Stripes and squares: no text and no objects, but not plain."""
    y, x = np.mgrid[0:720, 0:1280]
    return np.stack([(x // 8 * 40) % 256, (y // 24 * 90) % 256, (x * y // 5000) % 256], axis=2).astype(np.uint8)


def _sound() -> Pcm:
    """A hum, amplitude-modulated at 4 Hz."""
    t = np.arange(_SECONDS * RATE) / RATE
    return np.asarray(0.2 * np.sin(2 * np.pi * 140 * t) * (1 + np.sin(8 * np.pi * t)), np.float32)
