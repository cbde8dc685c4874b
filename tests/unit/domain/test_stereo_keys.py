"""Keys of 3D jobs: what is built is parsed, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rushes.domain.keys import is_id
from rushes.domain.stereo_keys import (
    SegmentKey,
    final_key,
    output_key,
    parse_output_key,
    parse_segment_key,
    parse_upload_key,
    upload_key,
)

IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}", fullmatch=True).filter(is_id)
MODES = st.sampled_from(["anaglyph", "sbs", "half-sbs", "full-tb", "anaglyph-half-colour"])


@given(job=IDS, total=st.integers(1, 9_999_999), mode=MODES, data=st.data())
def test_a_segment_key_is_parsed_to_what_it_was_built_from(
    job: str, total: int, mode: str, data: st.DataObject
) -> None:
    segment = SegmentKey(job, data.draw(st.integers(0, total - 1)), total, mode)
    assert parse_segment_key(str(segment)) == segment


@given(job=IDS, index=st.integers(0, 9_999_999), ending=st.sampled_from(["", ".mp4", ".mkv", ".mp4~", ".m 4", ".ü"]))
def test_upload_and_output_keys_are_parsed_to_what_they_were_built_from(job: str, index: int, ending: str) -> None:
    assert parse_upload_key(upload_key(job, ending)) == job
    assert parse_output_key(output_key(job, index)) == (job, index)
    assert parse_output_key(final_key(job)) is None


@given(st.text(max_size=60) | st.builds("segments/{}/{}".format, IDS, st.text(max_size=30)))
def test_a_key_that_is_parsed_is_the_one_that_is_built(key: str) -> None:
    segment, output = parse_segment_key(key), parse_output_key(key)
    assert segment is None or str(segment) == key
    assert output is None or output_key(*output) == key


@pytest.mark.parametrize(
    "key",
    [
        "segments/job-abc/00042_00042_sbs.mp4",  # the 43rd of 42
        "segments/job-abc/42_00100_sbs.mp4",
        "segments/job-abc/000042_00100_sbs.mp4",
        "segments/job-abc/00042_00100_SBS.mp4",
        "segments/../00042_00100_sbs.mp4",
        "segments/job-abc/00042_00100_sbs.mp4\n",
        "segments/job-abc/x/00042_00100_sbs.mp4",
    ],
)
def test_what_only_looks_like_a_segment_is_none(key: str) -> None:
    assert parse_segment_key(key) is None
    assert parse_segment_key("segments/job-abc/00042_00100_anaglyph.mp4") == SegmentKey("job-abc", 42, 100, "anaglyph")
