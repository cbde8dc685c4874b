"""Whisper in this process, by faster-whisper on CTranslate2; heavy to import, so only the local engine does."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.audio import pad_or_trim
from faster_whisper.vad import VadOptions, get_speech_timestamps

from rushes.engines.devices import Compute, whisper_options
from rushes.engines.port import RATE, DecodingOptions, Pcm, Phrase, Transcription, Word

_VAD_OPTIONS = VadOptions(min_silence_duration_ms=300, min_speech_duration_ms=100, speech_pad_ms=0)
_MEL_HZ = 100  # mel frames
_N_FRAMES = 30 * _MEL_HZ  # what the encoder was trained on: 1.35 CPU-seconds (base), of 20 s 0.6
_MIN_FRAMES = 10 * _MEL_HZ
_PADDING = 2 * _MEL_HZ  # of silence after the sound: 5 of 617 words wrong, clean to 6 dB of noise; 6 with all 30 s

_DECODING = ("beam_size", "temperature", "no_repeat_ngram_size", "repetition_penalty")
_THRESHOLDS = ("compression_ratio_threshold", "log_prob_threshold", "no_speech_threshold")


class Whisper(WhisperModel):  # type: ignore[misc]  # the library is untyped
    """A loaded model. It keeps its last encoding, which language detection and repeated decoding share."""

    def __init__(self, folder: Path, compute: Compute) -> None:
        super().__init__(
            str(folder),
            **whisper_options(compute),
            cpu_threads=compute.threads,
            num_workers=1,
            local_files_only=True,
        )
        self._encoded: tuple[Any, Any] | None = None
        self._full = False

    def encode(self, features: Any) -> Any:
        """The encoder's output for as much context as the sound needs."""
        features = features if self._full else features[..., : _frames_needed(features)]
        if self._encoded is None or not np.array_equal(self._encoded[0], features):
            self._encoded = (features, super().encode(np.ascontiguousarray(features)))
        return self._encoded[1]

    def window_language(self, pcm: Pcm) -> tuple[str, float]:
        """The language and its probability; 5 s take 0.1 CPU-seconds (base), an encoding of over 10 s is reused."""
        self._full = False
        few = 5 * _MEL_HZ * math.ceil(len(pcm) / RATE / 5)
        frames = few if few <= _MIN_FRAMES else _N_FRAMES
        return self._language(pad_or_trim(self.feature_extractor(pcm)[..., :-1], frames))

    def transcribe_window(self, pcm: Pcm, options: DecodingOptions) -> Transcription:
        """The words of up to 30 s of speech, with times."""
        self._full = options.full_context
        language, sure = options.language, 1.0
        if language is None:
            language, sure = self._language(pad_or_trim(self.feature_extractor(pcm)[..., :-1]))
        segments, _ = self.transcribe(
            pcm,
            language=language if self.model.is_multilingual else "en",
            word_timestamps=True,
            condition_on_previous_text=False,  # repetition must not carry over
            **{name: getattr(options, name) for name in _DECODING},
            **dict.fromkeys(_THRESHOLDS),  # the caller judges the output
        )
        return Transcription(language, sure, tuple(_phrase(s) for s in segments))

    def _language(self, features: Any) -> tuple[str, float]:
        if not self.model.is_multilingual:
            return "en", 1.0
        token, sure = self.model.detect_language(self.encode(features))[0][0]
        return token[2:-2], float(sure)


def _frames_needed(features: Any) -> int:
    """Frames of context: those of the audio (padding is zero) and a little silence, in whole seconds."""
    filled = np.flatnonzero(features.any(axis=0))
    frames = int(filled[-1]) + 1 if len(filled) else 0
    return min(_N_FRAMES, max(_MIN_FRAMES, _MEL_HZ * math.ceil(frames / _MEL_HZ) + _PADDING))


def detect_speech(pcm: Pcm) -> list[tuple[int, int]]:
    """Spans of samples with speech, by Silero VAD."""
    return [(int(s["start"]), int(s["end"])) for s in get_speech_timestamps(pcm, _VAD_OPTIONS)]


def _phrase(segment: Any) -> Phrase:
    words = tuple(Word(w.word, round(w.start * RATE), round(w.end * RATE), float(w.probability)) for w in segment.words)
    confidence = math.exp(min(0.0, segment.avg_logprob))
    return Phrase(words, confidence, float(segment.no_speech_prob), float(segment.compression_ratio))
