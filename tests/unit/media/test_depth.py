"""How near things are: what a net says, how it is kept, and what is decided of it."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from rushes.domain.errors import ModelMissing, NeverWorks
from rushes.engines.local import LocalEngine
from rushes.engines.models.store import ModelStore
from rushes.engines.models.vision import gives_inverse
from rushes.media.stereo.depth import (
    DepthEntry,
    DepthWriter,
    Grade,
    GradeOptions,
    TemporalDepth,
    grade_shot,
    grade_shots,
    map_size,
    read_map,
    weighted_quantile,
)
from tests import tiny_onnx
from tests.unit.vision_films import photo

TENTH = Fraction(1, 10)


def depth(pts: int, low: float, high: float) -> DepthEntry:
    return DepthEntry(pts, 0, 0, low, high, tuple(np.linspace(low, high, 33)))


def test_the_shipped_net_finds_the_body_below_nearer_than_what_is_above(tmp_path: Path) -> None:
    store = ModelStore(tmp_path)
    store.pull(["fastdepth"])
    engine, picture = LocalEngine(store), photo("astronaut.jpg")
    (near,) = engine.inverse_depth("fastdepth", [picture], inverse=False)
    assert near.shape == (224, 224)
    assert near[-20:].mean() > 1.2 * near[:20].mean()  # 0.82 and 0.43; it does not tell her face from the wall
    assert np.allclose(near, 1 / engine.inverse_depth("fastdepth", [picture], inverse=True)[0], atol=1e-5)
    engine.unload()


def own_net(folder: Path, **files: str) -> tuple[LocalEngine, str]:
    """A net of any input size whose output is the mean of its three input planes, and what lies beside it."""
    folder.mkdir(parents=True)
    mean = tiny_onnx.node("ReduceMean", ["picture"], "depth", axes=[1], keepdims=0)
    tiny_onnx.write(folder / "net.onnx", [mean], ("picture", tiny_onnx.FLOAT, [1, 3, "height", "width"]), "depth")
    for name, text in files.items():
        (folder / name.replace("_dot_", ".")).write_text(text)
    return LocalEngine(ModelStore(folder.parent / "models", paths=[folder])), str(folder)


GREY = np.full((90, 160, 3), 51, np.uint8)  # 0.2
IMAGENET = float(np.mean((0.2 - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])))


@pytest.mark.parametrize(
    ("files", "size", "value"),
    [
        ({}, (518, 518), IMAGENET),
        ({"depth_dot_toml": "size = [64, 32]"}, (32, 64), IMAGENET),
        ({"depth_dot_toml": "mean = [0, 0, 0]\nstd = [0.5, 0.5, 0.5]"}, (518, 518), 0.4),
        ({"depth_dot_toml": 'output = "depth"\nmean = [0, 0, 0]\nstd = [1, 1, 1]'}, (518, 518), 5.0),
        ({"preprocessor_config_dot_json": '{"size": {"width": 28, "height": 14}}'}, (14, 28), IMAGENET),
        ({"preprocessor_config_dot_json": '{"do_normalize": false}'}, (518, 518), 0.2),
        ({"preprocessor_config_dot_json": '{"image_mean": [0, 0, 0], "image_std": [1, 1, 1]}'}, (518, 518), 0.2),
    ],
)
def test_a_net_of_ones_own_is_used_as_the_file_beside_it_says(
    tmp_path: Path, files: dict[str, str], size: tuple[int, int], value: float
) -> None:
    engine, net = own_net(tmp_path / "net", **files)
    (near,) = engine.inverse_depth(net, [GREY], inverse=None)
    assert near.shape == size
    assert np.allclose(near, value, atol=0.01)


def test_who_asks_may_say_otherwise_and_a_description_is_part_of_the_models_name(tmp_path: Path) -> None:
    engine, net = own_net(tmp_path / "net", depth_dot_toml="mean = [0, 0, 0]\nstd = [1, 1, 1]")
    (near,) = engine.inverse_depth(net, [GREY], inverse=gives_inverse("depth"))
    assert np.allclose(near, 5.0, atol=0.05)
    before = engine._store.name_of(Path(net))
    (Path(net) / "depth.toml").write_text("size = [64, 32]")
    assert engine._store.name_of(Path(net)) != before
    with pytest.raises(NeverWorks):
        gives_inverse("sideways")


@pytest.mark.parametrize("text", ["size = 5", 'output = "sideways"', "std = [0, 1, 1]", "depths = 3", "[[["])
def test_a_description_that_cannot_be_understood_is_told_of(tmp_path: Path, text: str) -> None:
    engine, net = own_net(tmp_path / "net", depth_dot_toml=text)
    with pytest.raises(ModelMissing, match="the description of the model net cannot be understood"):
        engine.inverse_depth(net, [GREY], inverse=None)


def test_maps_are_read_as_they_were_written(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    writer = DepthWriter(tmp_path / "depth.bin", TENTH, (160, 90))
    said = [chance.random((108, 192), np.float32) * 3 + n for n in range(3)]
    for n, one in enumerate(said):
        writer.add(n, one)
    index = writer.finish()
    assert index.from_json(index.to_json()) == index
    with (tmp_path / "depth.bin").open("rb") as file:
        for one, kept in zip(said, index.maps, strict=True):
            found = kept.low + read_map(file, kept, index.size) / 65535 * (kept.high - kept.low)
            assert np.abs(found - one).max() < 2e-3


@pytest.mark.parametrize(("picture", "size"), [((1920, 1080), (192, 108)), ((608, 1080), (108, 192))])
def test_maps_have_the_shape_of_the_picture(picture: tuple[int, int], size: tuple[int, int]) -> None:
    assert map_size(picture) == size


def test_a_map_counts_as_long_as_it_stands() -> None:
    short, long = depth(0, 0, 1), depth(1, 2, 3)
    assert weighted_quantile([short, long], [1, 99], 0.5) > 2
    assert weighted_quantile([short, long], [99, 1], 0.5) < 1


def test_each_shot_has_one_range_and_maps_of_other_shots_do_not_count() -> None:
    first, second = grade_shots([(0, 10), (10, 20)], [depth(0, 1, 2), depth(5, 1, 2), depth(10, 5, 9)], GradeOptions())
    assert 1 <= first.far < first.near <= 2
    assert 5 <= second.far < second.near <= 9


def test_no_more_maps_are_asked_for_than_a_shot_needs() -> None:
    asked: list[int] = []

    def maps() -> Iterator[DepthEntry]:
        for pts in range(0, 100, 5):
            asked.append(pts)
            yield depth(pts, 1, 2)

    def shots() -> Iterator[tuple[int, int]]:
        for start in range(0, 100, 10):
            assert max(asked) <= start
            yield start, start + 10

    assert len(grade_shots(shots(), maps(), GradeOptions())) == 10


def test_a_glimpse_without_a_map_is_graded_like_what_was_before() -> None:
    found = grade_shots([(0, 10), (10, 12), (12, 20)], [depth(0, 1, 2), depth(12, 5, 9)], GradeOptions())
    assert (found[1].far, found[1].near) == (found[0].far, found[0].near)


def test_a_flat_wall_gets_less_depth_than_a_street() -> None:
    wall, street = (grade_shot(0, 10, [depth(0, 1, high)], GradeOptions()).strength for high in (1.05, 4))
    assert wall < 0.8
    assert street == 2.0


def test_depth_changes_smoothly_within_a_shot_and_at_once_at_a_cut() -> None:
    depths = [depth(n * 10, 0, 1) for n in range(6)]  # a map every second, at tens of ticks
    values = {0: 0, 10: 20000, 20: 40000, 30: 60000, 40: 0, 50: 0}
    shown = TemporalDepth(depths, lambda one: np.full((16, 24), values[one.pts], np.uint16), TENTH)
    before, after = grade_shots([(0, 35), (35, 60)], depths, GradeOptions())
    levels = [float(shown.at(pts, before if pts < 35 else after)[0, 0]) for pts in range(60)]
    steps = np.abs(np.diff(levels))
    assert steps[:33].max() < 0.6 * (levels[15] - levels[5])
    assert levels[34] == levels[30 + 3]  # nothing of the next shot
    assert len(set(levels[35:])) == 1


def test_the_last_map_is_that_of_the_last_shot_though_another_shot_has_one_before() -> None:
    film = TemporalDepth([depth(0, 0, 1), depth(100, 0, 1)], lambda _: np.zeros((2, 2), np.uint16), TENTH)
    assert [*film._weights(60, Grade(50, 200, 0.0, 1.0, 1.0, 0.0))] == [1]
