"""Which frames are looked at: at most one a second, whatever the grid."""

from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rushes.domain.video import VideoTrack
from rushes.media.developing.frame_pack import PackedFrame
from rushes.stages.vision.samples import sample

END = 23_700  # milliseconds


def kept(ms: int) -> PackedFrame:
    return PackedFrame(ms, ms * 1000, 0, 1, "0" * 16, 0, 0)


def track(keys: list[int]) -> VideoTrack:
    return VideoTrack(0, "h264", 320, 240, Fraction(1, 1000), 0, END, 1, tuple(keys), Fraction(25))


def test_still_footage_is_looked_at_once_for_all_the_time_that_it_stands_for() -> None:
    found = sample([kept(0), kept(5000), kept(10_000)], track([0, 5000, 10_000]))
    assert [(k.pts, end) for k, end in found] == [(0, 5000), (5000, 10_000), (10_000, END)]


def test_what_stays_after_a_cut_is_looked_at_not_what_was_before() -> None:
    found = sample([kept(0), kept(3200), kept(5000)], track([0, 5000]))
    assert [(k.pts, end) for k, end in found] == [(0, 3200), (3200, 5000), (5000, END)]
    found = sample([kept(0), kept(200), kept(5000)], track([0, 5000]))
    assert [(k.pts, end) for k, end in found] == [(200, 5000), (5000, END)]


@given(st.sets(st.integers(0, 236), max_size=120), st.sets(st.integers(1, 23), max_size=5), st.data())
def test_every_grid_looks_at_the_same_and_at_no_more_than_one_a_second(
    tenths: set[int], seconds: set[int], data: st.DataObject
) -> None:
    keys = sorted({0, *(s * 1000 for s in seconds)})
    film, frames = track(keys), [kept(t) for t in sorted({*keys, *(t * 100 for t in tenths)})]
    cuts = sorted({0, *data.draw(st.sets(st.sampled_from(keys)))})
    chunks: dict[int, list[PackedFrame]] = {}
    for frame in frames:
        chunks.setdefault(bisect_right(cuts, frame.pts), []).append(frame)
    whole = sample(frames, film)
    assert [look for chunk in chunks.values() for look in sample(chunk, film)] == whole
    assert len(whole) <= END / 1000 + 1
    assert all(k.pts < end for k, end in whole)
    assert all(a[1] <= b[0].pts for a, b in pairwise(whole))


def test_a_longer_interval_looks_less_often_and_a_shorter_one_more_often() -> None:
    film, frames = track([0]), [kept(ms) for ms in range(0, END, 100)]
    looks = {seconds: len(sample(frames, film, Fraction(seconds))) for seconds in (4, 2, 1, Fraction(1, 2))}
    assert looks == {4: 5, 2: 11, 1: 23, Fraction(1, 2): 47}
