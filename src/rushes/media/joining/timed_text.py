"""Subtitle packets as plain text, and plain text as mov_text."""

import re
import struct

TEXT_CODECS = frozenset({"mov_text", "subrip", "srt", "text", "webvtt", "ass", "ssa"})
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|\{[^{}]*\}")
_ASS_FIELDS = 8  # commas before the text
_MAX_BYTES = 4000  # bytes


def plain_text(data: bytes, codec: str) -> str:
    """The text of a subtitle packet, without markup."""
    if codec == "mov_text":
        (length,) = struct.unpack(">H", data[:2].rjust(2, b"\0"))
        data = data[2 : 2 + length]
    text = data.decode("utf-8", "replace")
    if codec in {"ass", "ssa"}:
        text = text.split(",", _ASS_FIELDS)[-1].replace("\\N", "\n").replace("\\n", "\n")
    return _TAG.sub("", text).replace("\0", "").strip()


def to_mov_text(text: str) -> bytes:
    """A mov_text sample."""
    data = text.encode()[:_MAX_BYTES].decode("utf-8", "ignore").encode()
    return struct.pack(">H", len(data)) + data
