"""`rushes serve` with a worker beside it, as people start it: one for each name and set-up, started when asked for."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from proof.setups import Servers

from rushes.home import Home
from rushes.jobs.maintenance.deletion import Deletion
from rushes.jobs.maintenance.gc import GcRound
from rushes.jobs.maintenance.video_removal import retention_rules
from rushes.jobs.maintenance.work_file import WorkFile
from rushes.library import Library
from tests.api.kit import DEADLINE, PLAIN, served, wait_for


@dataclass(frozen=True, slots=True)
class Site:
    """A home on which a server and a worker run, in processes of their own."""

    home: Path
    url: str
    http: httpx.Client

    def library(self) -> Library:
        """The same home, opened by the test; to be closed."""
        return Library(self.home)

    def wait_for_job(self, job: str, state: str = "completed") -> None:
        """Until a job is in that state."""
        place = f"/api/v1/jobs/{job}"
        wait_for(lambda: self.http.get(place).json()["state"] == state, f"{job} was never {state}")


Sites = Callable[..., Site]


def clear_after(home: Home, folder: Path, **time: float) -> None:
    """What workers clear from a store in one round, as it will be in so many days or hours."""
    deletion = Deletion(
        home.ledger, home.blobs, home.owner, retention_rules(home), datetime.now(UTC) + timedelta(**time)
    )
    with closing(WorkFile(folder / f"{sum(time.values())}.sqlite", home.owner, 3600.0)) as file:
        round = GcRound(deletion, file, lambda _job: None)
        while round.step():
            pass


@pytest.fixture(scope="session")
def sites(all_servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """`sites(name, setup, workers, **settings)`: the same name is the same site; the set-ups of `proof.setups`."""
    found: dict[str, Site] = {}
    with ExitStack() as closing:

        def site(name: str, setup: str = "sqlite", workers: int = 1, **settings: str) -> Site:
            if name not in found:
                home = tmp_path_factory.mktemp(name) / "home"
                home.mkdir()
                lines = "".join(f'{key} = "{value}"\n' for key, value in settings.items())
                (home / "rushes.toml").write_text(all_servers.settings(setup, name) + lines)
                _process, said = closing.enter_context(served(home, "--workers", str(workers), "--slots", "1"))
                http = closing.enter_context(httpx.Client(base_url=said["url"], timeout=DEADLINE, verify=PLAIN))
                found[name] = Site(home, said["url"], http)
                with found[name].library() as opened:
                    ledger = opened.home.ledger
                    wait_for(lambda: len(ledger.workers()) >= workers, "its workers never came")
            return found[name]

        yield site
