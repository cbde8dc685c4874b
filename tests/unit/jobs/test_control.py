"""Commands to jobs and workers: who may give them, and what a plan's writer does when its lease is gone."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from rushes.domain.errors import NotAllowed, NotFound
from rushes.home import Home
from rushes.jobs.control import drain
from tests.unit.care_world import ME, World


def opened(world: World, owner: str, admin: bool = False) -> Home:
    return cast(Home, SimpleNamespace(ledger=world.ledger, owner=owner, settings=SimpleNamespace(fleet_admin=admin)))


@pytest.mark.parametrize(("owner", "admin"), [("ann", False), ("bob", True)])
def test_a_worker_is_drained_by_whoever_started_it_or_administers_the_fleet(owner: str, admin: bool) -> None:
    world = World()
    mine = replace(ME, owner="ann")
    world.ledger.renew(mine, {}, {})
    drain(opened(world, owner, admin), mine.id)
    assert world.ledger.renew(mine, {}, {}).drain


def test_others_cannot_drain_it_and_nobody_one_that_is_not_there() -> None:
    world = World()
    mine = replace(ME, owner="ann")
    assert not world.ledger.renew(mine, {}, {}).drain
    with pytest.raises(NotAllowed, match="another owner"):
        drain(opened(world, "bob"), mine.id)
    with pytest.raises(NotFound):
        drain(opened(world, "ann"), "nobody")
    assert not world.ledger.renew(mine, {}, {}).drain
