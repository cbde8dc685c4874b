"""Windows: where sound is cut for the speech model, once per video, so that no cut depends on the grid.

A window holds groups: stretches of speech with less than 0.8 s of silence inside. Longer silences are where speaker
and language may change; they are not decoded. All positions are samples of the pcm.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rushes.domain.keys import JSON
from rushes.engines.port import RATE, Pcm

Range = tuple[int, int]
Read = Callable[[int, int], Pcm]  # samples from, to

GROUP_GAP = RATE * 8 // 10
TARGET = RATE * 20  # of sound in a window: 20 s beat 10 and 28 (facts: 0, 4 and 12 errors of 153 words)
LONGEST = RATE * 28
_APART = RATE * 4  # speech further apart is never decoded together
_LEAST = RATE * 10
_QUIET = RATE * 3 // 10
_PAD = RATE // 4
_PIECE = RATE * 600
_MARGIN = 512 * 312  # 10 s: the voice detector remembers, it is warm by then; it steps by 512 samples


@dataclass(frozen=True, slots=True)
class Window:
    """Speech that is decoded in one go: its groups, in order."""

    groups: tuple[Range, ...]

    @property
    def start(self) -> int:
        """Where it begins; it belongs to the chunk in which this lies."""
        return self.groups[0][0]

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.groups[-1][1]

    @property
    def length(self) -> int:
        """Samples that are decoded: its groups without the silence between."""
        return sum(b - a for a, b in self.groups)

    def to_json(self) -> JSON:
        """For the windows artifact."""
        return {"start": self.start, "end": self.end, "groups": [list(g) for g in self.groups]}

    @staticmethod
    def from_json(doc: JSON) -> "Window":
        """The inverse of to_json."""
        return Window(tuple((int(a), int(b)) for a, b in doc["groups"]))


def voices(total: int, read: Read, voiced: Callable[[Pcm], Sequence[Range]]) -> list[Range]:
    """Where somebody speaks, found ten minutes at a time so that memory does not grow with the film."""
    found: list[Range] = []
    for start in range(0, total, _PIECE):
        end = min(start + _PIECE, total)
        first, last = max(0, start - _MARGIN), min(end + _MARGIN, total)
        spans = ((max(a + first, start), min(b + first, end)) for a, b in voiced(read(first, last)))
        found += [(a, b) for a, b in spans if a < b]
    return [(run[0][0], run[-1][1]) for run in _apart(found, 1)]


def windows(voiced: Sequence[Range], read: Read, total: int) -> list[Window]:
    """Cut speech into windows: in the silences that cost least, or where it is quietest if there are none."""
    spans = list(_padded([s for v in voiced for s in _short(v, read)], total))
    found: list[Window] = []
    for run in _apart(spans, _APART):
        cuts = _cuts(run)
        found += [Window(tuple(_groups(run[a:b]))) for a, b in pairwise(cuts)]
    return found


def _cuts(spans: Sequence[Range]) -> list[int]:
    """Where to begin and end windows, as indices of spans, so that the sum of all costs is smallest."""
    best: list[tuple[float, int]] = [(0.0, 0)]  # cost up to here, where the last window begins
    for end in range(1, len(spans) + 1):
        choices = []
        for start in range(end - 1, -1, -1):
            length = Window(tuple(_groups(spans[start:end]))).length
            if length > LONGEST and start < end - 1:
                break
            choices.append((best[start][0] + _cost(length, _silence(spans, end)), start))
        best.append(min(choices))
    cuts = [len(spans)]
    while cuts[-1]:
        cuts.append(best[cuts[-1]][1])
    return cuts[::-1]


def _cost(length: int, silence: int) -> float:
    """A window costs an encoding; beyond 20 s its tail gets lost; a cut in a short silence may fall into a sentence."""
    over = max(0, length - TARGET) / (2 * RATE)
    return 1.0 + over * over + max(0.0, 2.0 - silence / RATE)


def _silence(spans: Sequence[Range], at: int) -> int:
    return spans[at][0] - spans[at - 1][1] if at < len(spans) else _APART


def _padded(spans: Sequence[Range], total: int) -> Iterable[Range]:
    """Spans with a little of the silence round them, for a voice begins before the detector is sure."""
    for n, (a, b) in enumerate(spans):
        before = a - spans[n - 1][1] if n else 2 * a
        after = spans[n + 1][0] - b if n + 1 < len(spans) else 2 * (total - b)
        yield a - min(_PAD, before // 2), b + min(_PAD, (after + 1) // 2)


def _apart(spans: Sequence[Range], gap: int) -> list[list[Range]]:
    runs: list[list[Range]] = []
    for span in spans:
        if not runs or span[0] - runs[-1][-1][1] >= gap:
            runs.append([])
        runs[-1].append(span)
    return runs


def _groups(spans: Sequence[Range]) -> list[Range]:
    return [(run[0][0], run[-1][1]) for run in _apart(spans, GROUP_GAP - 2 * _PAD)]


def _short(span: Range, read: Read) -> Iterable[Range]:
    """A stretch of speech, or several where it is too long to decode at once."""
    start, end = span
    while end - start > LONGEST - 2 * _PAD:
        first = max(start + _LEAST, min(start + TARGET, end - _LEAST) - 8 * RATE)
        at = first + quietest(read(first, start + LONGEST - 2 * _PAD))
        yield start, at
        start = at
    yield start, end


def quietest(pcm: Pcm) -> int:
    """The middle of the quietest 0.3 s: a forced cut through unbroken speech hurts least there."""
    if len(pcm) <= _QUIET:
        return len(pcm) // 2
    power = np.concatenate([[0.0], np.cumsum(pcm.astype(np.float64) ** 2)])
    return int(np.argmin(power[_QUIET:] - power[:-_QUIET])) + _QUIET // 2
