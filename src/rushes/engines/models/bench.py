"""How fast a model answers on this machine, on a made picture or sound: for choosing, not for quality."""

import time
from collections.abc import Callable

import numpy as np

from rushes.engines.models.manifest import Model
from rushes.engines.models.store import Pace
from rushes.engines.port import RATE, Engine, Hearing, Pcm, Picture

_TIMES = 3
_SECONDS = 10


def bench(engine: Engine, model: Model) -> Pace | None:
    """Ask a model a few times; None where nobody asks it yet."""
    question = _question(engine, model)
    if question is None:
        return None
    asked, ask = question
    before = engine.loading
    ask()
    loading, taken = engine.loading - before, []
    for _ in range(_TIMES):
        begun = time.process_time()
        ask()
        taken.append(time.process_time() - begun)
    return Pace(model.id, asked, round(min(taken), 4), round(loading, 2))


def _question(engine: Engine, model: Model) -> tuple[str, Callable[[], object]] | None:
    picture, frame = _picture(), "a 720p frame"
    return {
        "speech": (f"{_SECONDS} s of sound", lambda: engine.hear(model.id, _sound(), Hearing("en"))),
        "text": (frame, lambda: engine.read(model.id, picture, 960)),
        "objects": (frame, lambda: engine.things(model.id, picture, 0.4)),
        "faces": (frame, lambda: engine.faces(model.id, picture, 0.7, 960)),
        "places": (frame, lambda: engine.places(model.id, picture, 5)),
        "sentences": ("a sentence", lambda: engine.embed(model.id, ["it was the best of times"])),
    }.get(model.capability)


def _picture() -> Picture:
    """Stripes and squares: neither text nor things, but not plain."""
    y, x = np.mgrid[0:720, 0:1280]
    return np.stack([(x // 8 * 40) % 256, (y // 24 * 90) % 256, (x * y // 5000) % 256], axis=2).astype(np.uint8)


def _sound() -> Pcm:
    """A hum that comes and goes, four times a second."""
    t = np.arange(_SECONDS * RATE) / RATE
    return np.asarray(0.2 * np.sin(2 * np.pi * 140 * t) * (1 + np.sin(8 * np.pi * t)), np.float32)
