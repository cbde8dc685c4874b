"""The language of a line of text: by its script, and by its letters where several languages share one."""

import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from rushes.engines.models.languages import KNOWN, bcp47

_SCRIPTS = {
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "GREEK": "el",
    "HEBREW": "he",
    "THAI": "th",
}
_SHARED = {"LATIN": "", "CYRILLIC": "und-Cyrl", "ARABIC": "und-Arab", "DEVANAGARI": "und-Deva"}  # where letters decide
_CERTAIN = 0.5  # of the likeliest language: "EXIT" has 0.2, "The bridge is closed" 0.8, a sentence 0.99


def language_of(text: str, languages: Sequence[str]) -> str:
    """The language of a line as a BCP-47 tag; where nothing is certain the first of `languages`, or the script."""
    scripts = [unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha()]
    if not scripts:
        return ""
    kana = next((s for s in scripts if s in {"HIRAGANA", "KATAKANA"}), "")
    most = kana or max(sorted(set(scripts)), key=scripts.count)
    if most not in _SHARED:
        return _SCRIPTS.get(most, "und")
    language, share = _identifier().rank(text)[0]
    if share >= _CERTAIN:
        return bcp47(language)
    return _SHARED[most] or (bcp47(languages[0]) if languages else "und")


@cache
def _identifier() -> Any:
    """Imported and loaded on first use: it takes a second of CPU and 100 MB."""
    code = import_module("py3langid.langid")
    found = code.LanguageIdentifier.from_model_file(code.MODEL_FILE, norm_probs=True)
    found.set_languages(sorted(KNOWN.intersection(found.nb_classes)))
    return found
