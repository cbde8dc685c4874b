"""Deleting a video: all that was made of it goes, the original stays, and a kill in between costs nothing."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from rushes.blobs.documents import read_document
from rushes.domain.job import JobState
from rushes.domain.keys import JSON
from rushes.index.follower import Follower
from rushes.index.port import Video
from rushes.library import JobRequest, Library
from rushes.surfaces.cli.main import main
from tests.acceptance.conftest import draw
from tests.api.kit import Serving, serving

WISH = JobRequest(only=("playlist", "shots"))
UPLOADED = ".rushes/uploads/up_1/source.mp4"


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a film of two seconds, and a home below it in which it was developed; it was uploaded as well."""
    folder = tmp_path_factory.mktemp("deleting")
    film, sent = draw(folder / "film.mp4", 2), folder / UPLOADED
    sent.parent.mkdir(parents=True)
    shutil.copy(film, sent)
    with Library(folder / ".rushes") as library:
        assert library.run([film, sent], WISH, slots=2).exit_code == 0
        (video,) = library.videos.page()[0]
        library.videos.rename(video, "mine")
        library.videos.correct(video, 0, 1, "no")
        library.videos.select_run(video, "speech", "")
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A home of its own for each test, beside the same film."""
    shutil.copytree(made, tmp_path / "folder")
    return tmp_path / "folder" / ".rushes"


@pytest.fixture
def server(home: Path) -> Iterator[Serving]:
    with serving(home) as running:
        yield running


def left(library: Library) -> dict[str, JSON]:
    """What there still is of any video."""
    home = library.home
    library.videos.page()
    kinds = ("name", "correction", "selection", "clip")
    return {
        "videos": [v.id for v in home.index.videos("me")[0]],
        "results": [r for v in home.index.catalog("me") for r in home.index.state("me", v.id).results],
        "manifests": sorted(home.blobs.keys("results/")),
        "names": sorted(home.blobs.keys("videos/")) + sorted(home.blobs.keys("thumbs/")),
        "said": [r.id for kind in kinds for r in home.all_records(kind)],
    }


NOTHING: dict[str, JSON] = {"videos": [], "results": [], "manifests": [], "names": [], "said": []}


def only(library: Library) -> Video:
    (video,) = library.videos.page()[0]
    return video


def test_all_that_was_made_goes_and_the_original_stays(home: Path) -> None:
    with Library(home) as library:
        video = only(library)
        film = home.parent / "film.mp4"
        before = film.read_bytes()
        gone = library.videos.remove(library.videos.find("mine").id)
        assert (gone.video, gone.jobs, gone.originals) == (video.id, video.jobs, ())
        assert (home.parent / UPLOADED).exists()
        assert gone.results > 3
        assert left(library) == NOTHING
        assert film.read_bytes() == before
        library.maintenance.reindex()
        assert left(library) == NOTHING
        assert library.maintenance.verify().damages == ()


def test_an_uploaded_original_goes_only_if_that_is_wished_for_and_no_other_ever(server: Serving) -> None:
    folder = server.library.home.folder.parent
    gone = server.http.delete(f"/api/v1/videos/{only(server.library).id}?originals=true").json()
    assert gone["originals"] == [str((folder / UPLOADED).resolve())]
    assert not (folder / UPLOADED).exists()
    assert (folder / "film.mp4").exists()


KILLS = [
    *[("blobs", "delete", 1), ("blobs", "delete", 3)],
    *[("records", "put", 1), ("records", "put", 2), ("records", "delete", 1), ("records", "delete", 2)],
    *[("index", "apply", 1), ("index", "apply", 2)],
]


@pytest.mark.parametrize(("port", "name", "at"), KILLS)
def test_killed_anywhere_the_same_again_or_gc_does_the_rest(
    home: Path, monkeypatch: pytest.MonkeyPatch, port: str, name: str, at: int
) -> None:
    with Library(home) as library:
        video, store = only(library), getattr(library.home, port)
        calls = iter(range(1, 1000))
        verb = getattr(store, name)

        def die(*args: object, **more: object) -> object:
            if next(calls) == at:
                raise Killed
            return verb(*args, **more)

        with monkeypatch.context() as patch:
            patch.setattr(store, name, die)
            with pytest.raises(Killed):
                library.videos.remove(video.id)
    with Library(home) as library:
        if (port, name, at) == ("records", "put", 1):  # nothing had begun
            assert only(library).id == video.id
            library.videos.remove(video.id)
        library.maintenance.gc()
        assert left(library) == NOTHING


def test_the_same_command_finishes_what_a_kill_cut_short(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Library(home) as library:
        video, blobs = only(library), library.home.blobs

        def die(*_: object, **__: object) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(blobs, "delete", die)
            with pytest.raises(Killed):
                library.videos.remove(video.id)
        assert library.videos.page()[0] == ()
        library.videos.remove(video.id)
        assert left(library) == NOTHING


def test_a_film_that_was_taken_in_again_keeps_what_a_deletion_cut_short_would_drop(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Library(home) as library:
        video, before = only(library), left(library)

        def die(*_: object) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(library.home.ledger, "set_aside", die)
            with pytest.raises(Killed):
                library.videos.remove(video.id)
        library.videos.page()
        with monkeypatch.context() as patch:  # the index lags
            patch.setattr(Follower, "catch_up", lambda _follower: None)
            ran = library.run([home.parent / "film.mp4"], WISH, slots=2)
            assert ran.exit_code == 0
            library.maintenance.gc()
        assert library.maintenance.verify().damages == ()
        assert only(library).jobs == (ran.jobs[0].id,)
        now = left(library)
        assert now["names"] == before["names"]
        assert len(now["manifests"]) == len(before["manifests"]) - 1, "all but the probe of the copy"


def test_what_a_slot_finishes_after_the_deletion_goes_with_the_next_gc(home: Path) -> None:
    with Library(home) as library:
        late = {key: read_document(library.home.blobs, key) or b"" for key in library.home.blobs.keys("results/")}
        library.videos.remove(only(library).id)
        assert all(library.home.blobs.create(key, manifest) for key, manifest in late.items())
        library.maintenance.gc()
        assert left(library) == NOTHING


def test_a_film_that_was_deleted_can_be_taken_in_again(home: Path) -> None:
    with Library(home) as library:
        first = library.run([home.parent / "film.mp4"], WISH, slots=2)  # the copy is another file: it has its own job
        video = only(library)
        library.videos.remove(video.id)
        (passed,) = library.add([home.parent], WISH)
        assert passed.skipped.startswith("it was deleted")
        assert not library.videos.page()[0]
        ran = library.run([home.parent / "film.mp4"], WISH, slots=2)
        assert ran.exit_code == 0
        assert {job.id for job in ran.jobs}.isdisjoint(job.id for job in first.jobs)
        once_more = library.run([home.parent / "film.mp4"], WISH, slots=2)
        assert ([job.id for job in once_more.jobs], once_more.worked) == ([job.id for job in ran.jobs], False)
        again = only(library)
        assert (again.id, again.name) == (video.id, "film.mp4")
        assert again.proxy
        library.videos.remove(video.id)
        assert left(library) == NOTHING


def test_a_job_that_is_not_over_is_cancelled(server: Serving) -> None:
    video = only(server.library)
    assert server.ledger.revive(video.job, again=True)
    assert server.ledger.job(video.job).state is JobState.RUNNING
    server.http.delete(f"/api/v1/videos/{video.id}").raise_for_status()
    assert server.ledger.job(video.job).state is JobState.CANCELLED
    assert left(server.library) == NOTHING


def test_a_program_deletes_once_and_then_it_is_not_there(server: Serving) -> None:
    video = only(server.library)
    answer = server.http.delete(f"/api/v1/videos/{video.id}")
    assert answer.status_code == 200
    assert answer.json()["video"] == video.id
    assert server.http.delete(f"/api/v1/videos/{video.id}").status_code == 404
    assert server.http.get(f"/api/v1/jobs/{video.job}").status_code == 200
    assert left(server.library) == NOTHING


def test_the_command_asks_first_and_says_what_went(home: Path) -> None:
    asked = CliRunner().invoke(main, ["--home", str(home), "rm", "mine"])
    assert asked.exit_code == 2
    done = CliRunner().invoke(main, ["--home", str(home), "rm", "mine", "--yes", "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["results"] > 3
    with Library(home) as library:
        assert left(library) == NOTHING
