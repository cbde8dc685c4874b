"""Text for people: nothing that a terminal obeys, and figures as they are read out."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rushes.surfaces.cli.screen import clean, clean_lines, relative_path, shorten
from rushes.surfaces.words import duration, plural, size, speed_factor, time_range


@given(st.text())
def test_no_text_whatever_brings_a_control_character_to_the_screen(text: str) -> None:
    kinds = {unicodedata.category(c) for c in clean(text) if c not in "\u200c\u200d"}
    assert not kinds & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(st.text(st.characters()))
def test_without_utf8_only_ascii_reaches_the_screen(text: str) -> None:
    assert all(" " <= c <= "~" for c in clean(text, utf8=False))


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b]0;owned\x07film", "]0;ownedfilm"),
        ("\x1b[2J\x1b[31mred", "[2J[31mred"),
        ("\x9b31mred", "31mred"),
        ("two\nlines\r\tand a tab", "two lines  and a tab"),
        ("\u202egnp.exe", "gnp.exe"),
        ("tag\U000e0041", "tag"),
        ("bytes \udcff that are no text", "bytes \ufffd that are no text"),
        ("👩\u200d👧 and Zoë", "👩\u200d👧 and Zoë"),
    ],
)
def test_hostile_names_become_harmless_ones(hostile: str, harmless: str) -> None:
    assert clean(hostile) == harmless


def test_letters_lose_their_accents_before_they_are_lost() -> None:
    assert clean("Zoë\u2019s caf\u00e9 \u2013 \u4e2d", utf8=False) == "Zoe's cafe - ?"


def test_lines_stay_lines_when_a_text_has_several() -> None:
    assert clean_lines("one\r\ntwo\x1b[0m\n\nfour") == "one\ntwo[0m\n\nfour"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "measuring"),
        ((0.1, 0.4), "under 1 s"),
        ((5, 7), "5-7 s"),
        ((29.6, 30.4), "30 s"),
        ((300, 420), "5-7 min"),
        ((1140, 1560), "19-26 min"),
        ((20, 200), "1-3 min"),
        ((5400, 9000), "1.5-2.5 h"),
        ((96, 134), "96-134 s"),
        ((5600, 5900), "93-98 min"),
        ((300, 302), "5 min"),
        ((10, 5), "10 s"),
    ],
)
def test_a_range_is_never_more_exact_than_it_is(seconds: tuple[float, float] | None, words: str) -> None:
    assert time_range(seconds) == words


def test_figures_are_read_out_in_units() -> None:
    assert [size(n) for n in (0, 999, 1000, 148_000_000, 1_300_000_000, 2 * 10**12)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "148 MB",
        "1.3 GB",
        "2.0 TB",
    ]
    assert [duration(s) for s in (0.5, 9.96, 59, 60, 1330, 7200)] == [
        "0.5 s",
        "10 s",
        "59 s",
        "1 min 0 s",
        "22 min 10 s",
        "2 h 0 min",
    ]
    assert [speed_factor(None), speed_factor(3.14), speed_factor(512.4)] == ["", "3.1x", "512x"]
    assert [plural(1, "hit"), plural(2, "hit"), plural(0, "loss", "losses")] == ["1 hit", "2 hits", "0 losses"]


def test_a_path_below_here_is_told_from_here(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))
    assert relative_path(f"{tmp_path}/a/b.mp4") == "a/b.mp4"
    assert relative_path("/elsewhere/b.mp4") == "/elsewhere/b.mp4"


@pytest.mark.parametrize(
    ("name", "room", "shown"),
    [
        ("film.mp4", 32, "film.mp4"),
        ("a" * 50 + ".mp4", 20, "aaaaaaaaa...aaaa.mp4"),
        ("日本語の長い名前のフィルム.mp4", 20, "日本語の長い....mp4"),
        ("a" * 50 + ".mp4", 0, "a" * 50 + ".mp4"),
    ],
)
def test_a_long_name_is_cut_in_the_middle(name: str, room: int, shown: str) -> None:
    assert shorten(name, room) == shown
    assert not room or cell_len(shorten(name, room)) <= room
