"""What is asked by command and over HTTP of a film that another machine works on is done when it renews."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation
from rushes.domain.job import Job, JobState
from rushes.domain.worker import Incarnation
from rushes.home_location import find_home
from rushes.library import JobRequest, Library
from rushes.surfaces.cli.main import main
from tests.acceptance.conftest import draw
from tests.api.kit import serving


@dataclass(frozen=True, slots=True)
class Holder:
    """A machine that works on the film, and what a person elsewhere knows: the bucket, and the job."""

    library: Library
    place: str
    job: str
    me: Incarnation

    def renew(self) -> Job:
        """As its worker does every ten seconds; the job then."""
        self.library.home.ledger.renew(self.me, {}, {})
        return self.library.home.ledger.job(self.job)


@pytest.fixture
def holder(seaweed_s3: BucketLocation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Holder]:
    place = replace(seaweed_s3, prefix=tmp_path.name)
    connect(place).put("film.mp4", draw(tmp_path / "film.mp4", 1))
    reached = {"S3_ENDPOINT": place.endpoint, "S3_ACCESS_KEY_ID": place.key, "S3_SECRET_ACCESS_KEY": place.secret}
    for name, value in reached.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr("rushes.ledger.bucket.copies.LOOK_SECONDS", 0.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "holder"))
    with Library(place.url) as library:
        (added,) = library.add([f"{place.url}/film.mp4"], JobRequest(only=("probe",)))
        assert added.job
        me, ledger = Incarnation("holder", "host", "boot", 1, "1", ("cpu",)), library.home.ledger
        ledger.renew(me, {}, {})
        assert ledger.claim(me.id, ["cpu"], 1)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
        yield Holder(library, place.url, added.job.id, me)


Ask = Callable[[str], None]  # of the holder: cancel or retry


@pytest.fixture(params=["command", "http"])
def ask(request: pytest.FixtureRequest, holder: Holder) -> Iterator[Ask]:
    if request.param == "http":
        with serving(find_home(Path(), holder.place)) as server:
            yield lambda what: _is_asked(server.post(f"/api/v1/jobs/{holder.job}/{what}", status=202)["detail"])
    else:
        yield lambda what: _is_asked(_said("--home", holder.place, "jobs", what, holder.job))


def _said(*args: str) -> str:
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, done.output
    return done.output


def _is_asked(said: str) -> None:
    assert "the worker that holds" in said


def test_a_film_that_another_machine_holds_is_cancelled_and_retried(holder: Holder, ask: Ask) -> None:
    ask("cancel")
    assert holder.library.home.ledger.job(holder.job).state is not JobState.CANCELLED
    assert holder.renew().state is JobState.CANCELLED
    ask("retry")
    assert holder.renew().state is not JobState.CANCELLED


def test_a_film_that_another_machine_holds_gets_another_priority(holder: Holder) -> None:
    with serving(find_home(Path(), holder.place)) as server:
        server.post(f"/api/v1/jobs/{holder.job}/priority", {"priority": 7}, status=202)
        assert holder.renew().priority == 7
        assert server.get(f"/api/v1/jobs/{holder.job}")["priority"] == 7
