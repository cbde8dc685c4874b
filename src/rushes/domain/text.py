"""Foreign text: a file name is bytes, which Python carries as lone surrogates where they are not UTF-8."""

import re

LOST = "\ufffd"  # the replacement character
_NO_TEXT = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """What every store, screen and program can take: bytes that are not text become the replacement character."""
    return text if text.isascii() else _NO_TEXT.sub(LOST, text)
