"""What each eye sees, on pictures with known depth."""

import numpy as np
import pytest
from numpy.typing import NDArray

from rushes.media.stereo.depth import Grade
from rushes.media.stereo.frame_packing import _whole_chroma
from rushes.media.stereo.warp import (
    SUBPIXELS,
    Disparity,
    Planes,
    SubpixelPicture,
    dilate,
    disparity_of,
    guided_upsample,
    source_columns,
)


def picture(width: int = 64, height: int = 16, seed: int = 1) -> Planes:
    chance = np.random.default_rng(seed)
    light = chance.integers(0, 256, (height, width), dtype=np.uint8)
    blue, red = (chance.integers(0, 256, (height // 2, width // 2), dtype=np.uint8) for _ in range(2))
    return light, blue, red


def flat(shift: int, width: int = 64, height: int = 16) -> Disparity:
    return np.full((height // 2, width), shift, np.int16)


def test_what_lies_on_the_screen_is_seen_as_it_is() -> None:
    planes = picture()
    for left in (True, False):
        for seen, was in zip(SubpixelPicture.of(planes).warp(flat(0), left=left), planes, strict=True):
            assert np.array_equal(seen, was)


@pytest.mark.parametrize("pixels", [4, -4])
def test_near_things_move_apart_to_the_right_for_the_left_eye(pixels: int) -> None:
    planes = picture()
    left, right = (SubpixelPicture.of(planes).warp(flat(pixels * SUBPIXELS), left=side)[0] for side in (True, False))
    inside = slice(8, -8)
    assert np.array_equal(left[:, inside], np.roll(planes[0], pixels, axis=1)[:, inside])
    assert np.array_equal(right[:, inside], np.roll(planes[0], -pixels, axis=1)[:, inside])


def test_colours_move_with_the_light() -> None:
    planes = picture()
    seen = SubpixelPicture.of(planes).warp(flat(4 * SUBPIXELS), left=True)
    for plane in (1, 2):
        assert np.array_equal(seen[plane][:, 4:-4], np.roll(planes[plane], 2, axis=1)[:, 4:-4])


def test_quarters_of_a_pixel_lie_between_pixels() -> None:
    ramp = np.tile(np.arange(0, 256, 4, dtype=np.uint8), (16, 1))
    fine = SubpixelPicture.of((ramp, *picture()[1:]))
    for quarters in range(-8, 9):
        seen = fine.warp(flat(quarters), left=False)[0].astype(int)
        assert np.abs(seen[:, 8:-8] - (ramp[:, 8:-8].astype(int) + quarters)).max() <= 1


@pytest.mark.parametrize("left", [True, False])
def test_near_hides_far_and_what_it_uncovers_is_filled_with_what_is_far(left: bool) -> None:
    light = np.full((16, 64), 50, np.uint8)
    light[:, 24:40] = 200  # a near wall before a dark ground
    shift = flat(0)
    shift[:, 24:40] = 6 * SUBPIXELS
    seen = SubpixelPicture.of((light, *picture()[1:])).warp(shift, left=left)[0]
    at = 6 if left else -6
    assert np.all(seen[:, 24 + at : 39 + at] == 200)
    assert np.all(seen[:, : 24 + at] == 50)
    assert np.all(seen[:, 40 + at + (not left) :] == 50)  # a soft edge may have a column of its own


def test_nothing_is_torn_however_wild_the_depth() -> None:
    chance = np.random.default_rng(5)
    for _ in range(20):
        shift = chance.integers(-80, 80, (8, 64)).astype(np.int16)
        for left in (True, False):
            found = source_columns(shift, left=left)
            assert found.min() >= 0
            assert found.max() <= SUBPIXELS * 63


def test_both_eyes_are_mirror_images_of_each_other() -> None:
    chance = np.random.default_rng(6)
    shift = chance.integers(-20, 20, (8, 64)).astype(np.int16)
    mirrored = SUBPIXELS * 63 - source_columns(np.ascontiguousarray(shift[:, ::-1]), left=False)[:, ::-1]
    assert np.array_equal(source_columns(shift, left=True), mirrored)


def test_an_edge_belongs_to_what_is_near() -> None:
    shift = flat(0)
    shift[:, 30] = 8
    assert np.flatnonzero(dilate(shift)[0]).tolist() == [29, 30, 31]


def soft_step(width: int = 192, height: int = 108) -> NDArray[np.uint16]:
    """Depth whose edge in the middle is blurred over 16 columns, as nets give it."""
    ramp = np.clip((np.arange(width) - width / 2) / 16 + 0.5, 0, 1)
    return np.tile(np.rint(ramp * 60000), (height, 1)).astype(np.uint16)


def test_depth_gets_its_edges_from_the_picture() -> None:
    light = np.full((432, 768), 40, np.uint8)
    light[:, 384:] = 200
    plain = np.full_like(light, 120)
    steep, soft = (np.abs(np.diff(guided_upsample(soft_step(), seen)[100])).max() for seen in (light, plain))
    assert steep > 4 * soft


def test_strength_and_convergence_are_per_cent_of_the_width() -> None:
    light = np.full((432, 800), 120, np.uint8)
    near = np.zeros((108, 192), np.uint16)
    near[:, 96:] = 65535
    shift = disparity_of(near, light, Grade(0, 1, 0.0, 1.0, strength=2.0, convergence=0.5))
    # 2 % of 800 pixels between far and near, shared by two eyes; far lies 0.5 % behind the screen
    assert shift[:, 0].tolist() == [-2 * SUBPIXELS] * 216
    assert shift[:, -1].tolist() == [6 * SUBPIXELS] * 216


@pytest.mark.parametrize(("length", "views", "side"), [(101, 1, 101), (101, 2, 100), (102, 2, 104), (1, 2, 4)])
def test_a_side_that_is_halved_has_whole_pixels_of_colour(length: int, views: int, side: int) -> None:
    assert _whole_chroma(length, views) == side
