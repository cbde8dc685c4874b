"""Subtitles: whatever is said, the file is valid and readable."""

import re
from fractions import Fraction
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.media.subtitles import (
    FASTEST_SPEED,
    MAX_COLUMNS,
    MAX_CUE_MS,
    MAX_DELAY_MS,
    MIN_GAP_MS,
    Cue,
    columns,
    cues,
    srt,
    text,
    vtt,
)

BASE = Fraction(1, 16000)
TIME = re.compile(r"^\d{2,}:\d\d:\d\d[,.]\d{3} --> \d{2,}:\d\d:\d\d[,.]\d{3}$")


def said(words: str, start: float = 0.0, step: float = 0.3, language: str = "en") -> Observation:
    """A line whose words follow each other at an even pace."""
    parts = words.split(" ")
    times = [
        (w, int((start + n * step) * 16000), int((start + (n + 0.9) * step) * 16000), 0.9) for n, w in enumerate(parts)
    ]
    return Observation("speech", Span(times[0][1], times[-1][2], BASE), words, 0.9, language, tuple(times))


@st.composite
def transcripts(draw: st.DrawFn) -> list[Observation]:
    """Lines as a stage could write them, and worse: odd characters, odd times, words that are not those of the text."""
    word = st.text(min_size=1, max_size=60)
    out, at = [], draw(st.integers(-50_000, 100_000))
    for _ in range(draw(st.integers(0, 12))):
        words = draw(st.lists(word, min_size=1, max_size=30))
        start = at
        times = []
        for w in words:
            end = at + draw(st.integers(0, 40_000))
            times.append((w, at, end, 0.5))
            at = end + draw(st.integers(-8_000, 30_000))
        line = draw(st.sampled_from([" ".join(words), "".join(words), "somebody corrected this"]))
        out.append(Observation("speech", Span(start, max(start, at), BASE), line, 0.5, "en", tuple(times)))
    return out


@settings(max_examples=80, deadline=None)
@given(transcripts())
def test_cues_never_overlap_and_never_flash_and_fit_two_lines(lines: list[Observation]) -> None:
    found = cues(lines)
    for cue in found:
        assert cue.start >= 0
        assert 400 <= cue.end - cue.start <= MAX_CUE_MS
        assert 1 <= len(cue.lines) <= 2
        assert all(0 < columns(line) <= MAX_COLUMNS for line in cue.lines)
    for before, after in pairwise(found):
        assert after.start - before.end >= MIN_GAP_MS


@settings(max_examples=80, deadline=None)
@given(transcripts())
def test_nothing_that_is_said_can_become_a_cue_of_its_own(lines: list[Observation]) -> None:
    found = cues(lines)
    for body in (srt(found), vtt(found).removeprefix("WEBVTT\n\n")):
        blocks = [b for b in body.split("\n\n") if b]
        assert len(blocks) == len(found)
        for n, block in enumerate(blocks, 1):
            number, times, *rest = block.split("\n")
            assert number == str(n)
            assert TIME.match(times)
            assert rest
            assert not any("-->" in line for line in rest)
        assert body.count("-->") == len(found)


@settings(max_examples=60, deadline=None)
@given(transcripts())
def test_no_character_is_lost_or_moved(lines: list[Observation]) -> None:
    shown = "".join("".join(c.lines) for c in cues(lines))
    ordered = sorted(lines, key=lambda o: (o.span.start_us, o.span.end_us))
    squeezed = "".join(text([line]) for line in ordered)
    assert re.sub(r"\s+", "", shown) == re.sub(r"\s+", "", squeezed)


def test_a_line_that_holds_a_cue_time_stays_text() -> None:
    nasty = said("hello\n\n2\n00:00:09.000 --> 00:00:10.000\n<b>owned</b> & more", step=0.5)
    body = vtt(cues([nasty]))
    assert body.count("-->") == 1
    assert "&lt;b&gt;owned&lt;/b&gt; &amp; more" in body.replace("\n", " ")
    assert "<b>" not in srt(cues([nasty]))


def test_a_player_order_in_braces_is_shown_and_not_obeyed() -> None:
    assert "{\\an8}" not in srt(cues([said("look {\\an8}here")]))


def test_a_long_sentence_breaks_at_its_commas_and_not_after_an_article() -> None:
    line = said("We went down to the river in the morning, and the boats were already on the water when we came.")
    found = cues([line])
    lines = [x for c in found for x in c.lines]
    assert all(columns(x) <= 42 for x in lines)
    assert any(x.endswith("morning,") for x in lines)
    assert not any(x.split()[-1] in {"the", "a", "in", "to", "on"} for x in lines)


def test_a_fast_line_stays_as_long_as_the_silence_after_it_allows() -> None:
    fast = said("the quick brown fox jumps over the dog", step=0.1)
    alone, followed = cues([fast])[0], cues([fast, said("and then", start=1.5)])[0]
    assert alone.end - alone.start >= len(fast.text) * 1000 // 20
    assert 1500 < followed.end <= 1500 + MAX_DELAY_MS, "the next one can wait a little"


def test_a_cue_that_is_read_too_fast_keeps_its_place_a_little_longer_where_the_next_one_can_wait() -> None:
    fast = said("everybody understands everything immediately", 0.0, 0.5)  # 44 characters in 2 s
    slow = said("but not me", 2.05, 0.9)
    first, second = cues([fast, slow])
    assert columns(" ".join(first.lines)) * 1000 / (first.end - first.start) <= FASTEST_SPEED
    assert second.start - 2050 <= MAX_DELAY_MS
    assert second.end - second.start >= 1000
    busy = [said("but everybody else does so as well today.", 2.05, 0.2), said("And " * 8 + "so on", 3.7)]
    assert cues([fast, *busy])[1].start == 2050, "the next one needs its time itself"


def test_short_words_in_a_row_are_one_cue_and_do_not_flash() -> None:
    found = cues([said("Yes.", 0, 0.3), said("No.", 0.4, 0.3), said("Maybe.", 0.8, 0.3)])
    assert [c.lines for c in found] == [("Yes. No. Maybe.",)]


def test_scripts_without_spaces_are_set_by_their_double_width() -> None:
    chars = "今日はとても天気がいいので公園まで散歩に行きましょうかそれとも家で本を読みましょうか"
    times = tuple((c, n * 3200, (n + 1) * 3200, 0.9) for n, c in enumerate(chars))
    line = Observation("speech", Span(0, len(chars) * 3200, BASE), chars, 0.9, "ja", times)
    lines = [x for c in cues([line]) for x in c.lines]
    assert all(len(x) <= 21 for x in lines)
    assert " " not in "".join(lines)


def test_times_count_from_what_players_call_zero() -> None:
    (cue,) = cues([said("late start", start=11.5).moved(Fraction(-10))])
    assert cue.start == 1500


def test_hours_and_points_are_written_as_each_format_wants() -> None:
    found = [Cue(3_600_000 * 101 + 61_001, 3_600_000 * 101 + 63_000, ("late",))]
    assert "101:01:01,001 --> 101:01:03,000" in srt(found)
    assert "101:01:01.001 --> 101:01:03.000" in vtt(found)


def test_nothing_said_is_a_valid_empty_file() -> None:
    assert (srt([]), vtt([]), text([])) == ("", "WEBVTT\n\n", "")


def test_text_begins_a_paragraph_after_a_long_pause() -> None:
    lines = [said("One thing."), said("The same thing.", 1.0), said("Another.", 9.0)]
    assert text(lines) == "One thing. The same thing.\n\nAnother.\n"
