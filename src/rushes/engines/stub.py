"""The stub engine: invents the same words for the same sound, for tests without weights."""

import os
import zlib
from collections.abc import Sequence

import numpy as np

from rushes.domain.errors import Refused
from rushes.engines.port import RATE, Heard, Hearing, Pcm, Phrase, Word

FLAG = "RUSHES_ALLOW_STUB"
_WORDS = ("river", "stone", "lamp", "winter", "paper", "green", "seven", "bridge", "salt", "apple", "garden", "north")
_STEP = RATE // 50
_WORD = RATE * 2 // 5
_LOUD = 0.01


class StubEngine:
    """Deterministic and wrong: loud is speech, and every 0.4 s of it is a word chosen by the sound's checksum.

    Raises:
        Refused: not in a test; invented words must never be mistaken for a transcript.
    """

    loading = 0.0

    def __init__(self) -> None:
        if os.environ.get(FLAG) != "1":
            raise Refused("the stub engine invents its answers", f"It is for tests only, which set {FLAG}=1.")

    def voiced(self, pcm: Pcm) -> Sequence[tuple[int, int]]:
        """Spans of samples that are loud, less than 0.3 s apart."""
        steps = pcm[: len(pcm) // _STEP * _STEP].reshape(-1, _STEP)
        spans: list[tuple[int, int]] = []
        for n in np.flatnonzero(np.abs(steps).max(axis=1, initial=0.0) > _LOUD):
            start, end = int(n) * _STEP, (int(n) + 1) * _STEP
            if spans and start - spans[-1][1] < 15 * _STEP:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
        return spans

    def language_of(self, model: str, pcm: Pcm) -> tuple[str, float]:  # noqa: ARG002 - the port's shape
        """Always English."""
        return "en", 1.0

    def hear(self, model: str, pcm: Pcm, hearing: Hearing) -> Heard:  # noqa: ARG002 - the port's shape
        """A word for every 0.4 s of loud sound."""
        words = [self._word(pcm, at) for a, b in self.voiced(pcm) for at in range(a, b - _WORD + 1, _WORD)]
        return Heard(hearing.language or "en", 1.0, (Phrase(tuple(words), 0.9, 0.0, 1.0),) if words else ())

    def _word(self, pcm: Pcm, at: int) -> Word:
        sound = np.round(pcm[at : at + _WORD] * 128).astype(np.int8).tobytes()
        return Word(" " + _WORDS[zlib.crc32(sound) % len(_WORDS)], at, at + _WORD, 0.9)
