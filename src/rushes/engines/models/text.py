"""Text: how closely each profile looks, and in which languages lines are."""

import unicodedata
from collections.abc import Sequence

from rushes.engines.models.languages import bcp47

# The longer side of the picture in which lines are looked for. CPU-seconds and characters wrong on ten frames (1252):
# tiny 736: 0.14, 5; tiny 960: 0.19, 2; small 736: 0.41, 2; small 960: 0.52, 2; small 1280: 0.72, 2.
_SIDES = {"fast": 736, "balanced": 960, "high_quality": 1280}
_SCRIPTS = {
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "CYRILLIC": "und-Cyrl",
    "GREEK": "el",
    "ARABIC": "und-Arab",
    "HEBREW": "he",
    "THAI": "th",
    "DEVANAGARI": "und-Deva",
}


def side(profile: str) -> int:
    """How large the picture is in which a profile looks for lines."""
    return _SIDES.get(profile, _SIDES["balanced"])


def language_of(text: str, languages: Sequence[str]) -> str:
    """The language of a line as far as its script tells; Latin letters are taken for the first that was asked for."""
    scripts = [unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha()]
    if not scripts:
        return ""
    kana = next((s for s in scripts if s in {"HIRAGANA", "KATAKANA"}), "")
    most = kana or max(sorted(set(scripts)), key=scripts.count)
    return _SCRIPTS.get(most, bcp47(languages[0]) if languages else "und")
