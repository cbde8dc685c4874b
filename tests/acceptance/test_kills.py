"""Killed at every named point, started again: nothing lost, nothing done twice, the same bytes."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from proof.audit import Audit
from proof.kills import Disturbed, Film, Kill, Visits, disturbed, environment, undisturbed
from proof.zygote import Hand, hands

from tests.acceptance.conftest import draw

TOY_POINTS = [
    f"{effect}:{when}"
    for effect in (
        "blob",
        "manifest",
        "publish",
        "hint",
        "index",
        "ledger.move_in",
        "ledger.submit",
        "ledger.renew",
        "ledger.claim",
        "ledger.draft",
        "ledger.complete",
        "ledger.sweep",
        "ledger.control",
        "records.put",
        "records.delete",
    )
    for when in ("before", "after")
]
SEED = 20261115
REAL = random.Random(SEED).sample(
    ["blob:after", "manifest:before", "manifest:after", "ledger.complete:before", "publish:before"], 3
)

CONFINED = "auto"  # toys write outside, real stages do not
Reference = tuple[Film, Audit, Visits]
# A slow machine looks, renews and tells more often than a quick one; each run passes these points so often.
CERTAIN = {"ledger.renew": 1, "ledger.sweep": 1, "ledger.claim": 6, "hint": 3, "publish": 1, "records.put": 1}


def two_thirds(point: str, points: Visits) -> int:
    """How often a run passes a point until two thirds of it are over."""
    return max(1, min(len(points[point]), CERTAIN.get(point.partition(":")[0], 99)) * 2 // 3)


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory, toy_film: Path) -> Reference:
    film = Film(toy_film, "toy_join")
    return film, *undisturbed(tmp_path_factory.mktemp("reference"), film)


@pytest.fixture(scope="module")
def hand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hand]:
    """Runs without waiting for imports; the other tests here start Python as anybody does."""
    with hands(1, "sqlite", environment(tmp_path_factory.mktemp("hand"))) as found:
        yield found[0]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, seen_film: Path) -> Reference:
    film = Film(seen_film, "", chunk="5")
    return film, *undisturbed(tmp_path_factory.mktemp("reference"), film, RUSHES_SANDBOX=CONFINED)


@pytest.fixture(scope="module")
def eyes(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Twelve seconds for both eyes, in two chunks that are joined."""
    film = Film(draw(tmp_path_factory.mktemp("film") / "small.mp4", 12, (160, 90), rate=5), "join", chunk="5")
    return film, *undisturbed(tmp_path_factory.mktemp("reference"), film, RUSHES_SANDBOX=CONFINED)


def test_an_undisturbed_run_passes_every_point_that_is_killed_below(toys: Reference) -> None:
    _, reference, points = toys
    assert reference.bad == ()
    assert set(points) >= set(TOY_POINTS)


@pytest.mark.parametrize("point", TOY_POINTS)
def test_killed_at_a_point_and_started_again(point: str, toys: Reference, hand: Hand, tmp_path: Path) -> None:
    film, reference, points = toys
    nth = random.Random(f"{SEED}{point}").randint(1, two_thirds(point, points))
    _is_well(disturbed(tmp_path / "run", film, [Kill(point, nth)], reference, hand.run))


@pytest.mark.parametrize("point", REAL)
def test_the_real_recipe_killed_and_started_again(point: str, real: Reference, tmp_path: Path) -> None:
    film, reference, points = real
    assert reference.bad == ()
    nth = random.Random(f"{SEED}{point}").randint(2, max(2, len(points[point]) * 2 // 3))
    _is_well(disturbed(tmp_path / "run", film, [Kill(point, nth)], reference, RUSHES_SANDBOX=CONFINED))


@pytest.mark.parametrize("point", ["manifest:before", "ledger.complete:before"])
def test_a_film_for_both_eyes_killed_and_started_again(point: str, eyes: Reference, tmp_path: Path) -> None:
    film, reference, points = eyes
    assert reference.bad == ()
    nth = random.Random(f"{SEED}{point}").randint(len(points[point]) // 2, len(points[point]))
    _is_well(disturbed(tmp_path / "run", film, [Kill(point, nth)], reference, RUSHES_SANDBOX=CONFINED))


def _is_well(outcome: Disturbed) -> None:
    assert outcome.bad == ()
    assert len(outcome.held) == 1
