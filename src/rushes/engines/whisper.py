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
_SHORT = 10 * _FRAMES
_LONGEST = 30 * _FRAMES  # what the encoder takes at once


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

    def encode(self, features: Any) -> Any:
        """The encoder's output; the encoder costs a third of a window (1.6 of 4.5 CPU-seconds, base)."""
        if self._encoded is None or not np.array_equal(self._encoded[0], features):
            self._encoded = (features, super().encode(features))
        return self._encoded[1]

    def language_of(self, pcm: Pcm) -> tuple[str, float]:
        """The language and how sure that is.

        Up to 10 s in a short context, which costs 0.2 CPU-seconds (base); more in the full one, which `hear` shares.
        """
        frames = 5 * _FRAMES * math.ceil(len(pcm) / RATE / 5)
        features = self.feature_extractor(pcm)[..., :-1]
        return self._language(pad_or_trim(features, frames if frames <= _SHORT else _LONGEST))

    def hear(self, pcm: Pcm, hearing: Hearing) -> Heard:
        """Words with times of up to 30 s of sound."""
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
