"""The transcriber: decodes speech windows, again with other options while the output looks wrong."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.engines.models.languages import bcp47
from rushes.engines.models.speech import SpeechModels
from rushes.engines.port import RATE, DecodingOptions, Pcm, SpeechEngine, Transcription, Word, answered
from rushes.stages.speech import hallucinations
from rushes.stages.speech.windows import PcmFile, Range, Window

BASE = Fraction(1, RATE)
MAX_PAUSE = 2 * RATE  # speakers pause inside a sentence, and search finds phrases within a line
MAX_CHARACTERS = 160

_SENTENCE_END = re.compile(r"[.!?。！？…]+[\"'”’»)\]]*$")  # noqa: RUF001 - other scripts
_COMMA = re.compile(r"[,;:、，；：—–-]+[\"'”’»)\]]*$")  # noqa: RUF001 - other scripts
_ABBREVIATION = re.compile(
    r"^[\"'“‘«(\[]*(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|no|nr|bzw|ca|approx|fig|vol|[a-z]|(?:[a-z]\.)+[a-z])\.$",  # noqa: RUF001
    re.IGNORECASE,
)
_MIN_LANGUAGE_PROBABILITY = 0.6
_MIN_LANGUAGE_SAMPLES = 3 * RATE
_LANGUAGE_CONTEXT = 30 * RATE
_LANGUAGE_SAMPLES = 5 * RATE  # 0.1 CPU-seconds instead of 1.3 (base)
_BEAM_SIZES = {"fast": 1, "balanced": 5, "high_quality": 5}


def split_lines(words: Sequence[Word], language: str, *, doubtful: bool = False) -> list[Observation]:
    """Split words at sentence ends and pauses, and again above 160 characters."""
    return [_line(part, language, doubtful) for unit in _sentences(words) for part in _split_long(unit)]


def monotonic_words(words: Iterable[Word], start: int, end: int) -> list[Word]:
    """Words with increasing times inside a range, each at least 20 ms long where that is possible."""
    out: list[Word] = []
    at = start
    for word in words:
        first = min(max(word.start, at), end)
        at = min(max(word.end, first + RATE // 50), end)
        out.append(Word(word.text, first, at, word.confidence))
    return out


def _sentences(words: Sequence[Word]) -> list[list[Word]]:
    units: list[list[Word]] = []
    for n, word in enumerate(words):
        before = words[n - 1] if n else None
        if before is None or word.start - before.end > MAX_PAUSE or _ends_sentence(before.text, word.text):
            units.append([])
        units[-1].append(word)
    return units


def _ends_sentence(text: str, following: str) -> bool:
    """Whether a sentence ends with this word: a full stop, not of an abbreviation, and no lower case after it."""
    text, following = text.strip(), following.strip()
    return bool(_SENTENCE_END.search(text)) and not _ABBREVIATION.match(text) and not following[:1].islower()


def _split_long(words: list[Word]) -> list[list[Word]]:
    if len(_text(words)) <= MAX_CHARACTERS or len(words) == 1:
        return [words]
    at = min(range(1, len(words)), key=lambda n: _split_cost(words, n))
    return [*_split_long(words[:at]), *_split_long(words[at:])]


def _split_cost(words: Sequence[Word], at: int) -> float:
    """Cost of a split before word `at`: uneven halves cost, a comma or a pause is a bonus."""
    before, after = len(_text(words[:at])), len(_text(words[at:]))
    pause = (words[at].start - words[at - 1].end) / RATE
    comma = bool(_COMMA.search(words[at - 1].text))
    return abs(before - after) / (before + after) - 0.4 * comma - min(0.4, pause)


def _line(words: Sequence[Word], language: str, doubtful: bool) -> Observation:
    said = tuple((w.text.strip(), w.start, w.end, round(w.confidence, 3)) for w in words)
    span, sure = Span(words[0].start, words[-1].end, BASE), round(sum(w.confidence for w in words) / len(words), 3)
    extra = {"doubtful": True} if doubtful else {}
    return Observation("speech", span, _text(words), sure, language, said, extra=extra)


def _text(words: Sequence[Word]) -> str:
    return re.sub(r"\s+", " ", "".join(w.text for w in words)).strip()


@dataclass(frozen=True, slots=True)
class Transcriber:
    """Transcribes windows: detects the language, decodes, checks, decodes again."""

    engine: SpeechEngine
    models: SpeechModels
    pcm: PcmFile
    profile: str
    language: str  # empty: detect it for each group

    def transcribe(self, window: Window) -> Iterator[Observation]:
        """The lines of a window, in samples of the pcm."""
        parts = self._by_language(window)
        found = answered(partial(self._best, language, part) for language, part in parts)
        for (_, part), (best, assessment) in zip(parts, found, strict=True):
            words = [_unpack_word(w, part) for p in best.phrases for w in p.words]
            words = monotonic_words(words, part.start, part.end)
            yield from split_lines(words, bcp47(best.language), doubtful=bool(assessment.reasons))

    def _by_language(self, window: Window) -> list[tuple[str, Window]]:
        """Parts of a window with the language of each; neighbours of one language stay together."""
        if self.language or len(window.groups) == 1:
            short = self.models.english != self.models.multilingual  # else decoding reuses the encoding of the whole
            return [(self.language or self._language(window.groups, short=short), window)]
        runs: list[tuple[str, Window]] = []
        units = list(_language_units(window.groups))
        languages = answered(partial(self._language, groups, short=True) for groups in units)
        for groups, language in zip(units, languages, strict=True):
            before = runs.pop()[1].groups if runs and runs[-1][0] == language else ()
            runs.append((language, Window((*before, *groups))))
        return runs

    def _language(self, groups: Sequence[Range], *, short: bool) -> str:
        """The language of some groups, by all or the first 5 s; where that is unclear, of the half minute round."""
        pcm, model = self._pcm(Window(tuple(groups))), self.models.multilingual
        language, sure = self.engine.detect_language(model, pcm[:_LANGUAGE_SAMPLES] if short else pcm)
        if sure < _MIN_LANGUAGE_PROBABILITY:
            middle = (groups[0][0] + groups[-1][1]) // 2
            wide = self.pcm.read(middle - _LANGUAGE_CONTEXT // 2, middle + _LANGUAGE_CONTEXT // 2)
            language, _ = self.engine.detect_language(model, wide)
        return language

    def _best(self, language: str, part: Window) -> tuple[Transcription, hallucinations.Assessment]:
        """The first transcription if nothing is wrong with it, else the least bad of several, without loops.

        A later one must be better than all before: forbidding repetition breaks loops, but spoils good text.
        """
        pcm, groups = self._pcm(part), _packed_groups(part)
        best: tuple[Transcription, hallucinations.Assessment] | None = None
        for model, options in self._attempts(language):
            found = hallucinations.drop_hallucinations(self.engine.transcribe(model, pcm, options), groups)
            assessment = hallucinations.assess(found, groups)
            if best is None or assessment.badness < best[1].badness:
                best = found, assessment
                if not assessment.reasons:
                    return best
        assert best is not None
        return hallucinations.drop_loops(best[0]), best[1]

    def _attempts(self, language: str) -> Iterator[tuple[str, DecodingOptions]]:
        """Models and options to try: the usual, full context, no repetition, another model, another beam size.

        Temperature stays 0: sampling depends on what a thread sampled before, so runs would differ.
        """
        model, first = self.models.of(language), decoding_options(self.profile, language)
        again = replace(first, beam_size=5, full_context=True)
        yield model, first
        yield model, again
        yield model, replace(again, no_repeat_ngram_size=3, repetition_penalty=1.1)
        if other := self.models.other(language):
            yield other, again
        yield model, replace(again, beam_size=1 if first.beam_size > 1 else 2, repetition_penalty=1.2)

    def _pcm(self, window: Window) -> Pcm:
        return np.concatenate([self.pcm.read(a, b) for a, b in window.groups])


def decoding_options(profile: str, language: str) -> DecodingOptions:
    """How a window is decoded first."""
    return DecodingOptions(language=language or None, beam_size=_BEAM_SIZES.get(profile, 5))


def _language_units(groups: Sequence[Range]) -> Iterator[list[Range]]:
    """Groups one by one; one that is too short for language detection joins its neighbour."""
    waiting: list[Range] = []
    for n, group in enumerate(groups):
        waiting.append(group)
        rest = sum(b - a for a, b in groups[n + 1 :])
        if sum(b - a for a, b in waiting) >= _MIN_LANGUAGE_SAMPLES and (rest >= _MIN_LANGUAGE_SAMPLES or not rest):
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _packed_groups(window: Window) -> list[Range]:
    """The groups in the pcm that is decoded, end to end."""
    out: list[Range] = []
    for a, b in window.groups:
        at = out[-1][1] if out else 0
        out.append((at, at + b - a))
    return out


def _unpack_word(word: Word, window: Window) -> Word:
    """A word of the packed pcm in samples of the whole; it belongs to the group of its middle."""
    middle = (word.start + word.end) // 2
    pairs = list(zip(_packed_groups(window), window.groups, strict=True))
    (a, b), (start, _) = next((p for p in pairs if middle < p[0][1]), pairs[-1])
    return replace(word, start=min(max(word.start, a), b) - a + start, end=min(max(word.end, a), b) - a + start)
