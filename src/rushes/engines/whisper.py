"""Whisper in this process, by faster-whisper on CTranslate2; heavy to import, so only the local engine does."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.audio import pad_or_trim
from faster_whisper.vad import VadOptions, get_speech_timestamps

from rushes.engines.port import RATE, Heard, Hearing, Pcm, Phrase, Word

_VOICE = VadOptions(min_silence_duration_ms=300, min_speech_duration_ms=100, speech_pad_ms=0)
_FRAMES = 100  # of features in a second
_LONGEST = 30 * _FRAMES  # what the encoder was trained on: 1.35 CPU-seconds (base), of 20 s 0.6
_LEAST = 10 * _FRAMES
_ROOM = 2 * _FRAMES  # of silence after the sound: 5 of 617 words wrong, clean to 6 dB of noise; 6 with all 30 s


class Whisper(WhisperModel):  # type: ignore[misc]  # the library is untyped
    """A loaded model. It keeps its last encoding: finding the language, hearing and hearing again share one."""

    def __init__(self, folder: Path, threads: int) -> None:
        super().__init__(
            str(folder),
            device="cpu",
            compute_type="int8",
            cpu_threads=threads,
            num_workers=1,
            local_files_only=True,
        )
        self._encoded: tuple[Any, Any] | None = None
        self._full = False

    def encode(self, features: Any) -> Any:
        """The encoder's output for as much context as the sound needs."""
        features = features if self._full else features[..., : _needed(features)]
        if self._encoded is None or not np.array_equal(self._encoded[0], features):
            self._encoded = (features, super().encode(np.ascontiguousarray(features)))
        return self._encoded[1]

    def language_of(self, pcm: Pcm) -> tuple[str, float]:
        """The language and how sure that is; 5 s take 0.1 CPU-seconds (base), more than 10 s are shared with `hear`."""
        self._full = False
        few = 5 * _FRAMES * math.ceil(len(pcm) / RATE / 5)
        return self._language(pad_or_trim(self.feature_extractor(pcm)[..., :-1], few if few <= _LEAST else _LONGEST))

    def hear(self, pcm: Pcm, hearing: Hearing) -> Heard:
        """Words with times of up to 30 s of sound."""
        self._full = hearing.full
        language, sure = hearing.language, 1.0
        if language is None:
            language, sure = self._language(pad_or_trim(self.feature_extractor(pcm)[..., :-1]))
        segments, _ = self.transcribe(
            pcm,
            language=language if self.model.is_multilingual else "en",
            beam_size=hearing.beam,
            temperature=hearing.temperature,
            no_repeat_ngram_size=hearing.no_repeat,
            repetition_penalty=hearing.repetition_penalty,
            word_timestamps=True,
            condition_on_previous_text=False,  # a loop must not carry over
            compression_ratio_threshold=None,  # what is wrong is judged by the caller, not skipped here
            log_prob_threshold=None,
            no_speech_threshold=None,
        )
        return Heard(language, sure, tuple(_phrase(s) for s in segments))

    def _language(self, features: Any) -> tuple[str, float]:
        if not self.model.is_multilingual:
            return "en", 1.0
        token, sure = self.model.detect_language(self.encode(features))[0][0]
        return token[2:-2], float(sure)


def _needed(features: Any) -> int:
    """Frames of context: those of the sound (what is filled up is zero) and a little silence, in whole seconds."""
    filled = np.flatnonzero(features.any(axis=0))
    frames = int(filled[-1]) + 1 if len(filled) else 0
    return min(_LONGEST, max(_LEAST, _FRAMES * math.ceil(frames / _FRAMES) + _ROOM))


def voiced(pcm: Pcm) -> list[tuple[int, int]]:
    """Spans of samples in which somebody speaks, by Silero."""
    return [(int(s["start"]), int(s["end"])) for s in get_speech_timestamps(pcm, _VOICE)]


def _phrase(segment: Any) -> Phrase:
    words = tuple(Word(w.word, round(w.start * RATE), round(w.end * RATE), float(w.probability)) for w in segment.words)
    return Phrase(
        words=words,
        confidence=math.exp(min(0.0, segment.avg_logprob)),
        no_speech=float(segment.no_speech_prob),
        compression=float(segment.compression_ratio),
    )
