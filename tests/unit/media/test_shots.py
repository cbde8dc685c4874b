from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rushes.media.developing.cut_metrics import (
    HEIGHT,
    LAGS,
    PIXELS,
    WIDTH,
    CutMetrics,
    CutMetricsRecorder,
    join_metrics,
)
from rushes.media.developing.shots import MIN_SHOT_FRAMES, boundaries, cuts, shots
from rushes.media.reading.frames import develop
from rushes.media.reading.probe import probe
from tests.unit.film_work import chunks
from tests.unit.media_files import Film, cfr, make


def film_of(levels: list[float]) -> CutMetrics:
    """Metrics of a film in which frame i is one flat picture of that level."""
    values = np.array(levels)
    apart = np.zeros((len(values), LAGS), np.uint32)
    for lag in range(1, LAGS + 1):
        apart[lag:, lag - 1] = np.abs(values[lag:] - values[:-lag]) * PIXELS
    none = np.zeros((0, PIXELS), np.uint8)
    return CutMetrics(np.arange(len(values), dtype=np.int64) * 512, apart, apart[:, 0], none, none)


def test_a_jump_is_a_cut() -> None:
    assert cuts(film_of([50.0] * 20 + [90.0] * 20)) == [20]


def test_a_flash_is_none() -> None:
    assert cuts(film_of([50.0] * 20 + [240.0] * 2 + [50.0] * 20)) == []


def test_a_fade_is_no_hard_cut() -> None:
    assert cuts(film_of([100.0] * 20 + [100.0 - 8 * i for i in range(12)] + [4.0] * 20)) == []


def test_motion_at_few_frames_a_second_is_none() -> None:
    levels = [50.0 + 12 * min(i // 5 % 8, 8 - i // 5 % 8) for i in range(120)]  # a step of 12 every fifth frame
    assert cuts(film_of(levels)) == []


def test_steady_motion_hides_nothing() -> None:
    moving = [50.0 + 6 * (i % 2) for i in range(30)]
    assert cuts(film_of(moving + [level + 60 for level in moving])) == [30]


def test_shots_of_fewer_than_five_frames_do_not_exist() -> None:
    found = cuts(film_of([20.0] * 20 + [90.0] * 3 + [160.0] * 20))
    assert len(found) == 1


def light_of(levels: list[float]) -> CutMetrics:
    """The same film with its brightness."""
    return replace(film_of(levels), light=(np.array(levels) * WIDTH * HEIGHT).astype(np.uint32))


def test_a_fade_through_black_begins_a_shot_where_it_is_darkest() -> None:
    down, up = [120.0 - 10 * i for i in range(13)], [12.0 * i for i in range(1, 12)]
    assert boundaries(light_of([120.0] * 30 + down + up + [140.0] * 30)) == {42: "fade"}


def test_a_cut_to_black_is_no_fade() -> None:
    assert boundaries(light_of([120.0] * 30 + [2.0] * 30 + [120.0] * 30)) == {30: "cut", 60: "cut"}


def test_a_fade_in_at_the_beginning_is_no_second_shot() -> None:
    assert boundaries(light_of([6.0 * i for i in range(20)] + [120.0] * 40)) == {}


def test_a_dissolve_begins_a_shot_in_its_middle() -> None:
    ((at, kind),) = boundaries(light_of([60.0] * 40 + [60.0 + 3 * i for i in range(25)] + [135.0] * 40)).items()
    assert kind == "dissolve"
    assert abs(at - 52) <= 2


def test_motion_that_comes_back_is_no_dissolve() -> None:
    wave = [100 + 15 * float(np.sin(i / 2)) for i in range(60)]
    assert boundaries(light_of([100.0] * 40 + wave + [100.0] * 40)) == {}


@given(st.lists(st.floats(0, 255), max_size=60))
def test_shots_cover_the_film_without_gap(levels: list[float]) -> None:
    found = shots(film_of(levels), len(levels) * 512, Fraction(1, 12800))
    bounds = [s.span.start for s in found] + [s.span.end for s in found[-1:]]
    assert bounds == sorted(set(bounds))
    assert (bounds[0], bounds[-1]) == (0, len(levels) * 512) if levels else not bounds
    assert all(b - a >= MIN_SHOT_FRAMES * 512 for a, b in pairwise(bounds)) or len(found) == 1


@pytest.mark.parametrize("seconds", [5, 20, 60])
def test_cuts_of_a_film_are_found_whatever_the_grid(seconds: int, tmp_path: Path) -> None:
    truth = [60, 125, 131, 250, 333, 501]  # 125 and 250 begin chunks
    path = make(tmp_path / "x.mp4", Film(cfr(22), gop=125, cuts=truth, size=(320, 240)))
    facts = probe(path)
    assert facts.video
    parts = []
    for span in chunks(facts, seconds):
        measure = CutMetricsRecorder(facts.video)
        develop(path, facts, span, [measure], lambda _: None)
        parts.append(measure.finish())
    found = shots(join_metrics(parts), facts.video.end, facts.video.base)
    assert [s.span.start // 512 for s in found] == [0, *truth]
    assert [s.kind for s in found] == ["start"] + ["cut"] * len(truth)
    assert found[-1].span.end == facts.video.end


def test_a_higher_threshold_leaves_weak_cuts_out_and_a_least_length_short_shots() -> None:
    film, end, base = film_of([50.0] * 20 + [62.0] * 20 + [140.0] * 20), 60 * 512, Fraction(1, 512 * 25)
    assert len(shots(film, end, base)) == 3
    assert [s.span.start // 512 for s in shots(film, end, base, strength=3.0)] == [0, 40]
    assert [s.span.start // 512 for s in shots(film, end, base, seconds=0.8)] == [0, 20, 40]
    assert [s.span.start // 512 for s in shots(film, end, base, seconds=0.9)] == [0]
