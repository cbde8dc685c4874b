"""Small files that ask for much memory or time."""

import os
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import av

from tests.hostile.case import Case, Expectation, Lure, Maker
from tests.hostile.containers import (
    box,
    ebml,
    flac,
    full_box,
    id3,
    in_segment,
    matroska_tags,
    mp4,
    packed_header,
    sample_tables,
    titled,
    u32,
    vorbis_comments,
    wav,
)
from tests.unit.media_files import Film, make, plain

MANY = 0xFFFFFFFF
RIGHT, EITHER = Expectation.RIGHT, Expectation.EITHER
ROWS: dict[str, Callable[[int], bytes]] = {
    "stsz": lambda count: u32(1, count),
    "stts": lambda count: u32(1, count, 1),
    "stsc": lambda count: u32(1, 1, count, 1),
    "stco": lambda count: u32(count, 48),
    "stss": lambda count: u32(count, 1),
    "ctts": lambda count: u32(1, count, 1),
}
COUNTS = (10_000, 10_000_000, 100_000_000, 0x7FFFFFFF, MANY)
MORE: dict[str, Callable[[], bytes]] = {
    "all_tables_1.mp4": lambda: _all_tables(100_000),
    "all_tables_2.mp4": lambda: _all_tables(5_000_000),
    "all_tables_3.mp4": lambda: _all_tables(50_000_000),
    "all_tables_4.mp4": lambda: _all_tables(200_000_000),
    "all_tables_5.mp4": lambda: _all_tables(0x7FFFFFFF),
    "nested_boxes.mp4": lambda: _nested(b"moov", 20_000),
    "nested_trak.mp4": lambda: box(b"ftyp", b"isom", u32(0)) + _nested(b"trak", 20_000),
    "many_moovs.mp4": lambda: box(b"ftyp", b"isom", u32(0)) + box(b"moov", full_box(b"mvhd", bytes(96))) * 20_000,
    "many_tracks.mp4": lambda: _tracks(5_000),
    "many_edits.mp4": lambda: mp4(
        sample_tables(), edits=box(b"edts", full_box(b"elst", u32(200_000), u32(1, 0, 0x10000) * 200_000))
    ),
    "edits_of_years.mp4": lambda: mp4(
        sample_tables(), edits=box(b"edts", full_box(b"elst", u32(1, 0x7FFFFFFF, 0, 0x10000)))
    ),
    "many_entries.mp4": lambda: mp4(sample_tables(stsd=full_box(b"stsd", u32(MANY)))),
    "empty_boxes.mp4": lambda: box(b"ftyp", b"isom", u32(0)) + box(b"free") * 500_000,
    "unzipped_header.mov": lambda: box(b"ftyp", b"qt  ", u32(0)) + packed_header(200_000_000),
    "zipped_too_long.mov": lambda: (
        box(b"ftyp", b"qt  ", u32(0)) + box(b"moov", box(b"cmov", box(b"cmvd", u32(MANY), bytes(9))))
    ),
    "fragments_of_years.mp4": lambda: _fragments(0xFFFFFFF0),
    "run_of_samples.mp4": lambda: _run(0x7FFFFFFF),
    "run_without_bytes.mp4": lambda: _run(50_000_000, flags=0),
    "endless_run.mp4": lambda: _run(0x7FFFFFFF, flags=0),
    "many_references.mp4": lambda: (
        mp4(sample_tables()) + full_box(b"sidx", u32(1, 1000, 0, 0), b"\0\0\xff\xff", bytes(700_000))
    ),
    "item_locations.mp4": lambda: (
        box(b"ftyp", b"heic", u32(0)) + full_box(b"meta", full_box(b"iloc", b"\x44\0\xff\xff", bytes(99)))
    ),
    "nested_ebml.mkv": lambda: _nested_ebml(20_000),
    "void_of_terabytes.mkv": lambda: _matroska(b"\xec\x01\x00\x7f\xff\xff\xff\xff\xff"),
    "seek_to_itself.mkv": lambda: _matroska(ebml("114d9b74", *(_seek_entry() for _ in range(20_000)))),
    "long_text.mkv": lambda: _matroska(b"\x15\x49\xa9\x66\x01\0\0\0\x40\0\0\0\x7b\xa9\x01\0\0\0\x3f\xff\xff\x00"),
    "many_tracks.mkv": lambda: _matroska(ebml("1654ae6b", *(_matroska_track(n) for n in range(5_000)))),
    "many_chapters.mkv": lambda: _matroska(ebml("1043a770", ebml("45b9", *(_chapter(n) for n in range(100_000))))),
    "many_cues.mkv": lambda: _matroska(ebml("1c53bb6b", *(ebml("bb", ebml("b3", u32(n))) for n in range(200_000)))),
    "tags_of_id3.mp3": lambda: id3(60_000) + b"\xff\xfb\x90\x64" + bytes(413),
    "tags_of_flac.flac": lambda: flac(vorbis_comments(b"K%d=v" % n for n in range(60_000))),
    "more_tags_of_flac.flac": lambda: flac(vorbis_comments(b"K%d=v" % n for n in range(400_000))),
    "rate_of_flac.flac": lambda: flac(vorbis_comments([]), rate=1),
    "wav_of_nothing.wav": lambda: wav(48_000, samples=0),
    "no_channels.wav": lambda: wav(48_000, channels=0, samples=100),
    "many_channels.wav": lambda: wav(48_000, channels=65_535, samples=20),
    "no_bits.wav": lambda: wav(48_000, bits=0, samples=100),
    "many_bits.wav": lambda: wav(48_000, bits=65_528, samples=10),
    "info_list.wav": lambda: _info(60_000),
    "info_list.avi": lambda: _info(60_000, b"AVI "),
    "index_of_avi.avi": lambda: b"RIFF" + u32(99)[::-1] + b"AVI idx1" + u32(16 * 99)[::-1] + bytes(16 * 99),
    "script_of_flv.flv": lambda: (
        b"FLV\1\5\0\0\0\t\0\0\0\0\x12\xff\xff\xff" + bytes(7) + b"\2\0\nonMetaData\x08" + u32(MANY) + bytes(999)
    ),
    "ogg_pages.ogg": lambda: (b"OggS\0\0" + bytes(20) + b"\xff" + b"\xff" * 255) * 3000,
    "ts_programs.ts": lambda: b"".join(
        b"G\x40" + bytes([n % 256]) + b"\x10\0\0\xb0\x0d" + bytes([n % 256]) * 179 for n in range(20_000)
    ),
}


def cases() -> Iterator[Case]:
    """All of them."""
    for rate in (0, 1, 7, 100, 3_999, 768_001, 0x7FFFFFFF, MANY):
        yield Case(f"rate_{rate}.wav", _written(partial(wav, rate, samples=50_000)))
    for rate in (4_000, 8_000, 11_025, 96_000, 192_000, 768_000):
        yield Case(f"rate_{rate}.wav", _written(partial(wav, rate, samples=50_000)), RIGHT)
    for name, row in ROWS.items():
        for count in COUNTS:
            table = {name: full_box(name.encode(), row(count))}
            yield Case(f"{name}_{count}.mp4", _written(partial(_with_table, table)), EITHER)
    for name, write in MORE.items():
        yield Case(name, _written(write), EITHER)
    for count in (3_000, 20_000, 60_000, 200_000):
        yield Case(f"{count}_tags.mkv", _with(partial(matroska_tags, count)), reason="tags|processor")
    yield Case("1000_tags.mkv", _with(partial(matroska_tags, 1_000)), RIGHT, frames=25)
    yield Case("title_of_a_megabyte.mkv", lambda path, _lure: titled(path, "x" * 1_000_000), RIGHT, frames=25)
    for size in ((16_000, 16_000), (65_535, 65_535), (1, 65_535)):
        yield Case(f"{size[0]}x{size[1]}.avi", _huge(size), EITHER)
        yield Case(f"{size[0]}x{size[1]}.mp4", _huge_mp4(size), EITHER)
    yield Case("hardly_written.mp4", _sparse, reason="never written")
    yield Case("gaps_of_25_hours.mkv", _gaps, reason="limit is 24 hours")
    yield Case("packet_of_sound.mkv", _packet, reason="packet of its audio")
    for name, method in (("zlib", b"\0"), ("bzip", b"\1"), ("lzo", b"\2")):
        yield Case(f"packed_{name}.mkv", _written(partial(_packed, method)), EITHER)


def _written(data: Callable[[], bytes]) -> Maker:
    return lambda path, _lure: path.write_bytes(data())


def _with_table(table: dict[str, bytes]) -> bytes:
    return mp4(sample_tables(**table))


def _all_tables(count: int) -> bytes:
    """Tables that agree on a number of samples of one byte each."""
    return mp4(
        sample_tables(
            stsz=full_box(b"stsz", u32(1, count)),
            stts=full_box(b"stts", u32(1, count, 1)),
            stsc=full_box(b"stsc", u32(1, 1, count, 1)),
        )
    )


def _nested(kind: bytes, depth: int) -> bytes:
    """Boxes in boxes, each as long as all that it holds."""
    return b"".join(struct.pack(">I", 8 * (depth - n)) + kind for n in range(depth))


def _nested_ebml(depth: int) -> bytes:
    return _matroska(b"".join(b"\x45\xb9" + (1 << 56 | 10 * (depth - n)).to_bytes(8, "big") for n in range(depth)))


def _matroska(*parts: bytes) -> bytes:
    head = ebml("1a45dfa3", ebml("4282", b"matroska"), ebml("4287", b"\4"), ebml("4285", b"\2"))
    return head + bytes.fromhex("18538067") + b"\x01" + b"\xff" * 7 + b"".join(parts) + bytes(200)


def _seek_entry() -> bytes:
    return ebml("4dbb", ebml("53ab", bytes.fromhex("114d9b74")), ebml("53ac", b"\0"))


def _matroska_track(number: int) -> bytes:
    return ebml("ae", ebml("d7", u32(number)), ebml("73c5", u32(number)), ebml("83", b"\1"), ebml("86", b"V_VP8"))


def _chapter(number: int) -> bytes:
    return ebml("b6", ebml("73c4", u32(number)), ebml("91", u32(number)), ebml("80", ebml("85", b"x")))


def _packed(method: bytes) -> bytes:
    packing = ebml("6d80", ebml("6240", ebml("5034", ebml("4254", method), ebml("4255", bytes(9)))))
    track = ebml("ae", ebml("d7", b"\1"), ebml("73c5", b"\1"), ebml("83", b"\1"), ebml("86", b"V_VP8"), packing)
    blocks = (ebml("a3", b"\x81" + struct.pack(">h", n) + b"\x80" + b"x\x9c" + bytes(5000)) for n in range(50))
    return _matroska(ebml("1654ae6b", track), ebml("1f43b675", ebml("e7", b"\0"), *blocks))


def _tracks(count: int) -> bytes:
    whole = mp4(sample_tables())
    trak = whole[whole.index(b"trak") - 4 :]
    movie = full_box(b"mvhd", u32(0, 0, 1000, 1000, 0x10000), bytes(76), u32(2))
    return box(b"ftyp", b"isom", u32(0)) + box(b"mdat", bytes(200)) + box(b"moov", movie, trak * count)


def _fragments(duration: int) -> bytes:
    extends = box(b"mvex", full_box(b"trex", u32(1, 1, duration, 100, 0)))
    run = full_box(b"trun", u32(3), flags=0)
    traf = box(b"traf", full_box(b"tfhd", u32(1)), full_box(b"tfdt", u32(0)), run)
    fragment = box(b"moof", full_box(b"mfhd", u32(1)), traf) + box(b"mdat", bytes(400))
    empty = {name: full_box(name.encode(), u32(0)) for name in ("stts", "stsc", "stco")}
    return mp4(sample_tables(**empty, stsz=full_box(b"stsz", u32(0, 0))), more=extends) + fragment * 5


def _run(count: int, flags: int = 0x100) -> bytes:
    extends = box(b"mvex", full_box(b"trex", u32(1, 1, 1, 1, 0)))
    traf = box(b"traf", full_box(b"tfhd", u32(1)), full_box(b"trun", u32(count), bytes(99), flags=flags))
    empty = {name: full_box(name.encode(), u32(0)) for name in ("stts", "stsc", "stco")}
    film = mp4(sample_tables(**empty, stsz=full_box(b"stsz", u32(0, 0))), more=extends)
    return film + box(b"moof", full_box(b"mfhd", u32(1)), traf) + box(b"mdat", bytes(400))


def _info(count: int, kind: bytes = b"WAVE") -> bytes:
    rows = b"".join(b"K%03X" % (n % 4096) + struct.pack("<I", 2) + b"v\0" for n in range(count))
    info = b"LIST" + struct.pack("<I", 4 + len(rows)) + b"INFO" + rows
    sound = wav(48_000)[12:] if kind == b"WAVE" else b""
    return b"RIFF" + struct.pack("<I", 4 + len(info) + len(sound)) + kind + info + sound


def _with(extra: Callable[[], bytes]) -> Maker:
    def write(path: Path, _lure: Lure) -> None:
        film = plain(path.with_name("whole.mkv"), 1)
        in_segment(film, extra(), path)
        film.unlink()

    return write


def _huge(size: tuple[int, int]) -> Maker:
    """The size is a lie told by the headers alone."""

    def write(path: Path, _lure: Lure) -> None:
        data = bytearray(plain(path, 1, codec="mjpeg", size=(192, 112), kind="avi").read_bytes())
        for at in (data.index(b"strf") + 12, data.index(b"avih") + 40):
            data[at : at + 8] = struct.pack("<II", *size)
        while (at := data.find(b"\xff\xc0")) > 0:  # the headers of the pictures
            data[at : at + 2] = b"\xff\xc1"
            data[at + 5 : at + 9] = struct.pack(">HH", *reversed(size))
        path.write_bytes(data)

    return write


def _huge_mp4(size: tuple[int, int]) -> Maker:
    def write(path: Path, _lure: Lure) -> None:
        data = bytearray(plain(path, 1).read_bytes())
        at = data.index(b"avc1") + 28
        data[at : at + 4] = struct.pack(">HH", *size)
        path.write_bytes(data)

    return write


def _sparse(path: Path, _lure: Lure) -> None:
    plain(path, 1)
    os.truncate(path, 1 << 40)


def _gaps(path: Path, _lure: Lure) -> None:
    make(path, Film([i * 25 * 3_600_000 for i in range(30)], base=Fraction(1, 1000), kind="matroska", bframes=0))


def _packet(path: Path, _lure: Lure) -> None:
    """All the sound in one packet of 40 MB."""
    with av.open(str(path), "w", format="matroska") as out:
        stream = out.add_stream("pcm_s16le", rate=48_000, layout="mono")
        packet = av.Packet(bytes(40 << 20))
        packet.pts = packet.dts = 0
        packet.duration, packet.time_base, packet.stream = 436_000, Fraction(1, 1000), stream
        out.mux(packet)
