"""The stub engine: the same sound gives the same words, and never outside of tests."""

import numpy as np
import pytest

from rushes.domain.errors import Refused
from rushes.engines.port import RATE, Hearing, Pcm
from rushes.engines.stub import StubEngine


def noise(seconds: float, seed: int = 1) -> Pcm:
    return (np.random.default_rng(seed).standard_normal(int(seconds * RATE)) * 0.1).astype(np.float32)


def test_the_stub_refuses_to_invent_outside_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUSHES_ALLOW_STUB", raising=False)
    with pytest.raises(Refused, match="invented"):
        StubEngine()


def test_the_stub_says_the_same_again_and_nothing_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSHES_ALLOW_STUB", "1")
    sound = np.concatenate([noise(2), np.zeros(RATE, np.float32), noise(2, seed=2)])
    first, second = StubEngine().hear("any", sound, Hearing()), StubEngine().hear("other", sound, Hearing())
    assert first == second
    assert len(first.phrases[0].words) == 10
    assert len(StubEngine().voiced(sound)) == 2
    assert StubEngine().hear("any", np.zeros(RATE, np.float32), Hearing()).phrases == ()
