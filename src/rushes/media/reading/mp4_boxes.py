"""MP4 boxes: finds fragments, sets their decode times, and detects truncated files."""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

_MEDIA = frozenset({b"ftyp", b"moov", b"moof", b"mdat"})  # boxes without which a film is incomplete


@dataclass(frozen=True, slots=True)
class Box:
    """One box: its type, offset and size, header included."""

    kind: bytes
    at: int
    size: int
    head: int


def boxes(f: BinaryIO, at: int, end: int) -> Iterator[Box]:
    """The boxes between two offsets; a size of 0 means up to the end."""
    while at + 8 <= end:
        f.seek(at)
        head = f.read(16)
        size, kind = struct.unpack(">I4s", head[:8])
        length = 8
        if size == 1 and len(head) == 16:
            size, length = struct.unpack(">Q", head[8:])[0], 16
        size = size or end - at
        if size < length:
            return
        yield Box(kind, at, size, length)
        at += size


@dataclass(frozen=True, slots=True)
class Fragment:
    """One moof with its mdat, and the offset of its baseMediaDecodeTime."""

    at: int
    size: int
    time_at: int


def fragments(f: BinaryIO) -> tuple[int, list[Fragment]]:
    """Length of the init segment, and all fragments, of an fMP4 file."""
    end = f.seek(0, os.SEEK_END)
    top = list(boxes(f, 0, end))
    moofs = [i for i, box in enumerate(top) if box.kind == b"moof"]
    found = [Fragment(top[i].at, top[i].size + top[i + 1].size, _tfdt_offset(f, top[i])) for i in moofs]
    return (top[moofs[0]].at if moofs else end), found


def shift_decode_times(f: BinaryIO, found: list[Fragment], ticks: int) -> list[int]:
    """Add ticks to the decode time of every fragment; returns the new times."""
    times = []
    for fragment in found:
        f.seek(fragment.time_at)
        times.append(ticks + struct.unpack(">Q", f.read(8))[0])
        f.seek(fragment.time_at)
        f.write(struct.pack(">Q", times[-1]))
    return times


def _tfdt_offset(f: BinaryIO, moof: Box) -> int:
    traf = _child(f, moof, b"traf")
    tfdt = _child(f, traf, b"tfdt")
    f.seek(tfdt.at + 8)
    if f.read(1) != b"\x01":
        raise ValueError("the tfdt box of a fragment is not 64 bit")
    return tfdt.at + 12


def _child(f: BinaryIO, box: Box, kind: bytes) -> Box:
    return next(b for b in boxes(f, box.at + box.head, box.at + box.size) if b.kind == kind)


def avc_codec(header: bytes) -> str:
    """The RFC 6381 codec string of an init segment."""
    at = header.find(b"avcC")
    return f"avc1.{header[at + 5 : at + 8].hex().upper()}" if at > 0 else ""


def missing_bytes(f: BinaryIO) -> int:
    """How many bytes an MP4, Matroska or RIFF file announces beyond its end; 0 if none or unknown."""
    end = f.seek(0, os.SEEK_END)
    f.seek(0)
    head = f.read(12)
    if head[:4] == b"RIFF":
        size: int = struct.unpack("<I", head[4:8])[0]
        return max(0, 8 + size - end) if size < 0xFFFFFFF0 else 0
    if head[:4] == b"\x1a\x45\xdf\xa3":
        return max(0, _matroska_end(f) - end)
    if head[4:8] in {b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot", b"styp"}:
        return max(0, max((box.at + box.size for box in boxes(f, 0, end) if box.kind in _MEDIA), default=0) - end)
    return 0


def _matroska_end(f: BinaryIO) -> int:
    f.seek(4)
    f.seek(_vint(f)[0], os.SEEK_CUR)
    if f.read(4) != b"\x18\x53\x80\x67":
        return 0
    size, unknown = _vint(f)
    return 0 if unknown else f.tell() + size


def _vint(f: BinaryIO) -> tuple[int, bool]:
    first = (f.read(1) or b"\xff")[0]
    width = 9 - first.bit_length()
    rest = f.read(width - 1)
    value = int.from_bytes(bytes([first & (0xFF >> width)]) + rest, "big")
    return value, value == (1 << (7 * width)) - 1
