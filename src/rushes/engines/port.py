"""Engines: where inference runs. Numbers in, words, times and places out; no files of ours, no jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
Pcm = NDArray[np.float32]  # mono, RATE samples a second
Picture = NDArray[np.uint8]  # height x width x RGB


@dataclass(frozen=True, slots=True)
class Word:
    """A spoken word with the space before it, if its script has one; times in samples of the pcm asked about."""

    text: str
    start: int
    end: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Phrase:
    """What a speech model says in one breath, with the signs by which invention is noticed."""

    words: tuple[Word, ...]
    confidence: float
    no_speech: float
    compression: float  # how well the text packs: a loop packs too well


@dataclass(frozen=True, slots=True)
class Heard:
    """The answer for one window of sound."""

    language: str
    language_confidence: float
    phrases: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class Hearing:
    """How a window is to be decoded."""

    language: str | None = None  # None: find out
    beam: int = 5
    temperature: float = 0.0
    no_repeat: int = 0  # forbid repeating n-grams of this size
    repetition_penalty: float = 1.0
    full: bool = False  # give the model all the context it can take, whatever that costs


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text in a picture; its corners in pixels from the top left, in the order in which it is read."""

    text: str
    confidence: float
    corners: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing seen in a picture; left, top, right, bottom in pixels."""

    label: str
    confidence: float
    box: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Face:
    """A face, where eyes, nose and mouth are, and the direction (of length one) that says whose it is."""

    confidence: float
    box: tuple[float, ...]
    points: tuple[tuple[float, ...], ...]
    embedding: tuple[float, ...]


class Hears(Protocol):
    """The half of an engine that listens; models are named by their id in the manifest, or by a path."""

    def voiced(self, pcm: Pcm) -> Sequence[tuple[int, int]]:
        """Spans of samples in which somebody speaks, in order."""

    def language_of(self, model: str, pcm: Pcm) -> tuple[str, float]:
        """The language of up to 30 s of speech, and how sure that is (0 to 1).

        Raises:
            ModelMissing: the weights are not on this machine.
        """

    def hear(self, model: str, pcm: Pcm, hearing: Hearing) -> Heard:
        """Speech as words with times.

        Raises:
            ModelMissing: the weights are not on this machine.
        """


class Sees(Protocol):
    """The half of an engine that looks and reads."""

    def read(self, model: str, picture: Picture, side: int, languages: Sequence[str] = ()) -> Sequence[Line]:
        """The lines of text in a picture, looked for in one whose longer side is `side` at most.

        Raises:
            ModelMissing: the weights are not on this machine.
        """

    def things(self, model: str, picture: Picture, least: float) -> Sequence[Thing]:
        """Things of known classes with at least that confidence, surest first.

        Raises:
            ModelMissing: the weights are not on this machine.
        """

    def faces(self, model: str, picture: Picture, least: float, side: int) -> Sequence[Face]:
        """Faces with at least that confidence, surest first; small ones in a picture `side` pixels long.

        Raises:
            ModelMissing: the weights are not on this machine.
        """

    def places(self, model: str, picture: Picture, most: int) -> Sequence[tuple[str, float]]:
        """The likeliest places with their shares of certainty, surest first.

        Raises:
            ModelMissing: the weights are not on this machine.
        """

    def nearness(self, model: str, picture: Picture, *, inverse: bool) -> NDArray[np.float32]:
        """How near each part of a picture is, in the size of the net; `inverse`: what the net says is larger if nearer.

        Raises:
            ModelMissing: the weights are not on this machine.
        """

    def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One direction of length one for each sentence: those that mean alike point alike.

        Raises:
            ModelMissing: the weights are not on this machine.
        """


class Engine(Hears, Sees, Protocol):
    """Where inference runs."""

    loading: float  # seconds spent on loading models so far: no part of the work, so no part of its rate
