"""The engine port: where inference runs. Arrays in, detections out; it knows no files of ours and no jobs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rushes.domain.errors import AnswerPending

T = TypeVar("T")
RATE = 16_000
BATCH = 8  # pictures that a model is given at a time: about 2 MB
Pcm = NDArray[np.float32]  # mono, RATE samples a second
Picture = NDArray[np.uint8]  # height x width x RGB
Jpeg = bytes  # a picture as the frame pack holds it: sent and decoded where the model is
Pictures = Sequence[Picture | Jpeg]


@dataclass(frozen=True, slots=True)
class Word:
    """A spoken word, with a leading space where its script has one; times in samples of the given pcm."""

    text: str
    start: int
    end: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Phrase:
    """A segment of a speech model's output, with the figures by which hallucination is noticed."""

    words: tuple[Word, ...]
    confidence: float
    no_speech_prob: float
    compression_ratio: float  # of the text by zlib: repetition compresses too well


@dataclass(frozen=True, slots=True)
class Transcription:
    """What a speech model makes of one window of audio."""

    language: str
    language_confidence: float
    phrases: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """How a window is decoded; names as in Whisper."""

    language: str | None = None  # None: detect
    beam_size: int = 5
    temperature: float = 0.0
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0
    full_context: bool = False  # encode all 30 s, not only what the audio fills


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text in a picture; corners in pixels, clockwise from the top left of the text."""

    text: str
    confidence: float
    corners: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Detection:
    """An object in a picture; left, top, right, bottom in pixels."""

    label: str
    confidence: float
    box: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Face:
    """A face with its five landmarks (eyes first) and its embedding (of length one)."""

    confidence: float
    box: tuple[float, ...]
    points: tuple[tuple[float, ...], ...]
    embedding: tuple[float, ...]
    sharpness: float  # variance of the Laplacian of the aligned face: below 10 it is a blur


class SpeechEngine(Protocol):
    """Speech models, named by their id in the manifest or by a path.

    Every method raises ModelMissing if the weights are not on this machine.
    """

    def detect_speech(self, pcm: Pcm) -> Sequence[tuple[int, int]]:
        """Spans of samples with speech, in order (voice activity detection)."""

    def detect_language(self, model: str, pcm: Pcm) -> tuple[str, float]:
        """The language of up to 30 s of speech, and its probability."""

    def transcribe(self, model: str, pcm: Pcm, options: DecodingOptions) -> Transcription:
        """The words of up to 30 s of speech, with times."""


class Engine(SpeechEngine, Protocol):
    """Where inference runs: speech, pictures and sentences, under the same rule.

    Pictures come in batches; the answers are in their order, and are the same as one by one.
    """

    loading: float  # seconds spent on loading models so far; estimates leave them out
    batch: int  # pictures that it is best given at a time

    def read_text(
        self, model: str, pictures: Pictures, side: int, languages: Sequence[str] = (), *, use_gpu: bool = True
    ) -> list[Sequence[TextLine]]:
        """The lines of text in each picture, which is scaled down to `side` pixels on its longer side first.

        Without `use_gpu` on the processor, also where there is a GPU.
        """

    def detect_objects(self, model: str, pictures: Pictures, least: float) -> list[Sequence[Detection]]:
        """Objects with at least that confidence, most confident first."""

    def detect_faces(self, model: str, pictures: Pictures, least: float, side: int) -> list[Sequence[Face]]:
        """Faces with at least that confidence, most confident first; small ones are searched at `side` pixels."""

    def classify_place(self, model: str, pictures: Pictures, most: int) -> list[Sequence[tuple[str, float]]]:
        """The `most` likeliest scene classes with their probabilities, likeliest first."""

    def inverse_depth(self, model: str, pictures: Pictures, *, inverse: bool | None) -> list[NDArray[np.float32]]:
        """A map of inverse depth in the size of the net; `inverse`: the net gives it already (None: it says)."""

    def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One embedding of length one for each sentence."""

    def embed_pictures(self, model: str, pictures: Pictures) -> NDArray[np.float32]:
        """One embedding of length one for each picture."""

    def embed_captions(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One embedding of length one for each text, near those of the pictures that show it."""


class AsynchronousEngine(Protocol):
    """An engine that is asked in one attempt of a task and answers in a later one; calls as `wire` packs them."""

    def answer(self, task: str, fence: int, capability: str, call: bytes) -> bytes:
        """The answer to a call of a task, which is asked unless it was before.

        Raises:
            AnswerPending: it is not there yet; the task is to be tried again.
            InferenceFailed: the engine failed, and says why.
            EngineAway: it cannot be asked now.
        """

    def forget(self, name: str) -> None:
        """The answer to the call of that name (`call_name`) is needed no more."""

    def task_at(self, bucket: str, key: str) -> str:
        """The task that waits for what came to a key of a bucket; empty if none does."""


def answered(calls: Iterable[Callable[[], T]]) -> Iterator[T]:
    """What each call answers, in order.

    If an asynchronous engine has not answered one of them, all others are still asked before AnswerPending is raised.
    """
    pending: AnswerPending | None = None
    for call in calls:
        try:
            answer = call()
        except AnswerPending as e:
            pending = pending or e
            continue
        if pending is None:
            yield answer
    if pending:
        raise pending
