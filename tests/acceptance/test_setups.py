"""Every set-up of a fleet: killed, frozen and followed, with the promises that a laptop has."""

import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from proof.audit import Audit, audit, by_content
from proof.kills import TOYS, Film, Kill, Visits, command, differences, disturbed, environment, undisturbed
from proof.remote_workers import check, remote_fleet, work
from proof.setups import Servers

from rushes.domain.event import EventType
from rushes.domain.job import FINAL, JobState
from rushes.home import Home
from rushes.jobs.progress import follow
from rushes.ledger.clock import boot_seconds
from rushes.ledger.dynamodb import DynamoLedger
from rushes.ledger.port import Ledger
from rushes.ledger.postgres import PostgresLedger
from rushes.library import JobRequest, Library
from rushes.wiring import open_home
from rushes.wiring.workers import worker
from tests.acceptance.conftest import DEADLINE, SIGHT, wait_for
from tests.acceptance.test_kills import two_thirds
from tests.acceptance.test_zombies import freeze, signal_tree

SETUPS = ("postgres", "postgres+valkey+s3", "aws")
SEEING = "postgres+sight"  # the same with stages that see, on a film in which there is something
SEED = 20261116
POINTS = ("blob:after", "manifest:before", "manifest:after", "hint:before", "hint:after", "ledger.claim:after",
          "ledger.draft:after", "ledger.complete:before", "ledger.complete:after", "publish:before")  # fmt: skip
SAMPLE = {setup: random.Random(f"{SEED}{setup}").sample(POINTS, 3) for setup in SETUPS}
SAMPLE[SEEING] = ["manifest:before"]
LOST = {setup: SAMPLE[setup].pop() for setup in SETUPS[1:]} | {"postgres+s3": "manifest:after"}  # and the disk with it


@dataclass(slots=True)
class Site:
    """One set-up: a fresh corner for every run, and a run that nobody disturbed."""

    setup: str
    film: Film
    servers: Servers
    corners: Iterator[int]
    reference: Audit
    visits: Visits

    def fresh(self) -> Film:
        """The film in a corner that nobody has used."""
        return replace(self.film, settings=self.servers.settings(self.setup, f"run-{next(self.corners)}"))


@pytest.fixture(scope="module")
def sites(
    all_servers: Servers, toy_film: Path, seen_film: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Site]:
    made: dict[str, Site] = {}
    corners = itertools.count()

    def site(setup: str) -> Site:
        if setup not in made:
            what = (seen_film, SIGHT) if setup == SEEING else (toy_film, "toy_join")
            film = Film(*what, settings=all_servers.settings(setup, f"run-{next(corners)}"))
            made[setup] = Site(setup, film, all_servers, corners, *undisturbed(tmp_path_factory.mktemp("run"), film))
        return made[setup]

    return site


@pytest.mark.parametrize("setup", [*SETUPS, SEEING])
def test_a_film_goes_through(setup: str, sites: Callable[[str], Site]) -> None:
    site = sites(setup)
    assert site.reference.bad == ()
    assert set(POINTS) <= set(site.visits)


@pytest.mark.parametrize("setup", SETUPS)
def test_a_film_whose_name_is_no_text_goes_through(
    setup: str, all_servers: Servers, toy_film: Path, tmp_path: Path
) -> None:
    film = tmp_path / os.fsdecode(b"caf\xe9.mp4")
    film.write_bytes(toy_film.read_bytes())
    (tmp_path / ".rushes").mkdir()
    (tmp_path / ".rushes" / "rushes.toml").write_text(all_servers.settings(setup, f"names-{setup[-2:]}"))
    with Library(tmp_path / ".rushes") as library:
        assert library.run([tmp_path], JobRequest(only=("shots",)), slots=1).exit_code == 0
        video = library.videos.find(film.name)
        assert (video.name, video.path) == ("caf\ufffd.mp4",) * 2
        library.paths.add(str(film))
        assert [place.doc["path"] for place in library.paths.all()] == [str(film)]
        assert film.with_suffix(".csv") in [file.path for file in library.videos.write_sidecars(video)]


def test_postgres_and_sqlite_see_the_same_to_the_byte(sites: Callable[[str], Site], tmp_path: Path) -> None:
    site = sites(SEEING)
    laptop, _ = undisturbed(tmp_path, replace(site.film, settings=""))
    assert differences(by_content(laptop.outputs), by_content(site.reference.outputs)) == []
    assert len(laptop.outputs) > 20


@pytest.mark.parametrize(("setup", "point"), [(setup, point) for setup in SAMPLE for point in SAMPLE[setup]])
def test_killed_and_started_again(setup: str, point: str, sites: Callable[[str], Site], tmp_path: Path) -> None:
    site = sites(setup)
    nth = random.Random(f"{SEED}{point}").randint(1, two_thirds(point, site.visits))
    outcome = disturbed(tmp_path / "run", site.fresh(), [Kill(point, nth)], site.reference)
    assert outcome.bad == ()
    assert len(outcome.held) == 1


@pytest.mark.parametrize(("setup", "point"), LOST.items())
def test_killed_and_the_disk_of_its_machine_lost(
    setup: str, point: str, sites: Callable[[str], Site], tmp_path: Path
) -> None:
    site = sites(setup)
    assert site.reference.bad == ()
    nth = random.Random(f"{SEED}{point}").randint(1, two_thirds(point, site.visits))
    film = replace(site.fresh(), new_disk=True)
    outcome = disturbed(tmp_path / "run", film, [Kill(point, nth)], site.reference)
    assert outcome.bad == ()
    assert len(outcome.held) == 1


@pytest.mark.parametrize("setup", [*SETUPS, SEEING])
def test_a_frozen_worker_wakes_up_to_refusals(
    setup: str, sites: Callable[[str], Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = sites(setup)
    film = site.fresh()
    gate = tmp_path / "gate.toy_chunk.1"
    gate.touch()
    env = environment(tmp_path, TOY_GATE=str(tmp_path / "gate"))
    _make_home(tmp_path, film)
    zombie = subprocess.Popen(command(tmp_path, film), env=env, stderr=subprocess.PIPE)
    try:
        witness = tmp_path / "witness"
        wait_for(lambda: witness.exists() and "begin toy_chunk 1" in witness.read_text(), "the task never began")
        freeze(zombie, tmp_path / "home")
        gate.unlink()
        for name in ("PYTHONPATH", "TOY_WITNESS", "RUSHES_SANDBOX"):
            monkeypatch.setenv(name, env[name])
        monkeypatch.syspath_prepend(str(TOYS))
        home = _a_minute_later(tmp_path / "home")
        (job,) = [j for j in home.ledger.jobs("me").rows if j.recipe == "searchable"]
        worker(home, slots=2, until=lambda _shell: home.ledger.job(job.id).state is JobState.COMPLETED).run()
        before = home.ledger.events(job.id)
        assert any(e.type is EventType.LOST for e in before)
        home.close()
        signal_tree(zombie, signal.SIGCONT)
        _, errors = zombie.communicate(timeout=DEADLINE)
    finally:
        if zombie.poll() is None:
            signal_tree(zombie, signal.SIGKILL)
            zombie.communicate()
    home = open_home(tmp_path / "home", create=False)
    assert home.ledger.events(job.id) == before, "the zombie changed the job's history"
    home.close()
    assert b"refused: the task is lost" in errors or b"this worker lost its lease" in errors
    found = audit(tmp_path / "home", witness)
    assert found.bad == ()
    assert differences(site.reference.outputs, found.outputs) == []


@pytest.mark.parametrize("setup", SETUPS)
def test_two_followers_see_each_event_once_without_a_gap(
    setup: str, sites: Callable[[str], Site], tmp_path: Path
) -> None:
    film = sites(setup).fresh()
    _make_home(tmp_path, film)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        followers = [pool.submit(_follow, tmp_path / "home") for _ in range(2)]
        subprocess.run(command(tmp_path, film), env=environment(tmp_path), check=True, capture_output=True)
        first, second = (f.result(timeout=DEADLINE) for f in followers)
    assert first == second == list(range(1, len(first) + 1))
    assert first


@pytest.mark.parametrize(("setup", "kills"), [("sqlite", ("worker", "server")), ("postgres+valkey+s3", ())])
def test_workers_that_have_only_a_token_make_the_same_bytes(
    setup: str, kills: Sequence[str], sites: Callable[[str], Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Toys on a folder home while workers and servers are killed; and what is seen in a film, on a fleet's stores."""
    site = sites("postgres" if kills else SEEING)
    monkeypatch.syspath_prepend(str(TOYS))
    settings = site.servers.settings(setup, f"remote-{next(site.corners)}")
    with remote_fleet(tmp_path / "fleet", settings, 1 + bool(kills), {"TOY_SECONDS": "0.2"}) as fleet:
        made = work(fleet, site.film, kills, random.Random(SEED))
    assert made == Counter(kills)
    assert check(fleet, site.reference.outputs, len(kills), 2) == []
    for process in fleet.workers:
        own = {name for name in process.env if name.startswith(("RUSHES_", "AWS_", "S3_", "DATABASE_", "REDIS_"))}
        assert own <= {"RUSHES_WORKER_TOKEN", "RUSHES_HOME", "RUSHES_SANDBOX", "RUSHES_MODELS", "AWS_CA_BUNDLE"}


def _follow(home: Path) -> list[int]:
    """Every event number of the only job, followed live from another process."""
    opened = open_home(home, create=False)

    def there() -> bool:
        return bool([j for j in opened.ledger.jobs("me").rows if j.recipe == "searchable"])

    wait_for(there, "nobody submitted a job")
    (job,) = [j for j in opened.ledger.jobs("me").rows if j.recipe == "searchable"]
    over = time.monotonic() + DEADLINE

    def pause() -> bool:
        time.sleep(0.01)
        return time.monotonic() < over and opened.ledger.job(job.id).state not in FINAL

    numbers = [e.number for e in follow(opened.ledger, job.id, 0, pause)]
    numbers += [e.number for e in follow(opened.ledger, job.id, numbers[-1] if numbers else 0, lambda: False)]
    opened.close()
    return numbers


def _make_home(folder: Path, film: Film) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "rushes.toml").write_text(film.settings)


def _a_minute_later(home: Path) -> Home:
    """The same home, for which every lease of others is over."""
    opened = open_home(home, create=False)
    opened.__dict__["ledger"] = _hurried(opened.ledger)
    return opened


def _hurried(ledger: Ledger) -> Ledger:
    if isinstance(ledger, PostgresLedger):
        return PostgresLedger(ledger._db, wall=lambda: int(time.time() * 1000) + 60_000)
    assert isinstance(ledger, DynamoLedger)
    late = [0.0]
    hurried = DynamoLedger(ledger.table, clock=lambda: boot_seconds() + late[0])
    hurried.sweep()  # whose row stands still is counted from when it was seen
    late[0] = 60.0
    return hurried
