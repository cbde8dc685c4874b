"""Hits for other tools: a table, lines of JSON, cuts over several films."""

import csv
import io
import json
from fractions import Fraction

import opentimelineio
import pytest

from rushes.domain.errors import Refused
from rushes.domain.span import Span
from rushes.exports.hits import as_csv, as_edl, as_json_lines, as_otio
from rushes.exports.timelines import TimelineMedia
from rushes.index.port import Hit

MS = Fraction(1, 1000)
NTSC = Fraction(24000, 1001)


def hit(start: int, end: int, text: str = "the budget", video: str = "vid_a") -> Hit:
    span = Span(start, end, MS)
    return Hit(video, f"{video}.mp4", "speech", span, span, ((text, True),), 1.0, "en", 0.9)


def film(rate: Fraction | None = NTSC, begins: int = 0) -> TimelineMedia:
    return TimelineMedia("a.mp4", "a.mp4", Span(begins, 100_000, MS), rate)


def test_a_table_runs_nothing_and_says_when() -> None:
    (row,) = csv.DictReader(io.StringIO(as_csv([hit(1500, 2250, "=HYPERLINK(1)")]).decode()))
    assert (row["text"], row["start_us"], row["end_us"]) == ("'=HYPERLINK(1)", "1500000", "2250000")


def test_lines_of_json_hold_the_exact_span() -> None:
    (row,) = map(json.loads, as_json_lines([hit(1501, 2250)]).splitlines())
    assert Span.from_json(row["span"]) == Span(1501, 2250, MS)


def test_cuts_hold_the_hit_in_whole_frames_and_follow_each_other() -> None:
    lines = as_edl("q", [(film(), hit(1001, 2002)), (film(), hit(3000, 3001))]).decode().split("\r\n")
    assert lines[3] == "001  AX       V     C        00:00:01:00 00:00:02:00 00:00:00:00 00:00:01:00"
    assert lines[6] == "* LOC: 00:00:00:00 GREEN   the budget"
    assert lines[7] == "002  AX       V     C        00:00:02:23 00:00:03:00 00:00:01:00 00:00:01:01"


def test_frames_are_counted_from_the_first_picture() -> None:
    (line,) = (x for x in as_edl("q", [(film(Fraction(25), 40), hit(1040, 1080))]).decode().split("\r\n") if " AX" in x)
    assert "00:00:01:00 00:00:01:01" in line


def test_hits_of_several_films_are_one_timeline_with_their_markers() -> None:
    pal = film(Fraction(25))
    doc = as_otio("q", [(film(), hit(1001, 2002)), (pal, hit(40, 80)), (film(None), hit(500, 501))]).decode()
    (track,) = opentimelineio.adapters.read_from_string(doc, "otio_json").tracks
    ranges = [(c.source_range.start_time.value, c.source_range.duration.value) for c in track]
    assert ranges == [(24, 24), (1, 1), (500, 1)]
    assert [[(m.name, m.color) for m in clip.markers] for clip in track] == [[("the budget", "GREEN")]] * 3


@pytest.mark.parametrize("films", [[film(None)], [film(), film(Fraction(25))]])
def test_films_without_a_rate_in_common_have_no_list(films: list[TimelineMedia]) -> None:
    with pytest.raises(Refused, match="different frame rates"):
        as_edl("q", [(one, hit(0, 40)) for one in films])
