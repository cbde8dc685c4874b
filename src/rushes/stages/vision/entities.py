"""Entities: mentions, hashtags, URLs, emoji and numbers in a line of text."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from rushes.domain.keys import JSON

_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY"}
_CODES = "USD|EUR|GBP|JPY|CHF|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|BRL|MXN|KRW|TRY|RUB"
_SCALES = {"thousand": 3, "k": 3, "million": 6, "mio": 6, "m": 6, "billion": 9, "bn": 9, "trillion": 12, "tn": 12}
_UNITS = (
    "%|‰|°C|°F|°|km/h|mph|m/s|km|cm|mm|m|kg|mg|g|t|lbs?|oz|ml|l|kWh|kW|MW|GW|W|GHz|MHz|kHz|Hz|TB|GB|MB|KB|kB|ms|s|min|h"
    "|ft|in|mi|px|fps|dB|V|A"
)
_NUMBER = re.compile(
    rf"(?<![\w.,:/#@+-])(?P<sign>-)?(?:(?P<mark>[{''.join(_CURRENCIES)}])|(?P<code>{_CODES})\b)?\s?"
    r"(?P<digits>\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?)"
    rf"(?:\s?(?P<scale>{'|'.join(_SCALES)})\b)?(?:\s?(?P<after>[{''.join(_CURRENCIES)}]|(?:{_CODES})\b))?"
    rf"(?:\s?(?P<unit>{_UNITS})(?!\w))?(?![\w:/-]|[.,]\d)"
)
_URL = re.compile(
    r"(?:https?://|www\.)[^\s<>\"']+|(?<![\w@.])(?:[\w-]+\.)+(?:com|org|net|io|dev|tv|eu|de|uk|fr)\b(?:/\S*)?"
)
_MENTION = re.compile(r"(?<![\w.@/])@\w(?:[\w.]*\w)?")
_HASHTAG = re.compile(r"(?<![\w#&/])#(?=\w*[^\W\d_])\w+")
_EMOJI = re.compile(
    "(?:[\U0001f1e6-\U0001f1ff]{2}|[\U0001f300-\U0001faff\u2600-\u27bf\u2b50\u2b55\u231a-\u23ff]"
    "[\ufe0f\U0001f3fb-\U0001f3ff]*(?:\u200d[\U0001f300-\U0001faff\u2600-\u27bf][\ufe0f\U0001f3fb-\U0001f3ff]*)*)"
)


class Entity(NamedTuple):
    """An entity in a text: its type, and the value of a number."""

    text: str
    type: str  # "mention", "hashtag", "url", "emoji", "number"
    meaning: dict[str, JSON]


def find_entities(text: str) -> list[Entity]:
    """All entities in the order of the text; none inside a URL."""
    found = sorted(_matches(text), key=lambda pair: (pair[0][0], -pair[0][1]))
    kept: list[Entity] = []
    end = 0
    for (start, stop), entity in found:
        if start >= end:
            kept.append(entity)
            end = stop
    return kept


def _matches(text: str) -> Iterator[tuple[tuple[int, int], Entity]]:
    for m in _URL.finditer(text):
        plain = m[0].rstrip(".,;:!?)")
        yield (m.start(), m.start() + len(plain)), Entity(plain, "url", {})
    for type, pattern in (("mention", _MENTION), ("hashtag", _HASHTAG), ("emoji", _EMOJI)):
        yield from ((m.span(), Entity(m[0], type, {})) for m in pattern.finditer(text))
    for m in _NUMBER.finditer(text):
        yield m.span(), Entity(m[0].strip(), "number", _meaning(m))


def _meaning(m: re.Match[str]) -> dict[str, JSON]:
    """The value written out, with its currency and unit if there are any."""
    digits = re.sub(r"[,\u00a0\u202f](?=\d{3}(?!\d))", "", m["digits"]).replace(",", ".")
    value = Decimal(digits).scaleb(_SCALES.get(m["scale"] or "", 0)) * (-1 if m["sign"] else 1)
    money = m["mark"] or m["code"] or m["after"]
    doc = {"value": f"{value:f}", "currency": _CURRENCIES.get(money or "", money), "unit": m["unit"]}
    return {k: v for k, v in doc.items() if v}
