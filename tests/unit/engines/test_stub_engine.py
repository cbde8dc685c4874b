"""The stub engine: the same sound gives the same words."""

import numpy as np

from rushes.engines.port import RATE, DecodingOptions, Pcm
from rushes.engines.stub import StubEngine


def noise(seconds: float, seed: int = 1) -> Pcm:
    return (np.random.default_rng(seed).standard_normal(int(seconds * RATE)) * 0.1).astype(np.float32)


def test_the_stub_says_the_same_again_and_nothing_in_silence() -> None:
    sound = np.concatenate([noise(2), np.zeros(RATE, np.float32), noise(2, seed=2)])
    first, second = (
        StubEngine().transcribe("any", sound, DecodingOptions()),
        StubEngine().transcribe("other", sound, DecodingOptions()),
    )
    assert first == second
    assert len(first.phrases[0].words) == 10
    assert len(StubEngine().detect_speech(sound)) == 2
    assert StubEngine().transcribe("any", np.zeros(RATE, np.float32), DecodingOptions()).phrases == ()
