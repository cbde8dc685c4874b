"""A home in a bucket: killed before and after each kind of request, the disk lost; the next machine finishes."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from proof.audit import Audit
from proof.kills import Film, Kill, Visits, disturbed, environment, undisturbed
from proof.setups import Servers
from proof.zygote import Hand, hands

from tests.acceptance.test_kills import two_thirds

SEED = 20261119
POINTS = [f"{what}:{when}" for what in ("lock", "checkpoint", "blob", "manifest") for when in ("before", "after")]
SEAWEED, MINISTACK = "bucket", "bucket-ministack"
SAMPLE = [*((SEAWEED, point) for point in POINTS), *((MINISTACK, p) for p in random.Random(SEED).sample(POINTS, 3))]
Reference = tuple[Film, Audit, Visits]


@pytest.fixture(scope="module")
def reference(
    all_servers: Servers, toy_film: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Reference]:
    made: dict[str, Reference] = {}

    def on(setup: str) -> Reference:
        if setup not in made:
            (path,) = all_servers.films(setup, [toy_film])
            film = Film(path, "toy_join", settings=all_servers.settings(setup, "whole"), new_disk=True)
            made[setup] = (film, *undisturbed(tmp_path_factory.mktemp("reference"), film))
        return made[setup]

    return on


@pytest.fixture(scope="module")
def hand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hand]:
    """Runs without waiting for imports."""
    with hands(1, "bucket", environment(tmp_path_factory.mktemp("hand"))) as found:
        yield found[0]


@pytest.mark.parametrize(("setup", "point"), SAMPLE)
def test_killed_with_its_disk_at_a_request(
    setup: str, point: str, reference: Callable[[str], Reference], hand: Hand, all_servers: Servers, tmp_path: Path
) -> None:
    film, whole, visits = reference(setup)
    assert whole.bad == ()
    nth = random.Random(f"{SEED}{point}").randint(1, two_thirds(point, visits))
    fresh = replace(film, settings=all_servers.settings(setup, f"killed-{point.replace(':', '-')}"))
    outcome = disturbed(tmp_path / "run", fresh, [Kill(point, nth)], whole, hand.run)
    assert outcome.bad == ()
    assert len(outcome.held) == 1
