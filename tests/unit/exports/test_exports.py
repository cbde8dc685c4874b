"""Chapters, timelines, tables and files beside the film, as other programs read them."""

import csv
import errno
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import av
import opentimelineio
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from rushes.domain.errors import NoRoom, Refused
from rushes.domain.observation import Observation, load
from rushes.domain.span import Span
from rushes.exports.chapters import Chapter, ffmetadata, from_shots, webvtt
from rushes.exports.files_beside import path_beside, write_beside
from rushes.exports.tables import COLUMNS, as_csv, as_json_lines, as_parquet
from rushes.exports.timelines import Marker, TimelineMedia, edl, otio

MS = Fraction(1, 1000)
NTSC = Fraction(24000, 1001)
TITLES = [
    "plain",
    "a=b;c#d\\e",
    "line\nbreak\r\nSTART=0",
    "00:00:00.000 --> 00:00:09.000",
    "<b>&amp;</b>",
    "émoji 🎬",
    "",
]


def _never(_: str) -> bool:
    return False


def _always(_: str) -> bool:
    return True


def test_ffmpeg_reads_every_title_and_time_back(tmp_path: Path) -> None:
    base = Fraction(1001, 24000)
    chapters = [Chapter(Span(n * 24, (n + 1) * 24, base), title) for n, title in enumerate(TITLES)]
    path = tmp_path / "chapters.txt"
    path.write_bytes(ffmetadata(chapters))
    with av.open(str(path), format="ffmetadata") as file:
        read = file.chapters()
    assert [c["metadata"]["title"] for c in read] == [*(" ".join(t.split()) for t in TITLES[:-1]), "Chapter 7"]
    assert [(c["start"] * (c["time_base"] or 0), c["end"] * (c["time_base"] or 0)) for c in read] == [
        (c.span.start * base, c.span.end * base) for c in chapters
    ]


@settings(deadline=None)
@given(st.lists(st.text(), max_size=5))
def test_no_title_can_add_a_chapter(titles: list[str]) -> None:
    chapters = [Chapter(Span(n, n + 1, Fraction(1)), title) for n, title in enumerate(titles)]
    assert webvtt(chapters).decode().count("-->") == len(titles)
    assert ffmetadata(chapters).decode().split("\n").count("[CHAPTER]") == len(titles)


def test_chapters_for_browsers_are_escaped_and_never_empty() -> None:
    text = webvtt([Chapter(Span(0, 0, MS), "<i>"), Chapter(Span(3_723_004, 3_724_000, MS), "two")]).decode()
    assert text == ("WEBVTT\n\n1\n00:00:00.000 --> 00:00:00.001\n&lt;i&gt;\n\n2\n01:02:03.004 --> 01:02:04.000\ntwo\n")


def test_shots_are_numbered_chapters() -> None:
    assert [c.title for c in from_shots([Span(0, 1, MS), Span(1, 2, MS)])] == ["Shot 1", "Shot 2"]


def _film(frames: int, base: Fraction = 1 / NTSC, rate: Fraction | None = NTSC, start: int = 0) -> TimelineMedia:
    length = round(frames / (rate or NTSC) / base)
    return TimelineMedia("film.mp4", "/media/film.mp4", Span(start, start + length, base), rate)


def test_an_edl_counts_frames_and_its_ends_are_exclusive() -> None:
    lines = edl(_film(100_000), [Span(0, 240, 1 / NTSC), Span(240, 86_400, 1 / NTSC)]).decode().split("\r\n")
    assert lines[:3] == ["TITLE: film.mp4", "FCM: NON-DROP FRAME", ""]
    assert lines[3] == "001  AX       V     C        00:00:00:00 00:00:10:00 00:00:00:00 00:00:10:00"
    assert lines[5] == "002  AX       V     C        00:00:10:00 01:00:00:00 00:00:10:00 01:00:00:00"


@pytest.mark.parametrize("base", [Fraction(1, 24000), Fraction(1, 90000), MS])
def test_an_edl_is_exact_at_ntsc_rates_after_hours_in_any_time_base(base: Fraction) -> None:
    frames = [0, 1, 23, 24, 143_855, 259_200]
    ticks = [round(f / NTSC / base) for f in frames]
    shots = [Span(a, b, base) for a, b in pairwise(ticks)]
    codes = [line.split()[4:6] for line in edl(_film(300_000, base), shots).decode().split("\r\n")[3::2] if line]
    counted = [[_count(c) for c in pair] for pair in codes]
    assert counted == [[a, b] for a, b in pairwise(frames)]


def _count(code: str) -> int:
    hours, minutes, seconds, frames = map(int, code.split(":"))
    return ((hours * 60 + minutes) * 60 + seconds) * 24 + frames


def test_a_film_that_does_not_begin_at_zero_begins_at_zero_in_time_code() -> None:
    shots = [Span(1000, 1040, Fraction(1, 25))]
    text = edl(_film(100, Fraction(1, 25), Fraction(25), start=1000), shots).decode()
    assert "00:00:00:00 00:00:01:15" in text


def test_variable_frame_rates_are_refused_as_edl_and_exact_as_otio() -> None:
    shots = [Span(0, 1017, MS), Span(1017, 2500, MS)]
    film = TimelineMedia("phone.mp4", "phone.mp4", Span(0, 2500, MS), Fraction(30))
    for wobbly in (film, TimelineMedia("phone.mp4", "phone.mp4", film.span, None)):
        with pytest.raises(Refused, match="variable frame rate"):
            edl(wobbly, shots)
        clips = json.loads(otio(wobbly, shots))["tracks"]["children"][0]["children"]
        assert clips[1]["source_range"]["start_time"] == {"OTIO_SCHEMA": "RationalTime.1", "rate": 1000, "value": 1017}
        assert clips[1]["source_range"]["duration"]["value"] == 1483


def test_a_last_frame_of_odd_length_does_not_make_the_rate_variable() -> None:
    film = TimelineMedia("a.mp4", "a.mp4", Span(0, 1017, MS), Fraction(25))
    assert "00:00:00:00 00:00:01:00" in edl(film, [Span(0, 1017, MS)]).decode()


def test_otio_is_in_frames_at_a_constant_rate() -> None:
    doc = json.loads(otio(_film(1000), [Span(0, 240, 1 / NTSC), Span(240, 1000, 1 / NTSC)]))
    clips = doc["tracks"]["children"][0]["children"]
    assert [c["source_range"]["duration"]["value"] for c in clips] == [240, 760]
    assert clips[0]["source_range"]["duration"]["rate"] == 24000 / 1001
    assert clips[0]["media_reference"]["available_range"]["duration"]["value"] == 1000
    assert clips[0]["media_reference"]["target_url"] == "file:///media/film.mp4"


def test_a_film_in_a_bucket_is_referenced_by_its_address() -> None:
    film = TimelineMedia("a b.mp4", "s3://bucket/films/a b.mp4", Span(0, 10, Fraction(1, 25)), Fraction(25))
    (clip,) = json.loads(otio(film, [Span(0, 10, Fraction(1, 25))]))["tracks"]["children"][0]["children"]
    assert clip["media_reference"]["target_url"] == "s3://bucket/films/a%20b.mp4"


def test_names_that_are_not_text_make_no_broken_timeline() -> None:
    film = TimelineMedia("caf\udce9.mp4", "/m/caf\udce9 ü.mp4", Span(0, 10, Fraction(1, 25)), Fraction(25))
    doc = json.loads(otio(film, [Span(0, 10, Fraction(1, 25))]))
    assert (
        doc["tracks"]["children"][0]["children"][0]["media_reference"]["target_url"] == "file:///m/caf%E9%20%C3%BC.mp4"
    )
    assert b"caf_.mp4" in edl(film, [Span(0, 10, Fraction(1, 25))])


MARKERS = [
    Marker("Good evening\udce9", Span(2000, 3000, MS), "speech"),
    Marker("Anna", Span(12_000, 14_000, MS), "person"),
    Marker("EXIT", Span(41_708, 41_709, MS), "text"),  # the last frame
]


def test_editors_get_markers_and_the_sound_track() -> None:
    film = replace(_film(1000), sound=True)
    shots = [Span(0, 240, 1 / NTSC), Span(240, 1000, 1 / NTSC)]
    timeline = opentimelineio.adapters.read_from_string(otio(film, shots, MARKERS).decode(), "otio_json")
    picture, sound = timeline.tracks
    assert (picture.kind, sound.kind, len(picture), len(sound)) == ("Video", "Audio", 2, 2)
    assert timeline.duration().value == 1000
    marked = [[(m.name, m.color, int(m.marked_range.start_time.value)) for m in clip.markers] for clip in picture]
    assert marked == [
        [("Good evening\ufffd", "GREEN", 47)],
        [("Anna", "CYAN", 287), ("EXIT", "YELLOW", 999)],
    ]
    lines = edl(film, shots, MARKERS).decode().split("\r\n")
    assert lines[3] == "001  AX       AA/V  C        00:00:00:00 00:00:10:00 00:00:00:00 00:00:10:00"
    assert [line for line in lines if "LOC" in line] == [
        "* LOC: 00:00:01:23 GREEN   Good evening_",
        "* LOC: 00:00:11:23 CYAN    Anna",
        "* LOC: 00:00:41:15 YELLOW  EXIT",
    ]


def test_parquet_holds_everything_in_typed_columns() -> None:
    box = replace(_line("two"), box=(0.1, 0.2, 0.3, 0.4), extra={"segment": "seg_1"})
    table = parquet.read_table(io.BytesIO(as_parquet([_line("caf\udce9"), box], "film")))
    rows = table.to_pylist()
    assert (table.schema.field("start_us").type, rows[0]["text"]) == (pyarrow.int64(), "caf?")
    assert (rows[1]["start_us"], rows[1]["end_us"], rows[1]["confidence"]) == (1_500_000, 2_750_000, 0.5)
    assert (rows[0]["box"], rows[1]["box"], rows[1]["extra"]) == (None, [0.1, 0.2, 0.3, 0.4], '{"segment":"seg_1"}')
    assert parquet.read_table(io.BytesIO(as_parquet([]))).num_rows == 0


def _line(text: str) -> Observation:
    return Observation("speech", Span(1500, 2750, MS), text, 0.5, "en")


def test_a_table_has_one_row_per_observation_whatever_it_says() -> None:
    texts = ["plain", 'quo"te, comma', "two\nlines", "é🎬", "nul\0"]
    rows = list(csv.reader(io.StringIO(as_csv(map(_line, texts), "film").decode(), newline="")))
    assert tuple(rows[0]) == COLUMNS
    assert [row[-1] for row in rows[1:]] == ["plain", 'quo"te, comma', "two\nlines", "é🎬", "nul"]
    assert rows[1][:6] == ["film", "speech", "0:01.500", "0:02.750", "1500000", "2750000"]


@pytest.mark.parametrize("text", ["=1+1", "+1", "@x", "-2+3", "\t=1"])
def test_no_cell_is_run_as_a_formula(text: str) -> None:
    rows = list(csv.reader(io.StringIO(as_csv([_line(text), _line("- said she")]).decode())))
    assert rows[1][-1] == "'" + text
    assert rows[2][-1] == "- said she"


def test_json_lines_hold_everything() -> None:
    lines = [_line("one"), _line("two\nthree")]
    data = as_json_lines(lines, "vid_1")
    assert list(load(data)) == lines
    assert json.loads(data.splitlines()[0])["start_us"] == 1_500_000
    assert json.loads(data.splitlines()[0])["video"] == "vid_1"


def test_names_beside_are_what_players_read() -> None:
    film = Path("/m/My Film (2010).v2.mkv")
    assert path_beside(film, "en", "srt").name == "My Film (2010).v2.en.srt"
    assert path_beside(film, "pt-BR", "words.json").name == "My Film (2010).v2.pt-BR.words.json"
    assert path_beside(film, "", "edl").name == "My Film (2010).v2.edl"
    assert path_beside(film, "../x\0", "srt").parent == film.parent


def test_a_new_file_is_written_and_the_same_bytes_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.en.srt"
    assert write_beside(path, b"one", _never)
    before = path.stat()
    assert not write_beside(path, b"one", _never)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert [p.name for p in tmp_path.iterdir()] == ["a.en.srt"]


def test_only_what_we_wrote_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.en.srt"
    write_beside(path, b"one", _never)
    ours = hashlib.sha256(b"one").hexdigest()
    assert write_beside(path, b"two", ours.__eq__)
    path.write_bytes(b"corrected by hand")
    with pytest.raises(Refused, match="not written by rushes"):
        write_beside(path, b"three", ours.__eq__)
    assert path.read_bytes() == b"corrected by hand"
    assert [p.name for p in tmp_path.iterdir()] == ["a.en.srt"]


def test_links_pipes_and_folders_are_never_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "link.srt").symlink_to(precious)
    (tmp_path / "dangling.srt").symlink_to(tmp_path / "nothing")
    (tmp_path / "folder.srt").mkdir()
    os.mkfifo(tmp_path / "pipe.srt")
    for name in ("link", "dangling", "folder", "pipe"):
        with pytest.raises(Refused):
            write_beside(tmp_path / f"{name}.srt", b"new", _always)
    assert precious.read_text() == "precious"
    assert not (tmp_path / "nothing").exists()


def test_somebody_who_is_quicker_keeps_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "a.srt", os.link

    def late(source: Path, target: Path, **kwargs: bool) -> None:
        path.write_bytes(b"quicker")
        real(source, target, **kwargs)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(Refused):
        write_beside(path, b"slower", _always)
    assert path.read_bytes() == b"quicker"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_without_links_still_gets_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    assert write_beside(tmp_path / "a.srt", b"one", _never)
    assert write_beside(tmp_path / "a.srt", b"two", _always)
    assert (tmp_path / "a.srt").read_bytes() == b"two"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_name_that_a_killed_writer_took_on_a_disk_without_links_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """Nothing catches it."""

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", Mock(side_effect=OSError(errno.EPERM, "Operation not permitted")))
        patched.setattr(Path, "replace", killed)
        with pytest.raises(Killed):
            write_beside(tmp_path / "a.srt", b"one", _never)
    assert (tmp_path / "a.srt").read_bytes() == b""
    assert write_beside(tmp_path / "a.srt", b"one", _never)
    assert (tmp_path / "a.srt").read_bytes() == b"one"


def test_a_folder_that_cannot_be_written_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused):
        write_beside(tmp_path / "gone" / "a.srt", b"x", _never)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(NoRoom):
            write_beside(tmp_path / "a.srt", b"x", _never)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_writer_left_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    code = f"""
from pathlib import Path
from unittest.mock import Mock
from rushes.exports.files_beside import write_beside
write_beside(Path({str(path)!r}), b"one", lambda _: False)
"""
    count = tmp_path.with_name("passed")
    env = {**os.environ, "RUSHES_CRASH": "publish:before#1", "RUSHES_CRASH_COUNT": str(count)}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == -signal.SIGKILL
    assert [p.name[0] for p in tmp_path.iterdir()] == ["."]
    assert write_beside(path, b"one", _never)
    assert list(tmp_path.iterdir()) == [path]
