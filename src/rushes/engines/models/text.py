"""Text: the input size of each profile, and the language of a line."""

import unicodedata
from collections.abc import Sequence

from rushes.engines.models.languages import bcp47

# The longer side of the picture in which lines are detected. CPU-seconds and characters wrong on ten frames (1252):
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


def input_side(profile: str) -> int:
    """The longer side, in pixels, at which a profile detects lines."""
    return _SIDES.get(profile, _SIDES["balanced"])


def language_of(text: str, languages: Sequence[str]) -> str:
    """The language of a line by its script; for Latin letters the first of `languages`."""
    scripts = [unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha()]
    if not scripts:
        return ""
    kana = next((s for s in scripts if s in {"HIRAGANA", "KATAKANA"}), "")
    most = kana or max(sorted(set(scripts)), key=scripts.count)
    return _SCRIPTS.get(most, bcp47(languages[0]) if languages else "und")
