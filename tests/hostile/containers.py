"""Containers written byte by byte, because no muxer writes such files."""

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

from tests.unit.media_files import plain

Bytes = bytes | bytearray


def wav(rate: int, seconds: int = 1, channels: int = 1, bits: int = 16, samples: int | None = None) -> bytes:
    """A WAV with a tone that is a staircase."""
    count = (rate * seconds if samples is None else samples) * channels * bits // 8
    sizes = (rate * channels * bits // 8) & 0xFFFFFFFF, (channels * bits // 8) & 0xFFFF
    head = struct.pack("<IHHIIHH", 16, 1, channels, rate, *sizes, bits)
    data = (bytes(range(256)) * (count // 256 + 1))[:count]
    return b"RIFF" + struct.pack("<I", 36 + count) + b"WAVEfmt " + head + b"data" + struct.pack("<I", count) + data


def box(kind: bytes, *parts: Bytes) -> bytes:
    """An MP4 box."""
    payload = b"".join(parts)
    return struct.pack(">I", 8 + len(payload)) + kind + payload


def full_box(kind: bytes, *parts: Bytes, version: int = 0, flags: int = 0) -> bytes:
    """An MP4 box with version and flags."""
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


def u32(*values: int) -> bytes:
    """Numbers of four bytes."""
    return struct.pack(f">{len(values)}I", *values)


def sample_tables(**changed: bytes) -> bytes:
    """The tables of a film with one sample, or with others in their place."""
    entry = struct.pack(">6xH16xHH14x32xHh", 1, 64, 64, 24, -1)
    tables = {
        "stsd": full_box(b"stsd", u32(1), box(b"jpeg", entry)),
        "stts": full_box(b"stts", u32(1, 1, 512)),
        "stsc": full_box(b"stsc", u32(1, 1, 1, 1)),
        "stsz": full_box(b"stsz", u32(0, 1, 100)),
        "stco": full_box(b"stco", u32(1, 48)),
        **changed,
    }
    return b"".join(tables.values())


def mp4(tables: bytes, before: bytes = b"", dref: bytes = b"", edits: bytes = b"", more: bytes = b"") -> bytes:
    """An MP4 with one track of pictures and these sample tables."""
    refs = dref or full_box(b"dref", u32(1), full_box(b"url ", flags=1))
    header = full_box(b"mdhd", u32(0, 0, 12800, 12800, 0))
    handler = full_box(b"hdlr", bytes(4), b"vide", bytes(13))
    minf = box(b"minf", full_box(b"vmhd", bytes(8), flags=1), box(b"dinf", refs), box(b"stbl", tables))
    track = full_box(b"tkhd", u32(0, 0, 1, 0, 1000), bytes(60), flags=3)
    trak = box(b"trak", track, edits, box(b"mdia", header, handler, minf))
    movie = full_box(b"mvhd", u32(0, 0, 1000, 1000, 0x10000), bytes(76), u32(2))
    return box(b"ftyp", b"isom", u32(0)) + before + box(b"mdat", bytes(200)) + box(b"moov", movie, trak, more)


def ebml(identity: str, *parts: Bytes) -> bytes:
    """A Matroska element; its id in hex."""
    payload = b"".join(parts)
    return bytes.fromhex(identity) + (1 << 56 | len(payload)).to_bytes(8, "big") + payload


def in_segment(film: Path, extra: bytes, out: Path) -> None:
    """A Matroska film with more elements at the beginning of its segment, which has no size any more."""
    data = film.read_bytes()
    at = data.index(bytes.fromhex("18538067")) + 4
    width = 9 - data[at].bit_length()
    out.write_bytes(data[:at] + b"\x01" + b"\xff" * 7 + extra + data[at + width :])


def matroska_tags(count: int) -> bytes:
    """A Tags element with so many tags."""
    tag = (ebml("67c8", ebml("45a3", b"k%06d" % n), ebml("4487", b"v")) for n in range(count))
    return ebml("1254c367", ebml("7373", ebml("63c0"), *tag))


def vorbis_comments(texts: Iterable[bytes]) -> bytes:
    """A block of comments as FLAC and Ogg have it."""
    rows = [struct.pack("<I", len(text)) + text for text in texts]
    return struct.pack("<I", 0) + struct.pack("<I", len(rows)) + b"".join(rows)


def flac(comments: bytes, rate: int = 44_100) -> bytes:
    """A FLAC of one silent frame, with comments."""
    info = struct.pack(">HH6x", 4096, 4096) + (rate << 44 | 1 << 41 | 15 << 36 | 4096).to_bytes(8, "big") + bytes(16)
    blocks = b"\x00" + len(info).to_bytes(3, "big") + info + b"\x84" + len(comments).to_bytes(3, "big") + comments
    head = b"\xff\xf8\xc9\x08\x00"  # 4096 samples at 44.1 kHz, mono, 16 bits
    frame = head + bytes([_crc8(head)]) + b"\x00\x00\x00"
    return b"fLaC" + blocks + (frame + _crc16(frame).to_bytes(2, "big")) * 4


def _crc8(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x07) & 0xFF if crc & 0x80 else crc << 1
    return crc


def _crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x8005) & 0xFFFF if crc & 0x8000 else crc << 1
    return crc


def id3(count: int) -> bytes:
    """An ID3 header with so many texts of a user."""
    rows = (b"TXXX" + _syncsafe(10) + b"\0\0" + b"\3k%06d\0v" % n for n in range(count))
    frames = b"".join(rows)
    return b"ID3\4\0\0" + _syncsafe(len(frames)) + frames


def _syncsafe(number: int) -> bytes:
    return bytes(number >> shift & 127 for shift in (21, 14, 7, 0))


def packed_header(unpacked: int) -> bytes:
    """A QuickTime header that is zipped and says how long it becomes."""
    data = zlib.compress(bytes(unpacked), 9)
    return box(b"moov", box(b"cmov", box(b"dcom", b"zlib"), box(b"cmvd", u32(unpacked), data)))


def titled(path: Path, title: str) -> Path:
    """A Matroska film with a title, whatever its length."""
    film = plain(path.with_name("untitled.mkv"), 1)
    in_segment(film, ebml("1549a966", ebml("2ad7b1", u32(1_000_000)), ebml("7ba9", title.encode())), path)
    return path
