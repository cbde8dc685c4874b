"""How fast a model runs on this machine, on a synthetic picture or sound: for choosing, not for quality."""

import time
from collections.abc import Callable

import numpy as np

from rushes.engines.models.manifest import Model
from rushes.engines.models.store import ModelSpeed
from rushes.engines.port import RATE, DecodingOptions, Engine, Pcm, Picture

_REPEATS = 3
_SECONDS = 10


def benchmark(engine: Engine, model: Model) -> ModelSpeed | None:
    """Run a model a few times; None where there is no benchmark for its capability."""
    found = _case(engine, model)
    if found is None:
        return None
    subject, run = found
    before = engine.loading
    run()
    loading, taken = engine.loading - before, []
    for _ in range(_REPEATS):
        begun = time.process_time()
        run()
        taken.append(time.process_time() - begun)
    return ModelSpeed(model.id, subject, round(min(taken), 4), round(loading, 2))


def _case(engine: Engine, model: Model) -> tuple[str, Callable[[], object]] | None:
    picture, frame = _picture(), "a 720p frame"
    return {
        "speech": (f"{_SECONDS} s of sound", lambda: engine.transcribe(model.id, _sound(), DecodingOptions("en"))),
        "text": (frame, lambda: engine.read_text(model.id, [picture], 960)),
        "objects": (frame, lambda: engine.detect_objects(model.id, [picture], 0.4)),
        "faces": (frame, lambda: engine.detect_faces(model.id, [picture], 0.7, 960)),
        "places": (frame, lambda: engine.classify_place(model.id, [picture], 5)),
        "depth": (frame, lambda: engine.inverse_depth(model.id, [picture], inverse=False)),
        "sentences": ("a sentence", lambda: engine.embed(model.id, ["it was the best of times"])),
    }.get(model.capability)


def _picture() -> Picture:
    """Stripes and squares: no text and no objects, but not plain."""
    y, x = np.mgrid[0:720, 0:1280]
    return np.stack([(x // 8 * 40) % 256, (y // 24 * 90) % 256, (x * y // 5000) % 256], axis=2).astype(np.uint8)


def _sound() -> Pcm:
    """A hum, amplitude-modulated at 4 Hz."""
    t = np.arange(_SECONDS * RATE) / RATE
    return np.asarray(0.2 * np.sin(2 * np.pi * 140 * t) * (1 + np.sin(8 * np.pi * t)), np.float32)
