"""Screens: a pipe gets whole plain lines, a terminal colour at its own width; neither gets anything unclean."""

import io
from collections.abc import Mapping

import pytest

from rushes.surfaces.cli.screen import MARK, Column, Screen, shows_utf8
from rushes.surfaces.cli.views.hits import quote_parts


def screen(*, terminal: bool, width: int = 80, env: Mapping[str, str] | None = None) -> tuple[Screen, io.StringIO]:
    made, file = Screen(env=env or {"LANG": "C.UTF-8"}), io.StringIO()
    made.console.file = file
    made.console._force_terminal = terminal
    made.console._width, made.console._height = width, 25
    made.console._color_system = None
    if terminal:
        made.__dict__["utf8"] = shows_utf8(made._env, "utf-8")
    return made, file


ROWS = [
    ["vid_a", "a name that is much too long for the screen that it goes to", "0:55"],
    ["vid_b", "b", "1:02:03"],
]
COLUMNS = [Column("video"), Column("name", wide=True), Column("length", right=True)]


def test_a_table_gives_way_in_its_wide_column_on_a_terminal() -> None:
    made, file = screen(terminal=True, width=40)
    made.table(COLUMNS, ROWS)
    lines = file.getvalue().splitlines()
    assert [len(line) for line in lines] == [40, 40, 40]
    assert lines[1].startswith("vid_a  a name that")
    assert lines[1].endswith("0:55")
    assert "…" in lines[1]


def test_a_table_is_whole_and_without_titles_in_a_pipe() -> None:
    made, file = screen(terminal=False, width=40)
    made.table(COLUMNS, ROWS)
    lines = file.getvalue().splitlines()
    assert len(lines) == 2
    assert ROWS[0][1] in lines[0]


def test_a_terminal_without_utf8_gets_ascii_even_where_a_cell_is_cut() -> None:
    made, file = screen(terminal=True, width=40, env={"LANG": "C"})
    made.table(COLUMNS, [["vid_a", "Zo\u00eb " * 20, "0:55"]])
    made.row("Zo\u00eb " * 20)
    assert file.getvalue().isascii()


def test_columns_line_up_under_wide_letters() -> None:
    made, file = screen(terminal=True)
    made.table([Column(""), Column("")], [["映画", "x"], ["film", "y"]])
    assert file.getvalue() == "映画  x\nfilm  y\n"


def test_no_cell_line_or_label_lets_an_escape_through() -> None:
    for terminal in (True, False):
        made, file = screen(terminal=terminal)
        evil = "\x1b]52;c;aGk=\x07\x9b2J\u202e"
        made.table(COLUMNS, [[evil, (evil, "red"), [evil, (evil, "dim")]]])
        made.line(evil, (evil, "red"))
        made.row(evil)
        made.block("error", "red", evil)
        assert not set("\x1b\x07\x9b\u202e") & set(file.getvalue())


def test_a_file_is_cleaned_on_a_terminal_line_by_line() -> None:
    made, file = screen(terminal=True)
    made.raw(b"1\n00:00 --> 00:01\n\x1b[2Jhello\n")
    assert file.getvalue() == "1\n00:00 --> 00:01\n[2Jhello\n"


@pytest.mark.parametrize(
    ("env", "encoding", "speaks"),
    [
        ({"LANG": "en_GB.UTF-8"}, "utf-8", True),
        ({"LANG": "C"}, "utf-8", False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "utf-8", False),  # Python's own doing
        ({"LC_ALL": "POSIX", "LANG": "en_GB.UTF-8"}, "utf-8", False),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, "utf-8", True),
        ({}, "utf-8", True),
        ({"LANG": "en_GB.ISO-8859-1"}, "iso8859-1", False),
    ],
)
def test_utf8_is_what_the_person_set(env: Mapping[str, str], encoding: str, speaks: bool) -> None:
    assert shows_utf8(env, encoding) is speaks


def test_the_found_words_are_marked_and_a_long_line_is_cut_round_them() -> None:
    pieces = (("And so, my fellow Americans: ", False), ("ask not", True), (" what your country can do for you", False))
    whole = quote_parts(pieces, 0, utf8=True)
    assert ("ask not", MARK) in whole
    assert "".join(p if isinstance(p, str) else p[0] for p in whole) == f'"{"".join(t for t, _ in pieces)}"'
    short = "".join(p if isinstance(p, str) else p[0] for p in quote_parts(pieces, 40, utf8=True))
    assert len(short) <= 40
    assert "ask not" in short
    assert short.startswith('"...')
    assert short.endswith('..."')
