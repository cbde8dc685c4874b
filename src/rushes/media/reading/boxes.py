"""The boxes of MP4 files: enough to find fragments, to set their times, and to see that a file was cut off."""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True, slots=True)
class Box:
    """One box: its kind, where it begins and how long it is, header included."""

    kind: bytes
    at: int
    size: int
    head: int


def boxes(f: BinaryIO, at: int, end: int) -> Iterator[Box]:
    """The boxes that lie one after another between two offsets; a size of 0 means up to the end."""
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
    """One moof with its mdat, and where the time of its first sample stands."""

    at: int
    size: int
    time_at: int


def fragments(f: BinaryIO) -> tuple[int, list[Fragment]]:
    """Length of what comes before the first fragment, and all fragments, of a fragmented file of ours."""
    end = f.seek(0, os.SEEK_END)
    top = list(boxes(f, 0, end))
    moofs = [i for i, box in enumerate(top) if box.kind == b"moof"]
    found = [Fragment(top[i].at, top[i].size + top[i + 1].size, _tfdt(f, top[i])) for i in moofs]
    return (top[moofs[0]].at if moofs else end), found


def shift_times(f: BinaryIO, found: list[Fragment], ticks: int) -> list[int]:
    """Add to the decode time of every fragment, which counts from the first packet; the times as they are now."""
    times = []
    for fragment in found:
        f.seek(fragment.time_at)
        times.append(ticks + struct.unpack(">Q", f.read(8))[0])
        f.seek(fragment.time_at)
        f.write(struct.pack(">Q", times[-1]))
    return times


def _tfdt(f: BinaryIO, moof: Box) -> int:
    traf = _inside(f, moof, b"traf")
    tfdt = _inside(f, traf, b"tfdt")
    f.seek(tfdt.at + 8)
    if f.read(1) != b"\x01":
        raise ValueError("the time of a fragment has 32 bits")
    return tfdt.at + 12


def _inside(f: BinaryIO, box: Box, kind: bytes) -> Box:
    return next(b for b in boxes(f, box.at + box.head, box.at + box.size) if b.kind == kind)


def avc_codec(header: bytes) -> str:
    """How playlists name the H.264 profile and level of a header."""
    at = header.find(b"avcC")
    return f"avc1.{header[at + 5 : at + 8].hex().upper()}" if at > 0 else ""


def missing_bytes(f: BinaryIO) -> int:
    """How many bytes an MP4, Matroska or RIFF file promises beyond its end; 0 if none or unknown."""
    end = f.seek(0, os.SEEK_END)
    f.seek(0)
    head = f.read(12)
    if head[:4] == b"RIFF":
        size: int = struct.unpack("<I", head[4:8])[0]
        return max(0, 8 + size - end) if size < 0xFFFFFFF0 else 0
    if head[:4] == b"\x1a\x45\xdf\xa3":
        return max(0, _matroska_end(f) - end)
    if head[4:8] in {b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot", b"styp"}:
        return max(0, max((box.at + box.size for box in boxes(f, 0, end)), default=0) - end)
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
