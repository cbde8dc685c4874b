"""Subtitles of others as plain text, and as an MP4 holds them."""

import re
import struct

TEXT_CODECS = frozenset({"mov_text", "subrip", "srt", "text", "webvtt", "ass", "ssa"})
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|\{[^{}]*\}")
_ASS_FIELDS = 8  # commas before the text of a line
_MAX_BYTES = 4000  # bytes


def plain_text(data: bytes, codec: str) -> str:
    """What a packet of subtitles says, without its dress."""
    if codec == "mov_text":
        (length,) = struct.unpack(">H", data[:2].rjust(2, b"\0"))
        data = data[2 : 2 + length]
    said = data.decode("utf-8", "replace")
    if codec in {"ass", "ssa"}:
        said = said.split(",", _ASS_FIELDS)[-1].replace("\\N", "\n").replace("\\n", "\n")
    return _TAG.sub("", said).replace("\0", "").strip()


def to_mov_text(said: str) -> bytes:
    """A sample of timed text as an MP4 holds it."""
    data = said.encode()[:_MAX_BYTES].decode("utf-8", "ignore").encode()
    return struct.pack(">H", len(data)) + data
