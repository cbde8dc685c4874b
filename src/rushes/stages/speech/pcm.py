"""The PCM audio of a whole video (16 kHz, mono, 16 bit), read by range."""

import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rushes.engines.port import Pcm


@dataclass(frozen=True, slots=True)
class PcmFile:
    """A WAV file and how many samples it holds."""

    path: Path
    samples: int

    def read(self, start: int, end: int) -> Pcm:
        """Samples as floats from -1 to 1, clipped to the file."""
        start, end = max(0, start), min(end, self.samples)
        with wave.open(str(self.path), "rb") as w:
            w.setpos(min(start, self.samples))
            raw = w.readframes(max(0, end - start))
        return np.frombuffer(raw, "<i2").astype(np.float32) / np.float32(32768)


def open_pcm(path: Path) -> PcmFile:
    """The pcm artifact, to be read by range."""
    with wave.open(str(path), "rb") as w:
        return PcmFile(path, w.getnframes())
