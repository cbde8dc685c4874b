"""The stub engine: made-up answers without weights, always the same for the same input; for trials."""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rushes.engines import port
from rushes.engines.images import pixels
from rushes.engines.port import RATE, Pcm, Phrase, Picture, Pictures, TextLine

_WORDS = ("river", "stone", "lamp", "winter", "paper", "green", "seven", "bridge", "salt", "apple", "garden", "north")
_HOP = RATE // 50
_WORD_SAMPLES = RATE * 2 // 5
_LOUDNESS = 0.01


class StubEngine:
    """Takes loud audio for speech; each 0.4 s of it is a word chosen by checksum."""

    loading, batch = 0.0, port.BATCH

    def detect_speech(self, pcm: Pcm) -> Sequence[tuple[int, int]]:
        """Spans of samples that are loud, less than 0.3 s apart."""
        steps = pcm[: len(pcm) // _HOP * _HOP].reshape(-1, _HOP)
        spans: list[tuple[int, int]] = []
        for n in np.flatnonzero(np.abs(steps).max(axis=1, initial=0.0) > _LOUDNESS):
            start, end = int(n) * _HOP, (int(n) + 1) * _HOP
            if spans and start - spans[-1][1] < 15 * _HOP:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
        return spans

    def detect_language(self, model: str, pcm: Pcm) -> tuple[str, float]:
        """Always English."""
        return "en", 1.0

    def transcribe(self, model: str, pcm: Pcm, options: port.DecodingOptions) -> port.Transcription:
        """A word for every 0.4 s of loud audio."""
        starts = (at for a, b in self.detect_speech(pcm) for at in range(a, b - _WORD_SAMPLES + 1, _WORD_SAMPLES))
        words = tuple(self._word(pcm, at) for at in starts)
        return port.Transcription(options.language or "en", 1.0, (Phrase(words, 0.9, 0.0, 1.0),) if words else ())

    def read_text(
        self, model: str, pictures: Pictures, side: int, languages: Sequence[str] = (), *, use_gpu: bool = True
    ) -> list[Sequence[TextLine]]:
        """A word in the middle of every picture that is not plain."""
        return [[TextLine(w, 0.96, _corners(p)) for w in _words_in(p)] for p in map(pixels, pictures)]

    def detect_objects(self, model: str, pictures: Pictures, least: float) -> list[Sequence[port.Detection]]:
        """An object in the middle of every picture that is not plain."""
        return [
            [port.Detection(word, 0.9, _corners(p)[0] + _corners(p)[2]) for word in _words_in(p)]
            for p in map(pixels, pictures)
        ]

    def detect_faces(self, model: str, pictures: Pictures, least: float, side: int) -> list[Sequence[port.Face]]:
        """A face in the middle of every picture that is not plain; whose it is depends on the picture."""
        return [_faces(picture) for picture in map(pixels, pictures)]

    def classify_place(self, model: str, pictures: Pictures, most: int) -> list[Sequence[tuple[str, float]]]:
        """A scene class for every picture that is not plain."""
        return [[(word, 0.9) for word in _words_in(picture)] for picture in map(pixels, pictures)]

    def inverse_depth(self, model: str, pictures: Pictures, *, inverse: bool | None) -> list[NDArray[np.float32]]:
        """Bright and low parts are near."""
        return [_depth(picture) for picture in map(pixels, pictures)]

    def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Bag-of-words vectors."""
        words = [[zlib.crc32(w.encode()) % 64 for w in (*t.lower().split(), "")] for t in texts]
        rows = np.array([np.bincount(w, minlength=64) for w in words], np.float32).reshape(-1, 64)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def embed_pictures(self, model: str, pictures: Pictures) -> NDArray[np.float32]:
        """Those of the words of the pictures."""
        return self.embed(model, [" ".join(_words_in(picture)) for picture in map(pixels, pictures)])

    def embed_captions(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Bag-of-words vectors."""
        return self.embed(model, texts)

    def _word(self, pcm: Pcm, at: int) -> port.Word:
        sound = np.round(pcm[at : at + _WORD_SAMPLES] * 128).astype(np.int8).tobytes()
        return port.Word(" " + _WORDS[zlib.crc32(sound) % len(_WORDS)], at, at + _WORD_SAMPLES, 0.9)


def _faces(picture: Picture) -> list[port.Face]:
    corners = _corners(picture)
    middle = tuple((a + b) / 2 for a, b in zip(corners[0], corners[2], strict=True))
    embeddings = [tuple(float(w == word) for w in _WORDS) for word in _words_in(picture)]
    box, points = corners[0] + corners[2], (*corners, middle)
    return [port.Face(0.9, box, points, embedding, 100.0) for embedding in embeddings]


def _depth(picture: Picture) -> NDArray[np.float32]:
    rows, columns = (np.linspace(0, n - 1, 64).astype(np.intp) for n in picture.shape[:2])
    light = picture[np.ix_(rows, columns)].mean(axis=2, dtype=np.float64) / 255
    return np.asarray(light + np.linspace(0, 1, 64)[:, None], np.float32)


def _words_in(picture: Picture) -> list[str]:
    """The word of a picture, by the checksum of its thumbnail (8 x 8, sixteen greys)."""
    rows, columns = (np.linspace(0, n - 1, 8).astype(np.intp) for n in picture.shape[:2])
    few = picture[np.ix_(rows, columns)].mean(axis=2) // 16
    return [_WORDS[zlib.crc32(few.astype(np.uint8).tobytes()) % len(_WORDS)]] if np.ptp(few) > 1 else []


def _corners(picture: Picture) -> tuple[tuple[float, float], ...]:
    height, width = picture.shape[:2]
    left, top, right, bottom = width / 4, height / 4, width * 3 / 4, height * 3 / 4
    return (left, top), (right, top), (right, bottom), (left, bottom)
