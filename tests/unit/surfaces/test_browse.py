"""Looking: ls, show, search, clip and export, for people and for programs, with films that mean harm."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rushes.index.port import SearchResult
from rushes.library import Clip
from rushes.library.videos.export import KINDS
from rushes.surfaces.cli.commands import browse, clips, search
from rushes.surfaces.cli.main import main
from tests.unit.cli_library import Shelf, hit, line, video

EVIL = "\x1b]0;owned\x07 film\n\x9b31m\u202e.mp4"
Invoke = Callable[..., Result]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    made = Shelf(tmp_path / "home")
    for module in (browse, clips, search):
        monkeypatch.setattr(module, "open_library", lambda _session, **_more: made)
    return made


def rushes(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def harmless(shown: Result) -> bool:
    return not set("\x1b\x07\x9b\u202e") & set(shown.stdout + shown.stderr)


def test_search_groups_hits_by_film_and_tells_the_next_command(shelf: Shelf) -> None:
    pieces = (("...Americans: ", False), ("ask not", True), (" what your country...", False))
    shelf.found = SearchResult((hit(pieces), hit(pieces, 11_400, 12_000)), total=6, videos=3, cursor="c2", took_ms=14.2)
    shown = rushes("search", "ask", "not", "--limit", "2")
    assert shown.stdout.splitlines() == [
        "two_cities.mkv  2 hits",
        '   12:41.000  "...Americans: ask not what your country..."',
        '    0:11.400  "...Americans: ask not what your country..."',
    ]
    assert shown.stderr.splitlines() == [
        "2 of 6 hits, 3 videos, 14 ms",
        "more: --page 2",
        "next: rushes clip vid_aaaabbbbccccdddd@12:41.000-12:44.500",
    ]
    assert shelf.asked == [("ask not", 2, "", "")]


def test_a_hit_that_was_seen_and_not_said_says_so(shelf: Shelf) -> None:
    shelf.found = SearchResult((hit((("SALE", True),), 11_400, 12_000, kind="text"),), total=1, videos=1)
    assert rushes("search", "sale").stdout.splitlines()[1] == '    0:11.400  "SALE"  text'


def test_search_for_programs_has_the_exact_range_and_a_reference(shelf: Shelf) -> None:
    shelf.found = SearchResult((hit((("ask not", True),)),), total=1, videos=1)
    doc = json.loads(rushes("search", "ask not", "--json").stdout)
    assert doc["total"] == 1
    (found,) = doc["hits"]
    assert found["ref"] == "vid_aaaabbbbccccdddd@12:41.000-12:44.500"
    assert (found["start_us"], found["end_us"]) == (761_000_000, 764_500_000)
    assert found["span"] == [761_000, 764_500, 1, 1000]
    assert found["pieces"] == [["ask not", True]]


@pytest.mark.parametrize(
    ("args", "query"),
    [
        (["-budget"], "-budget"),
        (["ask", "-vorbis", "-quiet"], "ask -vorbis -quiet"),
        (['"ask not" -budget OR holi*'], '"ask not" -budget OR holi*'),
        (["--", "--odd"], "--odd"),
        (["-budget plan", "--limit", "20"], "-budget plan"),
    ],
)
def test_a_word_that_must_not_be_there_is_no_option(shelf: Shelf, args: list[str], query: str) -> None:
    assert rushes("search", *args).exit_code == 0
    assert shelf.asked[0][0] == query


def test_an_empty_search_says_what_there_is_to_find(shelf: Shelf) -> None:
    shown = rushes("search")
    assert shown.stdout.startswith("1 video, 41:38: speech 240 (en de)\n")
    shelf.films = []
    assert "rushes run PATH" in rushes("search").stdout


def test_a_search_without_hits_says_what_to_try(shelf: Shelf) -> None:
    shelf.films = [video(state="chunking_complete")]
    shown = rushes("search", "constitutional")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert shown.stderr.splitlines() == [
        "no hits",
        "try fewer or other words, or the start of one: rushes search 'cons*'",
        "searched 1 video (41 min 38 s)",
        "1 video not finished yet: rushes jobs ls",
    ]
    assert "try without --video, or fewer" in rushes("search", "x", "--video", "two_cities.mkv").stderr


def test_a_word_that_nearly_was_said_is_offered(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.said.append(line("Ask what your COUNTRY can do"))
    found = SearchResult((hit((("country", True),)),), total=1, videos=1)
    monkeypatch.setattr(shelf, "search", lambda query, *_: found if "country" in query else SearchResult())
    assert "did you mean: rushes search 'your country'" in rushes("search", "your", "cuontry").stderr
    assert "did you mean" not in rushes("search", "zebra").stderr


def test_a_kind_without_that_hit_is_told_by_what_there_is_of_it(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tuple(hit(((text, False),), kind="object") for text in ("cat", "car", "cat"))
    monkeypatch.setattr(
        shelf, "search", lambda query, *_: SearchResult(seen) if query == "kind:object" else SearchResult()
    )
    assert "object labels found so far: cat, car" in rushes("search", "object:cup").stderr.splitlines()
    assert "what there is" not in rushes("search", "place:beach").stderr


def test_films_that_mean_harm_do_none(shelf: Shelf) -> None:
    shelf.films = [replace(video(EVIL), title=EVIL, path=EVIL, languages=(EVIL,))]
    shelf.said = [line(EVIL)]
    shelf.found = SearchResult((hit(((EVIL, False), (EVIL, True)), name=EVIL),), total=1, videos=1, note=EVIL)
    for command in (["ls"], ["show", "vid_", "--lines"], ["search", "x"], ["show", EVIL + "?"]):
        assert harmless(rushes(*command)), command
        assert harmless(rushes(*command, "--json")), command
    assert json.loads(rushes("ls", "--json").stdout)["videos"][0]["name"] == EVIL


def test_ls_and_show_tell_what_there_is(shelf: Shelf) -> None:
    shelf.said = [line("It was the best of times", 966), line("it was the worst of times", 2500)]
    shown = rushes("ls")
    assert shown.stdout.split() == ["vid_aaaabbbbccccdddd", "two_cities.mkv", "41:38", "1920x1080", "25", "fps", "done"]
    lines = rushes("show", "two_cities.mkv", "--lines").stdout.splitlines()
    assert lines[0] == "two_cities.mkv  vid_aaaabbbbccccdddd"
    assert "video  41:38  1920x1080 25 fps  MKV  1.3 GB" in lines
    assert "made   12 words  2 lines" in lines
    assert lines[-2:] == ["    0:00.966  It was the best of times", "    0:02.500  it was the worst of times"]
    doc = json.loads(rushes("show", "two_cities.mkv", "--json").stdout)
    assert (doc["video"]["duration_us"], doc["made"]["words"]) == (2_498_000_000, 12)


def test_a_list_that_goes_on_says_how(shelf: Shelf) -> None:
    shelf.films = [video("a.mp4"), video("b.mp4")]
    assert "more: rushes ls --limit 1 --page 2" in rushes("ls", "--limit", "1").stderr
    assert rushes("ls", "--limit", "1", "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("args", "asked"),
    [
        (["two_cities.mkv", "--from", "12:41", "--to", "12:45.5"], (761_000_000, 765_500_000, 0)),
        (["two_cities.mkv", "--from", "1", "--to", "2.0", "--padding", "0.5"], (1_000_000, 2_000_000, 500)),
        (["vid_aaaa@12:41.000-12:44.500"], (761_000_000, 764_500_000, 2000)),
        (["vid_aaaa@12:41.000-12:44.500", "--padding", "0"], (761_000_000, 764_500_000, 0)),
    ],
)
def test_a_clip_is_asked_for_by_times_or_a_hit(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, args: list[str], asked: tuple[int, int, int]
) -> None:
    def clip(_video: str, start_us: int, end_us: int, padding_ms: int, *_more: Any, **_: Any) -> Clip:
        shelf.asked.append((start_us, end_us, padding_ms))
        return Clip("clip_x", "vid_aaaabbbbccccdddd", start_us, end_us, "/home/clip_x.mp4", 1_000_000, made=True)

    monkeypatch.setattr(shelf, "clip", clip)
    shown = rushes("clip", *args)
    assert shelf.asked == [asked]
    assert shown.stdout == "/home/clip_x.mp4\n"


def test_a_clip_is_never_written_over_a_file(shelf: Shelf, tmp_path: Path) -> None:
    there = tmp_path / "there.mp4"
    there.write_bytes(b"mine")
    shown = rushes("clip", "two_cities.mkv", "--from", "1", "--to", "2", "--out", str(there))
    assert shown.exit_code == 2
    assert there.read_bytes() == b"mine"


def test_an_export_is_exact_in_a_pipe_and_never_over_a_file(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = "1\n00:00:00,966 --> 00:00:04,526\nZo\u00eb \x1b[0m\n".encode()
    monkeypatch.setitem(KINDS, "srt", lambda _house, _video: data)
    assert rushes("export", "two_cities.mkv", "srt").stdout_bytes == data
    assert rushes("export", "two_cities.mkv", "srt", "--out", "-").stdout_bytes == data
    out = tmp_path / "x.srt"
    assert rushes("export", "two_cities.mkv", "srt", "--out", str(out)).exit_code == 0
    assert out.read_bytes() == data
    assert rushes("export", "two_cities.mkv", "srt", "--out", str(out)).exit_code == 2
