import ast
import hashlib
import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import av
import pytest

import rushes
from rushes.domain.errors import BadMedia, SourceMissing
from rushes.media.open import FORMATS, Limits, _check_counts, open_footage
from rushes.media.reading.probe import hash_file, probe
from tests.unit.media_files import Film, make, plain

SRC = Path(rushes.__file__).parent


def test_only_the_safe_door_opens_media() -> None:
    guilty = []
    for file in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            is_open = (
                isinstance(node, ast.Attribute)
                and node.attr == "open"
                and ast.unparse(node.value) in {"av", "container"}
            )
            if is_open or (
                isinstance(node, ast.ImportFrom) and node.module == "av" and any(a.name == "open" for a in node.names)
            ):
                guilty.append(file.relative_to(SRC).as_posix())
    assert set(guilty) == {"media/open.py"}


def _text(path: Path) -> None:
    path.write_text("Dear diary,\nthis is not a film.\n" * 20)


def _playlist(path: Path) -> None:
    plain(path.with_name("private.ts"), 1, kind="mpegts")
    path.write_text("#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nprivate.ts\n#EXT-X-ENDLIST\n")


def _concat(path: Path) -> None:
    plain(path.with_name("private.mp4"), 1)
    path.write_text("ffconcat version 1.0\nfile private.mp4\n")


def _concat_with_rubbish(path: Path) -> None:
    plain(path.with_name("private.mp4"), 1)
    path.write_bytes(b"ffconcat version 1.0\nfile private.mp4\n# \x80\x81\xff\n")


def _truncated(path: Path) -> None:
    plain(path, 2, muxing={"movflags": "faststart"}, noise=30)
    os.truncate(path, path.stat().st_size * 2 // 3)


def _no_index(path: Path) -> None:
    plain(path, 2)
    os.truncate(path, path.stat().st_size // 2)


def _no_time(path: Path) -> None:
    make(path, Film([0], tone=None))
    with path.open("r+b") as f:  # one picture, which lasts 0 ticks
        data = f.read()
        at = data.index(b"stts")
        f.seek(at + 8 + 4 + 4)
        f.write(b"\0\0\0\0")
        for box, offset in ((b"mdhd", 20), (b"tkhd", 24), (b"mvhd", 20)):
            f.seek(data.index(box) + offset)
            f.write(b"\0\0\0\0")
        if (edit := data.find(b"elst")) > 0:
            f.seek(edit + 12)
            f.write(b"\0\0\0\0")


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(100_000))


def _subtitles_only(path: Path) -> None:
    path.write_bytes(b"\x1a\x45\xdf\xa3" + bytes(200))


def _huge_picture(path: Path) -> None:
    # the size is a lie told by the header alone: as cheap to make as to refuse
    plain(path, 1, codec="mjpeg", size=(192, 112), kind="avi")
    data = bytearray(path.read_bytes())
    for width_at in (data.index(b"strf") + 12, data.index(b"avih") + 40):
        data[width_at : width_at + 8] = (16000).to_bytes(4, "little") * 2
    while (at := data.find(b"\xff\xc0")) > 0:  # the pictures' own headers
        data[at : at + 2] = b"\xff\xc1"
        data[at + 5 : at + 9] = (16000).to_bytes(2, "big") * 2
    path.write_bytes(data)


def _gaps_of_25_hours(path: Path) -> None:
    make(path, Film([i * 25 * 3_600_000 for i in range(30)], base=Fraction(1, 1000), kind="matroska", bframes=0))


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda p: p.write_bytes(b""), "is empty"),
    "text": (_text, "is a text"),
    "playlist": (_playlist, "is a playlist"),
    "concat": (_concat, "is a list of files"),
    "concat with rubbish": (_concat_with_rubbish, "is a list of files"),
    "truncated": (_truncated, "is truncated"),
    "no index": (_no_index, "cannot be read|is truncated"),
    "no time": (_no_time, "has no duration|has no video"),
    "zeros": (_zeros, "begins with zeros"),
    "matroska of nothing": (_subtitles_only, "cannot be read|holds no pictures|cut off"),
    "huge pictures": (_huge_picture, "16000 x 16000|million pixels"),
    "gaps of 25 hours": (_gaps_of_25_hours, "the limit is 24 hours"),
    "folder": (lambda p: p.mkdir(), "not a regular file"),
    "pipe": (os.mkfifo, "not a regular file"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_refused_in_words_and_leaves_nothing_behind(kind: str, tmp_path: Path) -> None:
    maker, words = BAD[kind]
    path = tmp_path / "x.mp4"
    maker(path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadMedia, match=words) as refused:
        probe(path)
    assert refused.value.advice
    assert sorted(tmp_path.rglob("*")) == before


def test_a_playlist_is_refused_whatever_its_name(tmp_path: Path) -> None:
    _playlist(tmp_path / "x.m3u8")
    with pytest.raises(BadMedia):
        probe(tmp_path / "x.m3u8")


@pytest.mark.parametrize(
    "name", ["concat:a.mp4|b.mp4", "-i.mp4", "a\nb 'c' \"d\".mp4", "ü😀.mp4", os.fsdecode(b"\xff\xfe.mp4"), "u%d.mp4"]
)
def test_odd_names_are_only_names(name: str, tmp_path: Path) -> None:
    plain(tmp_path / "plain.mp4", 1)
    shutil.move(tmp_path / "plain.mp4", tmp_path / name)
    assert probe(tmp_path / name).video


def test_a_name_with_nul_is_refused() -> None:
    with pytest.raises(BadMedia, match="NUL"):
        probe(Path("a\0b.mp4"))


def test_a_link_is_not_followed_by_the_door(tmp_path: Path) -> None:
    plain(tmp_path / "real.mp4", 1)
    (tmp_path / "link.mp4").symlink_to(tmp_path / "real.mp4")
    with pytest.raises(SourceMissing):
        probe(tmp_path / "link.mp4")


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="No such file"):
        probe(tmp_path / "gone.mp4")


def test_a_codec_outside_the_list_is_not_decoded(tmp_path: Path) -> None:
    film = Film(list(range(10)), base=Fraction(1, 25), codec="huffyuv", pixels="yuv422p")
    path = make(tmp_path / "x.avi", film)
    with pytest.raises(BadMedia, match="huffyuv"):
        probe(path)


def test_limits_can_be_set(tmp_path: Path) -> None:
    path = plain(tmp_path / "x.mp4", 2)
    with pytest.raises(BadMedia, match="over the limit"):
        probe(path, limits=Limits(pixels=1000))
    with pytest.raises(BadMedia, match="bytes"):
        probe(path, limits=Limits(size=1000))
    with pytest.raises(BadMedia, match="the limit is"):
        probe(path, limits=Limits(seconds=1))


def test_the_format_list_really_reaches_the_library(tmp_path: Path) -> None:
    path = tmp_path / "x.y4m"
    path.write_bytes(b"YUV4MPEG2 W64 H64 F25:1 Ip A1:1 C420\n" + (b"FRAME\n" + bytes(range(256)) * 24) * 3)
    with av.open(str(path)) as naive:
        assert naive.format.name == "yuv4mpegpipe"
    assert "yuv4mpegpipe" not in FORMATS
    with pytest.raises(BadMedia, match="not on the allow-list"), open_footage(path):
        pass


def test_the_hash_is_of_all_bytes_and_tells_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc" * 1_000_000)
    told: list[float] = []
    sha, size = hash_file(path, told.append)
    assert (sha, size) == (hashlib.sha256(path.read_bytes()).hexdigest(), 3_000_000)
    assert told == sorted(told)
    assert told[-1] == 1


@pytest.mark.parametrize("tags", [0, 5])
def test_a_film_may_have_four_times_the_streams_that_are_read(tags: int) -> None:
    limits, stream = Limits(streams=3, tags=5), SimpleNamespace(metadata=dict.fromkeys(map(str, range(tags))))

    def check(streams: int) -> None:
        container = SimpleNamespace(streams=[stream] * streams, metadata={})
        _check_counts(cast(av.container.InputContainer, container), "a film", limits)

    check(12)
    with pytest.raises(BadMedia, match="13 streams, over the limit of 12"):
        check(13)


def test_a_film_with_too_many_tags_is_refused() -> None:
    film = SimpleNamespace(streams=[SimpleNamespace(metadata={"a": "", "b": ""})], metadata={})
    with pytest.raises(BadMedia, match="2 tags, over the limit of 1"):
        _check_counts(cast(av.container.InputContainer, film), "a film", Limits(tags=1))
