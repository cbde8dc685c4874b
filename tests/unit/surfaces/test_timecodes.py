"""Times and references as people type them."""

import pytest

from rushes.domain.errors import Refused
from rushes.surfaces.cli.views.hits import reference
from rushes.surfaces.words import parse_reference, parse_timecode
from tests.unit.cli_library import hit


@pytest.mark.parametrize(
    ("typed", "us"),
    [
        ("0", 0),
        ("754.25", 754_250_000),
        ("90s", 90_000_000),
        ("12:41", 761_000_000),
        ("12:41.000", 761_000_000),
        ("1:02:03.5", 3_723_500_000),
        ("1:02:03,5", 3_723_500_000),
        ("100:00:00", 360_000_000_000),
        ("0.0000001", 0),
    ],
)
def test_a_time_is_read_to_the_microsecond(typed: str, us: int) -> None:
    assert parse_timecode(typed) == us


@pytest.mark.parametrize(
    "typed", ["", "abc", "-1", "1:99", "f1234", "1e9", "nan", "1:2:3:4", "\u0661\u0662", "12:41\n"]
)
def test_what_is_no_time_is_refused_with_a_hint(typed: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_timecode(typed)
    assert "1:02:03.5" in refused.value.advice


def test_the_reference_of_a_hit_comes_back_as_its_range() -> None:
    found = hit((("ask not", True),), 761_000, 764_500)
    assert reference(found) == "vid_aaaabbbbccccdddd@12:41.000-12:44.500"
    assert parse_reference(reference(found)) == ("vid_aaaabbbbccccdddd", 761_000_000, 764_500_000)


@pytest.mark.parametrize("name", ["me@home.mp4", "film.mp4", "@1-2", "a@1", "a@b-c"])
def test_a_file_name_is_no_reference(name: str) -> None:
    assert parse_reference(name) is None
