"""The stub engine: invents the same words for the same sound or picture, for tests without weights."""

import os
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rushes.domain.errors import Refused
from rushes.engines.port import RATE, Face, Heard, Hearing, Line, Pcm, Phrase, Picture, Thing, Word

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
            raise Refused("the stub engine returns invented answers", f"It is for tests only, which set {FLAG}=1.")

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

    def read(self, model: str, picture: Picture, side: int, languages: Sequence[str] = ()) -> Sequence[Line]:  # noqa: ARG002
        """A word in the middle of every picture that is not plain."""
        return [Line(word, 0.96, _corners(picture)) for word in _seen(picture)]

    def things(self, model: str, picture: Picture, least: float) -> Sequence[Thing]:  # noqa: ARG002
        """A thing in the middle of every picture that is not plain."""
        return [Thing(word, 0.9, _corners(picture)[0] + _corners(picture)[2]) for word in _seen(picture)]

    def faces(self, model: str, picture: Picture, least: float, side: int) -> Sequence[Face]:  # noqa: ARG002
        """A face in the middle of every picture that is not plain; whose it is depends on the picture."""
        corners = _corners(picture)
        middle = tuple((a + b) / 2 for a, b in zip(corners[0], corners[2], strict=True))
        ways = [tuple(float(w == word) for w in _WORDS) for word in _seen(picture)]
        return [Face(0.9, corners[0] + corners[2], (*corners, middle), way) for way in ways]

    def places(self, model: str, picture: Picture, most: int) -> Sequence[tuple[str, float]]:  # noqa: ARG002
        """A place for every picture that is not plain."""
        return [(word, 0.9) for word in _seen(picture)]

    def nearness(self, model: str, picture: Picture, *, inverse: bool) -> NDArray[np.float32]:  # noqa: ARG002
        """What is bright and low is near."""
        rows, columns = (np.linspace(0, n - 1, 64).astype(np.intp) for n in picture.shape[:2])
        light = picture[np.ix_(rows, columns)].mean(axis=2, dtype=np.float64) / 255
        return np.asarray(light + np.linspace(0, 1, 64)[:, None], np.float32)

    def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:  # noqa: ARG002
        """Sentences with the same words point the same way."""
        words = [[zlib.crc32(w.encode()) % 64 for w in (*t.lower().split(), "")] for t in texts]
        rows = np.array([np.bincount(w, minlength=64) for w in words], np.float32).reshape(-1, 64)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def _word(self, pcm: Pcm, at: int) -> Word:
        sound = np.round(pcm[at : at + _WORD] * 128).astype(np.int8).tobytes()
        return Word(" " + _WORDS[zlib.crc32(sound) % len(_WORDS)], at, at + _WORD, 0.9)


def _seen(picture: Picture) -> list[str]:
    """The word of a picture, by what is left of it in eight by eight steps of sixteen greys."""
    rows, columns = (np.linspace(0, n - 1, 8).astype(np.intp) for n in picture.shape[:2])
    few = picture[np.ix_(rows, columns)].mean(axis=2) // 16
    return [_WORDS[zlib.crc32(few.astype(np.uint8).tobytes()) % len(_WORDS)]] if np.ptp(few) > 1 else []


def _corners(picture: Picture) -> tuple[tuple[float, float], ...]:
    height, width = picture.shape[:2]
    left, top, right, bottom = width / 4, height / 4, width * 3 / 4, height * 3 / 4
    return (left, top), (right, top), (right, bottom), (left, bottom)
