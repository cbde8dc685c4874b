"""The listener: asks a speech model about windows, and again in other ways while the answer looks wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rushes.domain.observation import Observation
from rushes.engines.models.languages import bcp47
from rushes.engines.models.speech import SpeechModels
from rushes.engines.port import RATE, DecodingOptions, Pcm, SpeechEngine, Transcription, Word
from rushes.stages.speech import doubts
from rushes.stages.speech.lines import lines, steady
from rushes.stages.speech.pcm import PcmFile
from rushes.stages.speech.windows import Range, Window

_SURE = 0.6
_SHORT = 3 * RATE
_CONTEXT = 30 * RATE
_BEAMS = {"fast": 1, "balanced": 5, "high_quality": 5}
_GLANCE = 5 * RATE  # 0.1 CPU-seconds instead of 1.3 (base)


@dataclass(frozen=True, slots=True)
class Listener:
    """Asks the engine about windows: language first, then words, then again if they look wrong."""

    engine: SpeechEngine
    ears: SpeechModels
    sound: PcmFile
    profile: str
    language: str  # empty: find out for each stretch of speech

    def window(self, window: Window) -> Iterator[Observation]:
        """The lines of a window, in samples of the pcm."""
        for language, part in self._by_language(window):
            heard, finding = self._best(language, part)
            words = [_moved(w, part) for p in heard.phrases for w in p.words]
            words = steady(words, part.start, part.end)
            yield from lines(words, bcp47(heard.language), doubtful=bool(finding.reasons))

    def _by_language(self, window: Window) -> list[tuple[str, Window]]:
        """Stretches of a window with the language of each; neighbours of one language stay together."""
        if self.language or len(window.groups) == 1:
            glance = self.ears.english != self.ears.multilingual  # else hearing shares the encoding of the whole
            return [(self.language or self._language(window.groups, glance=glance), window)]
        runs: list[tuple[str, Window]] = []
        for groups in _worth_asking(window.groups):
            language = self._language(groups, glance=True)
            before = runs.pop()[1].groups if runs and runs[-1][0] == language else ()
            runs.append((language, Window((*before, *groups))))
        return runs

    def _language(self, groups: Sequence[Range], *, glance: bool) -> str:
        """The language of some groups, by all of them or by a glance; where it is unclear, of the half minute round."""
        pcm = self._pcm(Window(tuple(groups)))
        language, sure = self.engine.detect_language(self.ears.multilingual, pcm[:_GLANCE] if glance else pcm)
        if sure < _SURE:
            middle = (groups[0][0] + groups[-1][1]) // 2
            wide = self.sound.read(middle - _CONTEXT // 2, middle + _CONTEXT // 2)
            language, _ = self.engine.detect_language(self.ears.multilingual, wide)
        return language

    def _best(self, language: str, part: Window) -> tuple[Transcription, doubts.Finding]:
        """The first answer if nothing is wrong with it, else the least bad of several, cured.

        A later answer must be better than all before: forbidding repeats cures a loop, but spoils honest text.
        """
        pcm, stretches = self._pcm(part), _stretches(part)
        best: tuple[Transcription, doubts.Finding] | None = None
        for model, asked in self._ways(language):
            heard = doubts.without_invention(self.engine.transcribe(model, pcm, asked), stretches)
            finding = doubts.examine(heard, stretches)
            if best is None or finding.badness < best[1].badness:
                best = heard, finding
                if not finding.reasons:
                    return best
        assert best is not None
        return doubts.unlooped(best[0]), best[1]

    def _ways(self, language: str) -> Iterator[tuple[str, DecodingOptions]]:
        """How a window is asked about: as usual, then with all context, without repeats, by another model or beam_size.

        Never by chance: sampling depends on what a thread sampled before, so that no two runs would agree.
        """
        first = decoding_options(self.profile, language)
        again = replace(first, beam_size=5, full_context=True)
        yield self.ears.of(language), first
        yield self.ears.of(language), again
        yield self.ears.of(language), replace(again, no_repeat_ngram_size=3, repetition_penalty=1.1)
        if other := self.ears.other(language):
            yield other, again
        yield self.ears.of(language), replace(again, beam_size=1 if first.beam_size > 1 else 2, repetition_penalty=1.2)

    def _pcm(self, window: Window) -> Pcm:
        return np.concatenate([self.sound.read(a, b) for a, b in window.groups])


def _worth_asking(groups: Sequence[Range]) -> Iterator[list[Range]]:
    """Groups one by one; what is too short to tell a language by goes with its neighbour."""
    waiting: list[Range] = []
    for n, group in enumerate(groups):
        waiting.append(group)
        rest = sum(b - a for a, b in groups[n + 1 :])
        if sum(b - a for a, b in waiting) >= _SHORT and (rest >= _SHORT or not rest):
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _stretches(window: Window) -> list[Range]:
    """The groups as they lie in the pcm that is asked about, end to end."""
    out: list[Range] = []
    for a, b in window.groups:
        at = out[-1][1] if out else 0
        out.append((at, at + b - a))
    return out


def _moved(word: Word, window: Window) -> Word:
    """A word of the packed pcm where it lies in the whole; it belongs to the group of its middle."""
    middle = (word.start + word.end) // 2
    pairs = list(zip(_stretches(window), window.groups, strict=True))
    (a, b), (start, _) = next((p for p in pairs if middle < p[0][1]), pairs[-1])
    return replace(word, start=min(max(word.start, a), b) - a + start, end=min(max(word.end, a), b) - a + start)


def decoding_options(profile: str, language: str) -> DecodingOptions:
    """How a window is first asked about."""
    return DecodingOptions(language=language or None, beam_size=_BEAMS.get(profile, 5))
