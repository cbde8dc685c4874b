"""Files that are no footage, or footage that points elsewhere: nothing of what they name may be opened."""

import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.hostile.case import Case, Expectation, Lure, Maker
from tests.hostile.containers import box, ebml, full_box, in_segment, mp4, sample_tables, u32
from tests.unit.media_files import plain

PLACES: dict[str, Callable[[Lure], str]] = {
    "path": lambda lure: str(lure.film),
    "file": lambda lure: f"file://{lure.film}",
    "http": lambda lure: lure.url,
    "concat": lambda lure: f"concat:{lure.film}|{lure.film}",
    "subfile": lambda lure: f"subfile,,start,0,end,999,,:{lure.text}",
    "crypto": lambda lure: f"crypto:{lure.film}",
    "data": lambda _lure: "data:text/plain;base64,c2VjcmV0",
    "tcp": lambda lure: lure.url.replace("http", "tcp"),
    "parent": lambda lure: f"../{lure.film.parent.name}/{lure.film.name}",
}
LISTS: dict[str, Callable[[str], str]] = {
    "m3u8": lambda to: f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{to}\n#EXT-X-ENDLIST\n",
    "m3u8_key": lambda to: f'#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="{to}"\n#EXTINF:2,\n{to}\n#EXT-X-ENDLIST\n',
    "m3u8_bom": lambda to: f"\ufeff \r\n#ExtM3U\n#EXTINF:2,\n{to}\n",
    "m3u8_map": lambda to: f'#EXTM3U\n#EXT-X-MAP:URI="{to}"\n#EXTINF:2,\n{to}\n',
    "concat": lambda to: f"ffconcat version 1.0\nfile '{to}'\n",
    "concat_plain": lambda to: f"file '{to}'\nduration 2\n",
    "mpd": lambda to: f'<?xml version="1.0"?><MPD><Period><BaseURL>{to}</BaseURL></Period></MPD>',
    "pls": lambda to: f"[playlist]\nFile1={to}\nNumberOfEntries=1\n",
    "asx": lambda to: f'<asx version="3.0"><entry><ref href="{to}"/></entry></asx>',
    "sdp": lambda _to: "v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\n",
    "smil": lambda to: f'<smil><body><video src="{to}"/></body></smil>',
    "xxe": lambda to: f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY y SYSTEM "{to}">]><MPD>&y;</MPD>',
    "svg": lambda to: f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{to}"/></svg>',
    "qtl": lambda to: f'<?quicktime type="application/x-quicktime-media-link"?><embed src="{to}"/>',
    "ffmetadata": lambda to: f";FFMETADATA1\ntitle={to}\n",
    "avs": lambda to: f'DirectShowSource("{to}")\n',
    "vpy": lambda to: f"import os; os.system('cat {to}')\n",
}
HEADS: dict[str, bytes] = {
    "empty": b"",
    "one_byte": b"\0",
    "zeros": bytes(100_000),
    "ones": b"\xff" * 100_000,
    "elf": b"\x7fELF\2\1\1" + bytes(2000),
    "pdf": b"%PDF-1.7\n\xe2\xe3\xcf\xd3\n" + bytes(2000),
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\2\0\0\0" + bytes(2000),
    "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xc0\0\x11\x08\xff\xff\xff\xff\3" + bytes(2000),
    "gif": b"GIF89a\xff\xff\xff\xff\xf7\0\0" + bytes(2000),
    "bmp": b"BM" + bytes(8) + b"\x36\0\0\0\x28\0\0\0\xff\xff\xff\x7f\xff\xff\xff\x7f\1\0\x18\0" + bytes(2000),
    "gzip": b"\x1f\x8b\x08\0\0\0\0\0\0\3" + bytes(2000),
    "y4m": b"YUV4MPEG2 W64 H64 F25:1 Ip A1:1 C420\n" + (b"FRAME\n" + bytes(range(256)) * 24) * 3,
    "html": b"<html><body><video src='x'></video></body></html>" + bytes(10),
    "srt": b"1\n00:00:01,000 --> 00:00:02,000\nHello\n",
    "ass": b"[Script Info]\nScriptType: v4.00+\n\xff\xfe",
    "nut": b"nut/multimedia container\0" + bytes(2000),
    "swf": b"CWS\x0a" + bytes(2000),
    "rtp": b"#!rtpplay1.0 127.0.0.1/5004\n" + bytes(200),
    "sqlite": b"SQLite format 3\0" + bytes(4000),
    "random": bytes((n * 7919 + n // 251) % 256 for n in range(100_000)),
    "ftyp_only": box(b"ftyp", b"isom", u32(0)),
    "ebml_only": b"\x1a\x45\xdf\xa3\x80",
    "riff_only": b"RIFF\xff\xff\xff\x7fWAVE",
    "avi_only": b"RIFF\xff\xff\xff\x7fAVI LIST",
    "ogg_only": b"OggS\0\2" + bytes(22),
    "flv_only": b"FLV\1\5\0\0\0\t\0\0\0\0",
    "asf_only": bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c") + bytes(100),
    "mxf_only": bytes.fromhex("060e2b34020501010d01020101020400") + bytes(100),
    "ts_only": (b"G\x1f\xff\x10" + b"\xff" * 184) * 100,
    "ps_only": b"\0\0\1\xba" + bytes(2000),
    "caf_only": b"caff\0\1\0\0desc" + bytes(100),
    "aiff_only": b"FORM\0\0\0\x20AIFFCOMM" + bytes(100),
    "flac_only": b"fLaC\x80\0\0\x22" + bytes(34),
    "dv_only": b"\x1f\x07\0\x3f" + bytes(79) + bytes(2000),
    "mp3_only": b"\xff\xfb\x90\x64" + bytes(20),
}


def cases() -> Iterator[Case]:
    """All of them."""
    for kind, write in LISTS.items():
        for place, to in PLACES.items():
            if kind.startswith(("m3u8", "concat")) or place in ("path", "http"):
                yield Case(f"{kind}_{place}.mp4", _naming(write, to))
    for name, head in HEADS.items():
        expect = Expectation.EITHER if name == "dv_only" else Expectation.REFUSED  # zeros are a black picture of DV
        yield Case(f"{name}.mp4", _data(head), expect)
    yield Case("zip.mp4", _zip)
    yield Case("folder.mp4", lambda path, _lure: path.mkdir(), reason="regular file")
    yield Case("pipe.mp4", lambda path, _lure: os.mkfifo(path), reason="regular file")
    yield Case("link.mp4", lambda path, lure: path.symlink_to(lure.film), reason="link")
    yield Case("device.mp4", lambda path, _lure: path.symlink_to("/dev/zero"), reason="link")
    yield Case("list_behind_zero.mp4", lambda path, lure: path.write_bytes(b"\0#EXTM3U\n" + os.fsencode(lure.film)))
    for place, to in PLACES.items():
        yield Case(f"dref_{place}.mov", _naming(_dref, to))
        yield Case(f"rmra_{place}.mov", _naming(_reference_movie, to))
    yield Case("dref_alias.mov", lambda path, lure: path.write_bytes(_alias(lure)))
    for name in ("linked_segment.mkv", "attached_list.mkv", "linked_chapters.mkv"):
        yield Case(name, _linked, Expectation.RIGHT, frames=25)


def _naming(write: Callable[[str], str | bytes], to: Callable[[Lure], str]) -> Maker:
    def make(path: Path, lure: Lure) -> None:
        data = write(to(lure))
        path.write_bytes(data if isinstance(data, bytes) else data.encode())

    return make


def _data(data: bytes) -> Maker:
    return lambda path, _lure: path.write_bytes(data)


def _zip(path: Path, lure: Lure) -> None:
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("x.mp4", str(lure.film))


def _dref(to: str) -> bytes:
    """Samples that lie in another file."""
    return mp4(sample_tables(), dref=full_box(b"dref", u32(1), full_box(b"url ", to.encode() + b"\0")))


def _alias(lure: Lure) -> bytes:
    name = lure.film.name.encode()
    alias = bytes(46) + bytes([len(name)]) + name.ljust(63, b"\0") + bytes(30) + b"\0\2" + u32(len(str(lure.film)))
    return mp4(sample_tables(), dref=full_box(b"dref", u32(1), full_box(b"alis", alias, str(lure.film).encode())))


def _reference_movie(to: str) -> bytes:
    """A film that is another film."""
    target = full_box(b"rdrf", b"url ", u32(len(to) + 1), to.encode() + b"\0")
    return box(b"ftyp", b"qt  ", u32(0)) + box(b"moov", box(b"rmra", box(b"rmda", target)))


def _linked(path: Path, lure: Lure) -> None:
    """A film that names other segments, brings a playlist along, or has chapters in another file."""
    film = plain(path.with_name("whole.mkv"), 1)
    target = str(lure.film).encode()
    links = (
        ebml("3cb923", bytes(range(16))) + ebml("3c83ab", target) + ebml("3e83bb", target) + ebml("3eb923", bytes(16))
    )
    playlist = f"#EXTM3U\n#EXTINF:2,\n{lure.film}\n".encode()
    parts = {
        "linked_segment.mkv": ebml("1549a966", ebml("2ad7b1", u32(1_000_000)), links),
        "attached_list.mkv": ebml(
            "1941a469",
            ebml(
                "61a7",
                ebml("466e", b"x.m3u8"),
                ebml("4660", b"application/x-mpegurl"),
                ebml("465c", playlist),
                ebml("46ae", b"\1"),
            ),
        ),
        "linked_chapters.mkv": ebml(
            "1043a770", ebml("45b9", ebml("b6", ebml("73c4", b"\1"), ebml("91", b"\0"), ebml("6e67", bytes(16))))
        ),
    }
    in_segment(film, parts[path.name], path)
    film.unlink()
