"""What tasks will take, from what tasks took; and how sure that is."""

import random

import pytest

from rushes.domain.stage import Scope, StageSpec
from rushes.estimates.cost import NINE_OF_TEN, PIXELS, CostModel, Footage, cost_model
from rushes.estimates.rates import Rate
from rushes.plan.recipes import RECIPES, stages_of
from rushes.stages.registry import load_stages, specs_of

FULL_HD = Footage(PIXELS)
SPECS = {
    "develop": StageSpec("develop", 1, Scope.CHUNK, ("proxy",), reads_source=True),
    "audio": StageSpec("audio", 1, Scope.VIDEO, ("audio",), reads_source=True),
    "transcribe": StageSpec("transcribe", 1, Scope.CHUNK, ("speech",), models=("speech",)),
    "shots": StageSpec("shots", 1, Scope.VIDEO, ("shots",)),
    "logos": StageSpec("logos", 1, Scope.CHUNK, ("logos",)),
}


def rate(seconds: float, media: float = 60.0, stage: str = "develop", job: str = "job_a", **more: object) -> Rate:
    known = {"pixels": PIXELS, "at": "", "profile": "balanced"} | more
    return Rate(f"{job}.{stage}.00000", stage, "m", seconds, media, **known)  # type: ignore[arg-type]


def model(*rates: Rate, stage: str = "develop", profile: str = "balanced") -> CostModel:
    return cost_model({stage: list(rates)}, SPECS, profile)


def test_pictures_cost_by_their_size_and_length() -> None:
    found = model(*[rate(30.0, pixels=PIXELS // 2)] * 10)
    assert found.seconds("develop", 600.0, FULL_HD) == pytest.approx(600.0)


def test_sound_costs_by_its_length_whatever_the_size_of_the_picture() -> None:
    assert model(rate(1.2, pixels=PIXELS // 9, stage="audio"), stage="audio").seconds("audio", 600.0, FULL_HD) == (
        pytest.approx(12.0)
    )


def test_a_short_task_is_known_to_cost_more_by_the_second() -> None:
    tasks = [rate(2.0 + 0.5 * media, media) for media in (1.0, 2.0, 4.0, 10.0, 30.0, 60.0)]
    found = model(*tasks)
    assert found.seconds("develop", 1.0, FULL_HD) == pytest.approx(2.5)
    assert found.seconds("develop", 60.0, FULL_HD) == pytest.approx(32.0)


def test_one_task_that_hung_changes_next_to_nothing() -> None:
    usual = [rate(10.0) for _ in range(9)]
    assert model(*usual, rate(900.0)).seconds("develop", 60.0, FULL_HD) == pytest.approx(10.0)


def test_silent_films_do_not_spoil_the_rate_of_speech() -> None:
    spoken = [rate(30.0, stage="transcribe", voiced_seconds=60.0)] * 5
    silent = [rate(0.01, stage="transcribe", voiced_seconds=0.0)] * 50
    found = model(*spoken, *silent, stage="transcribe")
    assert found.seconds("transcribe", 600.0, FULL_HD) == pytest.approx(0.5 * 600 * 5 / 55, rel=0.01)
    assert found.seconds("transcribe", 600.0, Footage(PIXELS, sound=False)) == 0.0


def test_another_profile_uses_other_models_and_says_nothing() -> None:
    fast = [rate(1.0, stage="transcribe", profile="fast", voiced_seconds=60.0)] * 5
    assert model(*fast, stage="transcribe", profile="fast").stages["transcribe"].measured == 5
    assert model(*fast, stage="transcribe").stages["transcribe"].measured == 0


def test_what_was_never_done_here_has_a_first_guess_and_a_wide_range() -> None:
    found = model()
    low, high = found.around(found.seconds("develop", 60.0, FULL_HD))
    assert high > 5 * low > 0
    assert model(stage="logos").stages == {}, "of another package: there is nothing to go by"
    assert model(stage="shots").seconds("shots", 600.0, FULL_HD) == 0.0, "work on whole videos is quick"


def test_every_recipe_can_be_estimated_before_anything_ran() -> None:
    specs = specs_of(load_stages())
    wanted = {name for recipe in RECIPES for name in stages_of(recipe, specs)}
    assert not wanted - cost_model({name: [] for name in wanted}, specs, "balanced").stages.keys()


def test_bytes_are_learnt_by_the_second_of_film() -> None:
    assert model(rate(1.0, size=6_000_000)).stages["develop"].bytes_per_second == 100_000


def test_the_range_is_as_wide_as_films_were_off() -> None:
    dice = random.Random(3)
    for spread in (0.05, 0.4):
        films = [rate(10.0 * dice.lognormvariate(0.0, spread), job=f"job_{n}") for n in range(100)]
        assert model(*films).spread == pytest.approx(spread, rel=0.35)


def test_films_of_one_picture_size_are_judged_by_their_like() -> None:
    slow = [rate(20.0, job=f"slow_{n}", pixels=PIXELS // 2) for n in range(10)]  # by the pixel four times the usual
    found = model(*[rate(10.0, job=f"usual_{n}") for n in range(30)], *slow)
    small, full = found.for_size(PIXELS // 2), found.for_size(PIXELS)
    assert small.seconds("develop", 60.0, Footage(PIXELS // 2)) == pytest.approx(20.0, rel=0.25)
    assert full.seconds("develop", 60.0, FULL_HD) == pytest.approx(10.0, rel=0.1)


def test_the_range_is_as_wide_as_a_film_lies_off_the_others() -> None:
    two = [rate(5.0, job="job_a"), rate(20.0, job="job_b")]
    assert model(*two).spread > 0.7, "beside their common mean it would be 0.5"


def test_a_range_of_many_films_is_narrower_than_that_of_one() -> None:
    found = CostModel({}, spread=0.4)
    one, many = found.around(100.0), found.around(100.0, films=50)
    assert one[0] < many[0] < 100.0 < many[1] < one[1]
    assert one[1] / 100.0 == pytest.approx(2.718281828 ** (NINE_OF_TEN * 0.4))
