"""Published names that are missing: found among the results of finished jobs, and made again."""

from types import SimpleNamespace
from typing import cast

from rushes.blobs.documents import read_document
from rushes.blobs.published import own_names
from rushes.home import Home
from rushes.jobs.maintenance.published_names import find_missing_names, restore_names, still_wrong
from tests.unit.maintenance_kit import RULES, World


def opened(world: World) -> Home:
    stores = {"ledger": world.ledger, "blobs": world.blobs, "specs": RULES.specs, "owner": "me"}
    return cast(Home, SimpleNamespace(**stores, job_names=own_names))


def test_names_that_are_missing_are_made_again_where_their_files_are_there() -> None:
    world = World()
    names = {key: f"films/{key}.mp4" for key in ("aa-clip", "bb-clip", "cc-unnamed")}
    jobs = [world.ledger.job(world.submit(key, key, publish=names[key])) for key in ("aa-clip", "bb-clip")]
    jobs.append(world.ledger.job(world.submit("cc", "cc-unnamed")))
    home = opened(world)
    assert {name: key for name, (_, key) in find_missing_names(home, jobs).items()} == {
        names["aa-clip"]: "aa-clip",
        names["bb-clip"]: "bb-clip",
    }
    assert still_wrong(home, jobs[0].id, "aa-clip")
    world.spoil("bb-clip")
    assert restore_names(home, jobs) == 1
    assert read_document(world.blobs, names["aa-clip"]) == b"aa-clip"
    assert not still_wrong(home, jobs[0].id, "aa-clip")
    assert restore_names(home, jobs) == 0, "the other one's file is gone"


def test_of_two_results_with_a_name_the_first_job_has_it_and_damaged_ones_are_passed_over() -> None:
    world = World()
    first, second, third = (
        world.ledger.job(world.submit(key, key, publish="films/a.mp4")) for key in ("aa-clip", "bb-clip", "cc-clip")
    )
    (damaged,) = [key for key in world.blobs.keys("results/") if "aa-clip" in key]
    world.blobs.delete(damaged)
    assert [key for _, key in find_missing_names(opened(world), [first, second, third]).values()] == ["bb-clip"]
