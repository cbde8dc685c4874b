"""Doubts: what a speech model invents or loses, noticed by signs that need no second model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rushes.engines.port import RATE, Phrase, Transcription, Word

LOOP = "loop"
FAST = "more words than anybody can say"
LOST = "speech without words"

_PACKS_TOO_WELL = 2.4
_NOBODY_SPEAKS_SO = 3.2  # the opening of A Tale of Two Cities reaches 2.4 and is no loop
_SURE = 0.8
_MAX_LETTERS = 35.0  # in a second; fast speakers reach 25
_MIN_LETTERS = 1.5
_STOCK = re.compile(
    r"^\W*(thanks?( you)?( so much| very much)?( for watching)?|(please )?(like and )?subscribe.*|"
    r"see you (in the )?next.*|"
    r"subtitles? by.*|.*amara\.org.*|untertitel.*|sous-titr.*|sottotitoli.*|subtítulos.*|legendas.*|"
    r"you|bye( bye)*|vielen dank( fürs zuschauen)?|merci( d'avoir regardé.*)?|gracias( por ver.*)?|"
    r"ご視聴.*|字幕.*|продолжение следует.*|субтитры.*|\[?music( playing)?\]?|♪.*)\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with an answer, and how bad it is: 0 is sound."""

    reasons: tuple[str, ...]
    badness: float


def examine(heard: Transcription, groups: Sequence[tuple[int, int]]) -> Finding:
    """Look at an answer; `groups` are the stretches of speech in the pcm that was asked about."""
    words = [w for p in heard.phrases for w in p.words]
    seconds = sum(b - a for a, b in groups) / RATE
    letters = sum(len(w.text.strip()) for w in words) / max(seconds, 0.1)
    reasons: dict[str, float] = {}
    sure = _confidence(words)
    if looping(words):
        reasons[LOOP] = 3.0
    elif any(p.compression_ratio > (_PACKS_TOO_WELL if sure < _SURE else _NOBODY_SPEAKS_SO) for p in heard.phrases):
        reasons[LOOP] = 1.0
    if letters > _MAX_LETTERS:
        reasons[FAST] = 2.0
    if lost := _lost(words, groups):
        reasons[LOST] = min(2.5, lost / RATE / 2)
    return Finding(tuple(reasons), sum(reasons.values()) + 2 * (1 - sure))


def looping(words: Sequence[Word]) -> bool:
    """Whether a few words go round and round: at least four times and eight words in all."""
    said = [_plain(w.text) for w in words]
    return any(_loop_at(said, at)[1] > 1 for at in range(len(said)))


def _once(words: Sequence[Word]) -> list[Word]:
    said = [_plain(w.text) for w in words]
    kept: list[Word] = []
    at = 0
    while at < len(words):
        n, times = _loop_at(said, at)
        kept += words[at : at + n]
        at += n * times
    return kept


def _loop_at(said: Sequence[str], at: int) -> tuple[int, int]:
    """(words of the unit, how often it is said); (1, 1) where there is no loop."""
    for n in range(1, 13):
        unit, times = said[at : at + n], 1
        while said[at + times * n : at + (times + 1) * n] == unit:
            times += 1
        if times >= 4 and times * n >= 8:
            return n, times
    return 1, 1


def invented(phrase: Phrase, groups: Sequence[tuple[int, int]]) -> bool:
    """Whether a phrase stands where hardly anybody speaks, or is what models say when they hear nothing."""
    if not phrase.words:
        return False
    voice = _voice_under(phrase, groups) / RATE
    if phrase.no_speech_prob > 0.6 and phrase.confidence < 0.4:
        return True
    stock = bool(_STOCK.match("".join(w.text for w in phrase.words)))
    unsure = phrase.confidence < 0.6 or phrase.no_speech_prob > 0.5
    return voice < 0.1 or (stock and (unsure or voice < 0.4))


def without_invention(heard: Transcription, groups: Sequence[tuple[int, int]]) -> Transcription:
    """An answer without its invented phrases: models like to add one to the silence at the end."""
    return replace(heard, phrases=tuple(p for p in heard.phrases if p.words and not invented(p, groups)))


def unlooped(heard: Transcription) -> Transcription:
    """An answer with every loop said once: what is left when nothing better can be had."""
    said = [w for p in heard.phrases for w in p.words]
    kept = {id(w) for w in _once(said)}
    phrases = [replace(p, words=tuple(w for w in p.words if id(w) in kept)) for p in heard.phrases]
    return replace(heard, phrases=tuple(p for p in phrases if p.words))


def _lost(words: Sequence[Word], groups: Sequence[tuple[int, int]]) -> int:
    """Samples of speech in stretches that got (nearly) no words."""
    lost = 0
    for a, b in groups:
        inside = [w for w in words if w.start < b and w.end > a]
        letters = sum(len(w.text.strip()) for w in inside)
        if b - a >= 2 * RATE and letters < _MIN_LETTERS * (b - a) / RATE:
            lost += b - a
        else:
            lost += _holes(inside, a, b)
    return lost


def _holes(words: Sequence[Word], start: int, end: int) -> int:
    """Samples of holes of more than 4 s between words: somebody spoke there and nothing was written."""
    marks = [(start, start), *((w.start, w.end) for w in words), (end, end)]
    gaps = [b[0] - a[1] for a, b in pairwise(marks)]
    return sum(g for g in gaps if g > 4 * RATE)


def _voice_under(phrase: Phrase, groups: Sequence[tuple[int, int]]) -> int:
    start, end = phrase.words[0].start, max(w.end for w in phrase.words)
    return sum(max(0, min(b, end) - max(a, start)) for a, b in groups)


def _confidence(words: Sequence[Word]) -> float:
    return sum(w.confidence for w in words) / len(words) if words else 0.0


def _plain(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()
