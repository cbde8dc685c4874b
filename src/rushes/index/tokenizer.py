"""The one tokenizer: folds and splits text in the same way for the index, the query and every backend."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

MAX_WORD_LENGTH = 100  # characters of a word that count; beyond is no word but data
VERSION = 2  # other tokens for the same text: the index is built again

_ASCII = re.compile(r"[a-z0-9]+(?:(?<=[0-9])[,'](?=[0-9]{3}(?![0-9]))[a-z0-9]+)*")  # joined where _GROUPED joins
_GROUPED = re.compile(r"(?<=\d)[,'\u2019\u00a0\u202f](?=\d{3}(?!\d))")
_LETTERS = {ord(a): b for a, b in zip("øłđðħıŋæœþ", ("o", "l", "d", "d", "h", "i", "n", "ae", "oe", "th"), strict=True)}
_ACCENTS = ((0x300, 0x36F), (0x591, 0x5C7), (0x64B, 0x65F), (0x670, 0x670), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF),
            (0x20D0, 0x20FF), (0xFE20, 0xFE2F))  # fmt: skip
_UNSPACED = ((0xE00, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF),
             (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """A folded word and where it stands in the text."""

    word: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The words of a text in order.

    Case and accents are folded, 1,000 is 1000, an apostrophe or hyphen splits, scripts without spaces go by character.
    """
    if text.isascii():
        found = _ASCII.finditer(text.lower())
        return [Token(m[0].replace(",", "").replace("'", "")[:MAX_WORD_LENGTH], m.start(), m.end()) for m in found]
    return [Token(word, start, end) for start, end in _runs(text) for word in _folded(text[start:end])]


def words(text: str) -> list[str]:
    """The words alone."""
    return [token.word for token in tokens(text)]


def safe(text: str) -> str:
    """Text that can do nothing where it is shown: no control, no direction override, no lone surrogate."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(c) for c in text)


def _shown(c: str) -> str:
    kind = unicodedata.category(c)
    if kind == "Cs":
        return "\ufffd"
    if kind == "Cc":
        return " "
    return "" if "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069" else c


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Where words stand: letters, digits and their marks; one character each in scripts without spaces."""
    joints = {m.start() for m in _GROUPED.finditer(text)}
    start: int | None = None
    for at, c in enumerate(text):
        alone = _within(c, _UNSPACED)
        if start is not None and (alone or not (_is_word(c) or at in joints)):
            yield start, at
            start = None
        if alone and _is_word(c):
            yield at, at + 1
        elif start is None and not alone and c.isalnum():
            start = at
    if start is not None:
        yield start, len(text)


def _is_word(c: str) -> bool:
    return c.isalnum() or (c > "\x7f" and unicodedata.category(c)[0] == "M")


def _folded(run: str) -> list[str]:
    plain = _GROUPED.sub("", run)
    while (folded := _fold(plain)) != plain:
        plain = folded
    return [
        plain[start:end][:MAX_WORD_LENGTH] for start, end in _runs(plain)
    ]  # one letter may have become several words


def _fold(text: str) -> str:
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text.casefold()).casefold())
    bare = "".join(_digit(c) for c in spread if not _within(c, _ACCENTS))
    return unicodedata.normalize("NFC", bare.translate(_LETTERS))


def _digit(c: str) -> str:
    return c if c.isascii() or not c.isdecimal() else str(unicodedata.decimal(c))


def _within(c: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return c > "\x7f" and any(low <= ord(c) <= high for low, high in ranges)
