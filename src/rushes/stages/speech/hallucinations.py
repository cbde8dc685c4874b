"""Hallucination filter: text that a speech model invents, repeats or loses, found without a second model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rushes.engines.port import RATE, Phrase, Transcription, Word

LOOP = "loop"
FAST = "too many words per second"
LOST = "speech without words"

NO_SPEECH_THRESHOLD = 0.6  # this and the next as in Whisper
COMPRESSION_RATIO_THRESHOLD = 2.4
_CONFIDENT_COMPRESSION_RATIO = 3.2  # the opening of A Tale of Two Cities reaches 2.4 without a loop
_CONFIDENT = 0.8
_MAX_LETTERS_PER_SECOND = 35.0  # fast speakers reach 25
_MIN_LETTERS_PER_SECOND = 1.5
_STOCK_PHRASES = re.compile(
    r"^\W*(thanks?( you)?( so much| very much)?( for watching)?|(please )?(like and )?subscribe.*|"
    r"see you (in the )?next.*|"
    r"subtitles? by.*|.*amara\.org.*|untertitel.*|sous-titr.*|sottotitoli.*|subtítulos.*|legendas.*|"
    r"you|bye( bye)*|vielen dank( fürs zuschauen)?|merci( d'avoir regardé.*)?|gracias( por ver.*)?|"
    r"ご視聴.*|字幕.*|продолжение следует.*|субтитры.*|\[?music( playing)?\]?|♪.*)\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Assessment:
    """What is wrong with a transcription, and how bad that is: 0 is good."""

    reasons: tuple[str, ...]
    badness: float


def assess(transcription: Transcription, groups: Sequence[tuple[int, int]]) -> Assessment:
    """Check a transcription; `groups` are the ranges of speech in its pcm."""
    words = [w for p in transcription.phrases for w in p.words]
    seconds = sum(b - a for a, b in groups) / RATE
    letters = sum(len(w.text.strip()) for w in words) / max(seconds, 0.1)
    reasons: dict[str, float] = {}
    sure = _confidence(words)
    most = COMPRESSION_RATIO_THRESHOLD if sure < _CONFIDENT else _CONFIDENT_COMPRESSION_RATIO
    if has_loop(words):
        reasons[LOOP] = 3.0
    elif any(p.compression_ratio > most for p in transcription.phrases):
        reasons[LOOP] = 1.0
    if letters > _MAX_LETTERS_PER_SECOND:
        reasons[FAST] = 2.0
    if lost := _lost_samples(words, groups):
        reasons[LOST] = min(2.5, lost / RATE / 2)
    return Assessment(tuple(reasons), sum(reasons.values()) + 2 * (1 - sure))


def has_loop(words: Sequence[Word]) -> bool:
    """Whether a few words are repeated at least four times, eight words in all."""
    said = [_normalise(w.text) for w in words]
    return any(_loop_at(said, at)[1] > 1 for at in range(len(said)))


def _without_loops(words: Sequence[Word]) -> list[Word]:
    said = [_normalise(w.text) for w in words]
    kept: list[Word] = []
    at = 0
    while at < len(words):
        n, times = _loop_at(said, at)
        kept += words[at : at + n]
        at += n * times
    return kept


def _loop_at(said: Sequence[str], at: int) -> tuple[int, int]:
    """(words of the unit, repetitions); (1, 1) where there is no loop."""
    for n in range(1, 13):
        unit, times = said[at : at + n], 1
        while said[at + times * n : at + (times + 1) * n] == unit:
            times += 1
        if times >= 4 and times * n >= 8:
            return n, times
    return 1, 1


def is_hallucination(phrase: Phrase, groups: Sequence[tuple[int, int]]) -> bool:
    """Whether a phrase lies where there is hardly any speech, or is a stock phrase of models for silence."""
    if not phrase.words:
        return False
    voice = _speech_samples(phrase, groups) / RATE
    if phrase.no_speech_prob > NO_SPEECH_THRESHOLD and phrase.confidence < 0.4:
        return True
    stock = bool(_STOCK_PHRASES.match("".join(w.text for w in phrase.words)))
    unsure = phrase.confidence < 0.6 or phrase.no_speech_prob > 0.5
    return voice < 0.1 or (stock and (unsure or voice < 0.4))


def drop_hallucinations(transcription: Transcription, groups: Sequence[tuple[int, int]]) -> Transcription:
    """The transcription without hallucinated phrases; models often add one to the silence at the end."""
    kept = tuple(p for p in transcription.phrases if p.words and not is_hallucination(p, groups))
    return replace(transcription, phrases=kept)


def drop_loops(transcription: Transcription) -> Transcription:
    """The transcription with every loop reduced to one repetition: the last resort."""
    words = [w for p in transcription.phrases for w in p.words]
    kept = {id(w) for w in _without_loops(words)}
    phrases = [replace(p, words=tuple(w for w in p.words if id(w) in kept)) for p in transcription.phrases]
    return replace(transcription, phrases=tuple(p for p in phrases if p.words))


def _lost_samples(words: Sequence[Word], groups: Sequence[tuple[int, int]]) -> int:
    """Samples of speech that got (nearly) no words."""
    lost = 0
    for a, b in groups:
        inside = [w for w in words if w.start < b and w.end > a]
        letters = sum(len(w.text.strip()) for w in inside)
        if b - a >= 2 * RATE and letters < _MIN_LETTERS_PER_SECOND * (b - a) / RATE:
            lost += b - a
        else:
            lost += _gap_samples(inside, a, b)
    return lost


def _gap_samples(words: Sequence[Word], start: int, end: int) -> int:
    """Samples of speech in gaps of more than 4 s between words."""
    marks = [(start, start), *((w.start, w.end) for w in words), (end, end)]
    gaps = [b[0] - a[1] for a, b in pairwise(marks)]
    return sum(g for g in gaps if g > 4 * RATE)


def _speech_samples(phrase: Phrase, groups: Sequence[tuple[int, int]]) -> int:
    start, end = phrase.words[0].start, max(w.end for w in phrase.words)
    return sum(max(0, min(b, end) - max(a, start)) for a, b in groups)


def _confidence(words: Sequence[Word]) -> float:
    return sum(w.confidence for w in words) / len(words) if words else 0.0


def _normalise(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()
