"""What the tests of speech share: weights fetched once, sounds, and stages run outside of any job."""

import functools
import wave
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from rushes.domain.keys import JSON
from rushes.domain.result import Manifest, Provenance
from rushes.domain.span import Span
from rushes.domain.video import AudioTrack, Fingerprint, VideoFacts, VideoTrack
from rushes.engines.local import LocalEngine
from rushes.engines.models.store import ModelStore
from rushes.engines.port import RATE, DecodingOptions, Pcm, Phrase, SpeechEngine, Transcription, Word
from rushes.model_settings import models_folder
from rushes.settings import load
from rushes.stages.port import Input, Stage, TaskBlobs, Work
from tests.memory_blobs import MemoryBlobs

ROOT = Path(__file__).parents[2]
JFK = ROOT / "scripts" / "demo_media" / "jfk.flac"
TWO_LANGUAGES = ROOT / "tests" / "media" / "english_then_german.mp3"
JFK_TEXT = "and so my fellow americans ask not what your country can do for you ask what you can do for your country"
JFK_WORDS = JFK_TEXT.split()
PROVENANCE = Provenance("run", "stage", "rushes", "0", "balanced", "", "", 1)


@functools.cache
def engine() -> LocalEngine:
    """The real engine, with the real weights."""
    store = ModelStore(models_folder(load().settings))
    store.pull(["whisper-tiny.en", "whisper-base"])
    return LocalEngine(store, threads=2)


def models() -> ModelStore:
    return engine()._store


@functools.cache
def pcm_of(path: Path) -> Pcm:
    """A sound file as the engine hears it."""
    resampler = av.AudioResampler("s16", "mono", RATE)
    with av.open(str(path)) as container:
        frames = [f for frame in container.decode(audio=0) for f in resampler.resample(frame)]
    frames += resampler.resample(None)
    return np.concatenate([f.to_ndarray()[0] for f in frames]).astype(np.float32) / np.float32(32768)


def write_wav(path: Path, pcm: Pcm) -> Path:
    with wave.open(str(path), "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(RATE)
        w.writeframes(np.round(np.clip(pcm, -1, 1) * 32767).astype("<i2").tobytes())
    return path


def sound_facts(seconds: float, start: Fraction = Fraction(0), video_seconds: float | None = None) -> VideoFacts:
    """A film with one track of sound and perhaps pictures, both beginning at `start`."""
    at = int(start * RATE)
    track = AudioTrack(0, "pcm_s16le", RATE, 1, Fraction(1, RATE), at, at + int(seconds * RATE))
    base = Fraction(1, 1000)
    first = int(start / base)
    video = None
    if video_seconds:
        end = first + int(video_seconds * 1000)
        video = VideoTrack(1, "h264", 320, 240, base, first, end, 1, (first,), Fraction(25))
    return VideoFacts("ab" * 32, 1, "mov", video, (track,))


def make_work(
    stage: Stage,
    facts: VideoFacts,
    scratch: Path,
    *,
    inputs: Mapping[str, Sequence[Input]] | None = None,
    blobs: TaskBlobs | None = None,
    source: Path | None = None,
    span: Span | None = None,
    chunk: int | None = None,
    engine: SpeechEngine | None = None,
    models: Mapping[str, str] | None = None,
    options: Mapping[str, JSON] | None = None,
) -> Work:
    """A task as a slot would give it to a stage."""
    seen = source.stat() if source else None
    blind: Any = engine or FakeEngine()
    return Work(
        owner="me",
        stage=stage.spec.name,
        chunk=chunk,
        span=span,
        options={**stage.spec.options, **(options or {})},
        models=models or {},
        wanted=frozenset(stage.spec.outputs),
        inputs_by_name={name: tuple(found) for name, found in (inputs or {}).items()},
        source=source,
        fingerprint=Fingerprint(str(source), seen.st_size, seen.st_mtime_ns, 0) if seen else None,
        scratch=scratch,
        blobs=blobs or MemoryBlobs(),
        engine=blind,
        seed=0,
        _facts=facts,
    )


def results(work: Work) -> dict[str, tuple[Input]]:
    """What a stage saved, as the next stage is given it."""
    out = {}
    for name, saved in work.saved.items():
        manifest = Manifest("key", name, tuple(saved.artifacts), PROVENANCE, count=saved.count, facts=saved.facts)
        out[f"{work.stage}.{name}"] = (Input(manifest, work.owner, work.blobs),)
    return out


def words(text: str, start: float = 0.0, step: float = 0.4, confidence: float = 0.9) -> tuple[Word, ...]:
    """Words at an even pace, with the space before them as a model gives it."""
    return tuple(
        Word(
            f" {w}",
            round((start + n * step) * RATE),
            round((start + (n + 0.8) * step) * RATE),
            confidence,
        )
        for n, w in enumerate(text.split(" "))
    )


def transcription(
    *said: tuple[Word, ...], confidence: float = 0.9, no_speech_prob: float = 0.0, packs: float = 1.2
) -> Transcription:
    return Transcription("en", 0.99, tuple(Phrase(w, confidence, no_speech_prob, packs) for w in said))


class FakeEngine:
    """Answers what it is told, in turn, and remembers what it was asked; the last answer stays."""

    loading, batch = 0.0, 8

    def __init__(self, *answers: Transcription, languages: Sequence[tuple[str, float]] = (("en", 0.99),)) -> None:
        self._answers = list(answers) or [transcription()]
        self._languages = list(languages)
        self.asked: list[tuple[str, DecodingOptions]] = []
        self.lengths: list[int] = []

    def detect_speech(self, pcm: Pcm) -> list[tuple[int, int]]:
        return [(0, len(pcm))] if len(pcm) else []

    def detect_language(self, model: str, pcm: Pcm) -> tuple[str, float]:
        self.lengths.append(len(pcm))
        return self._languages.pop(0) if len(self._languages) > 1 else self._languages[0]

    def transcribe(self, model: str, pcm: Pcm, options: DecodingOptions) -> Transcription:
        self.asked.append((model, options))
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
