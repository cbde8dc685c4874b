"""Entities in a line of text: mentions, hashtags, URLs, emoji and numbers, each with its normalised value. Pure."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from rushes.domain.keys import JSON

_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY"}
_CODES = "USD|EUR|GBP|JPY|CHF|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|BRL|MXN|KRW|TRY|RUB"
_SCALES = {
    "thousand": 3,
    "k": 3,
    "million": 6,
    "mio": 6,
    "m": 6,
    "billion": 9,
    "bn": 9,
    "b": 9,
    "trillion": 12,
    "tn": 12,
}
_METRE = "m"  # a scale only after a currency, or as a capital: 5 m is a length
_UNITS = (
    "%|‰|°C|°F|°|km/h|mph|m/s|km|cm|mm|kg|mg|g|t|lbs?|oz|ml|l|kWh|kW|MW|GW|W|GHz|MHz|kHz|Hz|TB|GB|MB|KB|kB|ms|s|min|h"
    "|ft|in|mi|px|fps|dB|V|A"
)
_SPACE = " \u00a0\u202f"
_GROUPED = (  # 1,284.50 and 1 284.50; 1.284,50 and 1 284,50; 1.284.000
    rf"[1-9]\d{{0,2}}(?:(?:,\d{{3}})+|(?:[{_SPACE}]\d{{3}})+)(?:\.\d+)?(?!\d)"
    rf"|[1-9]\d{{0,2}}(?:(?:\.\d{{3}})+|(?:[{_SPACE}]\d{{3}})+),\d+|[1-9]\d{{0,2}}(?:\.\d{{3}}){{2,}}"
)
_NUMBER = re.compile(
    rf"(?<![\w.,:/#@+-])(?P<sign>-)?(?:(?P<mark>[{''.join(_CURRENCIES)}])|(?P<code>{_CODES})\b)?\s?"
    rf"(?P<digits>{_GROUPED}|\d+(?:[.,]\d+)?)"
    rf"(?:\s?(?P<scale>{'|'.join(_SCALES)}|K|M|B)\b)?(?:\s?(?P<after>[{''.join(_CURRENCIES)}]|(?:{_CODES})\b))?"
    rf"(?:\s?(?P<unit>{_UNITS})(?!\w))?(?![\w:/-]|[.,]\d)"
)
# International; with the area code in brackets; ten digits as in America; from a leading zero on; French pairs.
_PHONE = re.compile(
    r"(?<![\w.,:/+-])(?:\+\d{1,3}(?:[ ./-]?\(?\d{1,5}\)?){1,6}|\(\d{2,5}\)(?:[ -]?\d{2,5}){1,4}|\d{3}[ -]\d{3}[ -]\d{4}"
    r"|0\d{2,5}(?:[ /-]\d{2,8}){1,4}|0\d(?:[ .]\d\d){4})(?![\w/-]|[.,]\d)"
)
_PHONE_DIGITS = range(7, 16)
_URL = re.compile(
    r"(?:https?://|www\.)[^\s<>\"']+|(?<![\w@.])(?:[\w-]+\.)+(?:com|org|net|io|dev|tv|eu|de|uk|fr)\b(?:/\S*)?",
    re.IGNORECASE,
)
_HOST = re.compile(r"^(?:https?://)?[^/?#]+", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w.@/])@\w(?:[\w.]*\w)?")
_HASHTAG = re.compile(r"(?<![\w#&/])#\w+")
_EMOJI = re.compile(
    "(?:[\U0001f1e6-\U0001f1ff]{2}|[\U0001f300-\U0001faff\u2600-\u27bf\u2b50\u2b55\u231a-\u23ff]"
    "[\ufe0f\U0001f3fb-\U0001f3ff]*(?:\u200d[\U0001f300-\U0001faff\u2600-\u27bf][\ufe0f\U0001f3fb-\U0001f3ff]*)*)"
)


class Entity(NamedTuple):
    """An entity in a text: its type, its normalised value, and what a number is of."""

    text: str
    type: str  # "mention", "hashtag", "url", "emoji", "number"
    normalized: str
    meaning: dict[str, JSON] = {}  # noqa: RUF012  # never written


def find_entities(text: str) -> list[Entity]:
    """All entities in the order of the text; none inside another."""
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
        yield (m.start(), m.start() + len(plain)), Entity(plain, "url", _normalised_url(plain))
    for type, pattern in (("mention", _MENTION), ("hashtag", _HASHTAG)):
        yield from ((m.span(), Entity(m[0], type, m[0].lower())) for m in pattern.finditer(text))
    yield from ((m.span(), Entity(m[0], "emoji", m[0].replace("\ufe0f", ""))) for m in _EMOJI.finditer(text))
    for m in _PHONE.finditer(text):
        digits = re.sub(r"[^\d+]", "", m[0])
        if len(digits.lstrip("+")) in _PHONE_DIGITS:
            yield m.span(), Entity(m[0], "number", digits, {"phone": True})
    yield from ((m.span(), _number(m)) for m in _NUMBER.finditer(text))


def _normalised_url(url: str) -> str:
    """Scheme and host in small letters, no slash at the end; paths keep their case."""
    return _HOST.sub(lambda m: m[0].lower(), url).rstrip("/")


def _number(m: re.Match[str]) -> Entity:
    """The value written out, with its currency and unit if there are any."""
    money, scale, unit = m["mark"] or m["code"] or m["after"], m["scale"] or "", m["unit"]
    if scale == _METRE and not money:
        scale, unit = "", unit or _METRE
    value = _value(m["digits"]).scaleb(_SCALES.get(scale.lower(), 0)) * (-1 if m["sign"] else 1)
    doc = {"currency": _CURRENCIES.get(money or "", money), "unit": unit}
    return Entity(m[0].strip(), "number", f"{value:f}", {k: v for k, v in doc.items() if v})


def _value(digits: str) -> Decimal:
    """1,284.50 and 1.284,50 are the same; one comma is a decimal one unless it groups three digits."""
    plain = re.sub(rf"[{_SPACE}]", "", digits)
    if "," in plain and "." in plain:
        grouping = "," if plain.rindex(".") > plain.rindex(",") else "."
        plain = plain.replace(grouping, "")
    elif plain.count(".") > 1:
        plain = plain.replace(".", "")
    else:
        plain = re.sub(r",(?=\d{3}(?!\d))", "", plain)
    return Decimal(plain.replace(",", "."))
