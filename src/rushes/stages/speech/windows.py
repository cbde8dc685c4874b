"""Speech windows: where audio is cut for the speech model, once per video, so that no cut depends on the grid.

A window holds groups: ranges of speech with less than 0.8 s of silence inside. Speaker and language may change in
longer silences, which are not decoded. All positions are samples of the pcm.
"""

import wave
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from rushes.domain.keys import JSON
from rushes.domain.video import Footage
from rushes.engines.port import RATE, Pcm, answered
from rushes.media.open import open_bytes

Range = tuple[int, int]
Read = Callable[[int, int], Pcm]  # samples from, to
GROUP_GAP = RATE * 8 // 10
TARGET_LENGTH = RATE * 20  # 20 s beat 10 and 28: 0, 4 and 12 errors in 153 words
MAX_LENGTH = RATE * 28
_MAX_SILENCE = RATE * 4  # between groups of one window
_MIN_LENGTH = RATE * 10
_QUIET_LENGTH = RATE * 3 // 10
_PADDING = RATE // 4
_BLOCK = RATE * 600
_MARGIN = 512 * 312  # 10 s: the VAD is recurrent and settles by then; it steps by 512 samples


@dataclass(frozen=True, slots=True)
class PcmFile:
    """A WAV file and how many samples it holds."""

    file: Footage
    samples: int

    def read(self, start: int, end: int) -> Pcm:
        """Samples as floats from -1 to 1, clipped to the file."""
        start, end = max(0, start), min(end, self.samples)
        with open_bytes(self.file) as file, wave.open(file, "rb") as w:
            w.setpos(min(start, self.samples))
            raw = w.readframes(max(0, end - start))
        return np.frombuffer(raw, "<i2").astype(np.float32) / np.float32(32768)


def open_pcm(file: Footage) -> PcmFile:
    """The pcm artifact, to be read by range."""
    with open_bytes(file) as opened, wave.open(opened, "rb") as w:
        return PcmFile(file, w.getnframes())


@dataclass(frozen=True, slots=True)
class Window:
    """Speech that is decoded together: its groups, in order."""

    groups: tuple[Range, ...]

    @property
    def start(self) -> int:
        """Its first sample; the window belongs to the chunk that holds it."""
        return self.groups[0][0]

    @property
    def end(self) -> int:
        """Its last sample, exclusive."""
        return self.groups[-1][1]

    @property
    def length(self) -> int:
        """Samples to decode: the groups without the silence between them."""
        return sum(b - a for a, b in self.groups)

    def to_json(self) -> JSON:
        """For the windows artifact."""
        return {"start": self.start, "end": self.end, "groups": [list(g) for g in self.groups]}

    @staticmethod
    def from_json(doc: JSON) -> "Window":
        """The inverse of to_json."""
        return Window(tuple((int(a), int(b)) for a, b in doc["groups"]))


def speech_ranges(total: int, read: Read, detect_speech: Callable[[Pcm], Sequence[Range]]) -> list[Range]:
    """Ranges of speech, detected ten minutes at a time so that memory does not grow with the film."""

    def detect(start: int) -> list[Range]:
        end = min(start + _BLOCK, total)
        first, last = max(0, start - _MARGIN), min(end + _MARGIN, total)
        spans = ((max(a + first, start), min(b + first, end)) for a, b in detect_speech(read(first, last)))
        return [(a, b) for a, b in spans if a < b]

    found = [span for some in answered(partial(detect, start) for start in range(0, total, _BLOCK)) for span in some]
    return [(run[0][0], run[-1][1]) for run in _split_at_gaps(found, 1)]


def cut_windows(speech: Sequence[Range], read: Read, total: int) -> list[Window]:
    """Cut speech into windows at the silences of least cost, or at the quietest point if there are none."""
    spans = list(_padded([s for r in speech for s in _split_long(r, read)], total))
    found: list[Window] = []
    for run in _split_at_gaps(spans, _MAX_SILENCE):
        cuts = _cuts(run)
        found += [Window(tuple(_groups(run[a:b]))) for a, b in pairwise(cuts)]
    return found


def _cuts(spans: Sequence[Range]) -> list[int]:
    """Bounds of windows as indices of spans, by dynamic programming over the sum of costs."""
    best: list[tuple[float, int]] = [(0.0, 0)]  # cost up to here, where the last window begins
    for end in range(1, len(spans) + 1):
        choices = []
        for start in range(end - 1, -1, -1):
            length = Window(tuple(_groups(spans[start:end]))).length
            if length > MAX_LENGTH and start < end - 1:
                break
            choices.append((best[start][0] + _cost(length, _silence(spans, end)), start))
        best.append(min(choices))
    cuts = [len(spans)]
    while cuts[-1]:
        cuts.append(best[cuts[-1]][1])
    return cuts[::-1]


def _cost(length: int, silence: int) -> float:
    """A window costs an encoding; its tail gets lost beyond 20 s; a cut in a short silence may split a sentence."""
    over = max(0, length - TARGET_LENGTH) / (2 * RATE)
    return 1.0 + over * over + max(0.0, 2.0 - silence / RATE)


def _silence(spans: Sequence[Range], at: int) -> int:
    return spans[at][0] - spans[at - 1][1] if at < len(spans) else _MAX_SILENCE


def _padded(spans: Sequence[Range], total: int) -> Iterable[Range]:
    """Spans with a little of the silence around them: speech begins before the VAD detects it."""
    for n, (a, b) in enumerate(spans):
        before = a - spans[n - 1][1] if n else 2 * a
        after = spans[n + 1][0] - b if n + 1 < len(spans) else 2 * (total - b)
        yield a - min(_PADDING, before // 2), b + min(_PADDING, (after + 1) // 2)


def _split_at_gaps(spans: Sequence[Range], gap: int) -> list[list[Range]]:
    runs: list[list[Range]] = []
    for span in spans:
        if not runs or span[0] - runs[-1][-1][1] >= gap:
            runs.append([])
        runs[-1].append(span)
    return runs


def _groups(spans: Sequence[Range]) -> list[Range]:
    return [(run[0][0], run[-1][1]) for run in _split_at_gaps(spans, GROUP_GAP - 2 * _PADDING)]


def _split_long(span: Range, read: Read) -> Iterable[Range]:
    """A range of speech, split where it is too long to decode at once."""
    start, end = span
    while end - start > MAX_LENGTH - 2 * _PADDING:
        first = max(start + _MIN_LENGTH, min(start + TARGET_LENGTH, end - _MIN_LENGTH) - 8 * RATE)
        at = first + quietest_sample(read(first, start + MAX_LENGTH - 2 * _PADDING))
        yield start, at
        start = at
    yield start, end


def quietest_sample(pcm: Pcm) -> int:
    """The middle of the quietest 0.3 s, for a forced cut through continuous speech."""
    if len(pcm) <= _QUIET_LENGTH:
        return len(pcm) // 2
    power = np.concatenate([[0.0], np.cumsum(pcm.astype(np.float64) ** 2)])
    return int(np.argmin(power[_QUIET_LENGTH:] - power[:-_QUIET_LENGTH])) + _QUIET_LENGTH // 2
