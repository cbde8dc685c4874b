"""A fleet of machines that do not see the same files: work goes to those that see its original, or is sent to all."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from proof.setups import Servers, servers

from rushes.domain.errors import SourceMissing
from rushes.domain.job import JobState
from rushes.domain.task import TaskState
from rushes.domain.worker import Incarnation
from rushes.jobs.why import why
from rushes.library import JobRequest, Library
from rushes.worker import core
from tests.acceptance.conftest import draw

SETUPS = ("postgres+valkey+s3", "aws")
SHOTS = JobRequest(only=("shots",))


@pytest.fixture(scope="module")
def shared_servers() -> Iterator[Servers]:
    with tempfile.TemporaryDirectory() as folder, servers(Path(folder)) as found:
        yield found


@pytest.fixture(params=SETUPS)
def fleet(request: pytest.FixtureRequest, shared_servers: Servers, tmp_path: Path) -> Iterator[dict[str, Library]]:
    """Two machines of one fleet, each with a folder of its own."""
    settings = shared_servers.settings(request.param, f"sites-{abs(hash(request.node.name)) % 10**6}")
    made = {}
    for name in ("studio", "attic"):
        home = tmp_path / name / ".rushes"
        home.mkdir(parents=True)
        (home / "rushes.toml").write_text(f'{settings}site = "{name}"\n')
        made[name] = Library(home)
    yield made
    for library in made.values():
        library.close()


def film(library: Library) -> Path:
    return draw(library.originals / "film.mp4", 3)


def enter(library: Library, host: str, site: str) -> None:
    """A worker of another machine, as the ledger knows it."""
    other = Incarnation(f"m.{host}.b.1", host, "b", 1, "1", ("cpu", f"cpu@{site}", f"now@{site}"))
    library.home.ledger.renew(other, {}, {})


def test_work_on_a_file_is_done_by_the_machine_that_sees_it(fleet: dict[str, Library]) -> None:
    studio, attic = fleet["studio"], fleet["attic"]
    (added,) = studio.add([film(studio)], SHOTS)
    assert added.job
    assert attic.work(slots=1, until_idle=True) == 0
    ledger = attic.home.ledger
    (probe,) = ledger.tasks(added.job.id).rows
    assert (probe.state, probe.failures, probe.fence) == (TaskState.READY, 0, 0)
    (reason,) = why(ledger, added.job)
    assert "its file is on studio" in reason.detail
    assert studio.work(slots=1, until_idle=True) == 0
    assert ledger.job(added.job.id).state is JobState.COMPLETED
    video = attic.videos.find("film.mp4")
    with pytest.raises(SourceMissing, match="is on studio"):
        attic.videos.open_original(video)
    with studio.videos.open_original(video) as file:
        assert file.read() == (studio.originals / "film.mp4").read_bytes()


def test_a_file_that_no_running_worker_sees_is_refused_with_the_choice(fleet: dict[str, Library]) -> None:
    studio = fleet["studio"]
    enter(studio, "far", "attic")
    (added,) = studio.add([film(studio)], SHOTS)
    assert added.error
    assert all(word in added.error.advice for word in ("--upload", "rushes worker", "site"))
    enter(studio, "near", "studio")
    assert studio.add([film(studio)], SHOTS)[0].created


def test_an_uploaded_file_is_worked_on_anywhere(fleet: dict[str, Library]) -> None:
    studio, attic = fleet["studio"], fleet["attic"]
    enter(studio, "far", "attic")
    (sent,) = studio.upload([studio.originals, film(studio)], SHOTS)
    (again,) = studio.upload([studio.originals], SHOTS)
    assert sent.job
    assert again.job
    assert (sent.created, again.created, again.job.id) == (True, False, sent.job.id)
    assert attic.work(slots=1, until_idle=True) == 0
    assert attic.home.ledger.job(sent.job.id).state is JobState.COMPLETED


def test_a_file_that_is_missing_on_one_machine_of_a_site_is_done_by_another(
    fleet: dict[str, Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    studio, attic = fleet["studio"], fleet["attic"]
    monkeypatch.setattr(core, "REST_SECONDS", 0.1)
    object.__setattr__(attic.home, "site", "studio")  # as if both had the same files, but its disk is not mounted
    (added,) = studio.add([film(studio)], SHOTS)
    assert added.job
    enter(studio, "near", "studio")
    assert attic.work(slots=1, until_idle=True) == 0
    ledger = studio.home.ledger
    (probe,) = ledger.tasks(added.job.id).rows
    assert (probe.state, probe.failures) == (TaskState.READY, 0)
    assert probe.fence > 0
    assert studio.work(slots=1, until_idle=True) == 0
    assert ledger.job(added.job.id).state is JobState.COMPLETED


def test_a_file_that_is_missing_on_every_machine_fails(
    fleet: dict[str, Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    studio = fleet["studio"]
    monkeypatch.setattr(core, "REST_SECONDS", 0.1)
    path = film(studio)
    (added,) = studio.add([path], SHOTS)
    assert added.job
    path.unlink()
    assert studio.work(slots=1, until_idle=True) == 0
    (probe,) = studio.home.ledger.tasks(added.job.id).rows
    assert probe.failure
    assert (probe.state, probe.failure.kind) == (TaskState.DEAD, "SourceMissing")
