"""A home in a bucket: a machine dies with its disk, and another one goes on; to the byte as if nothing had happened."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation, parse_location
from rushes.library import JobRequest, Library
from rushes.settings import Settings, models_folder
from tests.acceptance.conftest import draw
from tests.google_storage import google_storage

ONLY = ("--only", "shots", "--only", "playlist", "--chunk", "1", "--slots", "1", "--no-beside")
# After a film is ours, before its database is stored, and between blob, manifest and ledger.
POINTS = ("lock:after#2", "checkpoint:before#3", "blob:after#2", "manifest:after#3")


@dataclass(frozen=True)
class Machine:
    """A machine of its own: it shares the bucket with others, and nothing else."""

    disk: Path
    place: BucketLocation

    def start(self, *args: str, **more: str) -> subprocess.Popen[str]:
        self.disk.mkdir(exist_ok=True)
        names = {name: str(self.disk) for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
        place = self.place
        reached = {"S3_ENDPOINT": place.endpoint, "S3_ACCESS_KEY_ID": place.key, "S3_SECRET_ACCESS_KEY": place.secret}
        env = {**os.environ, **names, **reached, "AWS_REGION": "us-east-1", **more}
        argv = [sys.executable, "-m", "rushes", *args]
        return subprocess.Popen(
            argv, env=env, cwd=self.disk, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def run(self, *args: str, **more: str) -> tuple[int, str]:
        process = self.start(*args, **more)
        output, _ = process.communicate(timeout=240)
        return process.returncode, output

    def lose(self) -> None:
        """Its disk is gone."""
        shutil.rmtree(self.disk)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("film") / "film.mp4"
    draw(path, seconds=3)
    return path


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, film: Path) -> set[str]:
    """The blobs of an undisturbed run in a folder."""
    with Library(tmp_path_factory.mktemp("near") / "home") as library:
        wanted = JobRequest(only=("shots", "playlist"), chunk="1")
        assert library.run([film], wanted).exit_code == 0
        return set(_blobs(library.home.blobs.keys("blobs/")))


def _blobs(keys: Iterator[str]) -> Iterator[str]:
    return (key.rpartition("/")[2] for key in keys)


@pytest.fixture
def bucket(seaweed_s3: BucketLocation, tmp_path: Path, film: Path) -> BucketLocation:
    place = replace(seaweed_s3, prefix=tmp_path.name)
    connect(place).put("videos/film.mp4", film)
    return place


@pytest.fixture
def machine(bucket: BucketLocation, tmp_path: Path) -> Callable[[str], Machine]:
    return lambda name: Machine(tmp_path / name, bucket)


@pytest.mark.parametrize("point", POINTS)
def test_another_machine_goes_on(
    bucket: BucketLocation, machine: Callable[[str], Machine], reference: set[str], point: str, tmp_path: Path
) -> None:
    home, film = ("--home", bucket.url), f"{bucket.url}/videos/film.mp4"
    first, second = machine("first"), machine("second")
    killed = {"RUSHES_CRASH": point, "RUSHES_CRASH_COUNT": str(tmp_path / "count")}
    code, output = first.run(*home, "run", film, *ONLY, **killed)
    assert code == -signal.SIGKILL, output
    first.lose()
    code, output = second.run(*home, "run", film, *ONLY)
    assert code == 0, output
    store = connect(bucket)
    keys = [meta["path"] for page in store.list() for meta in page]
    assert set(_blobs(key for key in keys if key.startswith("blobs/"))) == reference
    assert [key for key in keys if key.endswith("lock.json")] == []
    assert f"checkpoints/{bucket.prefix}/videos/film.mp4/ckpt.sqlite" in keys
    assert "film.mp4" in second.run(*home, "ls")[1]
    results = [json.loads(bytes(store.get(key).bytes())) for key in keys if key.startswith("results/")]
    assert {doc["provenance"]["fencing_token"] > 0 for doc in results} == {True}


def test_machines_share_out_the_films_of_a_prefix(
    bucket: BucketLocation, machine: Callable[[str], Machine], tmp_path: Path
) -> None:
    """Three films, two machines, one of them killed with its disk: every film is done once."""
    for n in range(3):
        draw(tmp_path / f"{n}.mp4", seconds=1 + n)
        connect(bucket).put(f"videos/{n}.mp4", tmp_path / f"{n}.mp4")
    recipe = {"RUSHES_RECIPE": "subtitles", "RUSHES_SLOTS": "1", "RUSHES_MODELS": str(models_folder(Settings()))}
    dying, living = machine("dying"), machine("living")
    killed = {"RUSHES_CRASH": "manifest:after#3", "RUSHES_CRASH_COUNT": str(tmp_path / "count")}
    first = dying.start("worker", bucket.url, "--until-idle", **recipe, **killed)
    code, output = living.run("worker", bucket.url, "--until-idle", **recipe)
    first.communicate(timeout=240)
    dying.lose()
    assert code == 0, output
    code, output = living.run("worker", bucket.url, "--until-idle", **recipe)
    assert code == 0, output
    code, listed = living.run("--home", bucket.url, "--json", "jobs", "ls")
    assert listed.count('"completed"') == 4, listed


def test_a_home_in_a_bucket_of_google_is_the_same(
    film: Path, reference: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of film, lock, databases and results; the service is a stand-in that speaks its interface."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with google_storage() as server:
        monkeypatch.setenv("S3_ENDPOINT", server.url)
        place = parse_location("gs://films/archive", server.url)
        connect(place).put("videos/film.mp4", film)
        with Library(place.url) as library:
            wanted = JobRequest(only=("shots", "playlist"), chunk="1")
            assert library.run([f"{place.url}/videos/film.mp4"], wanted).exit_code == 0
        shutil.rmtree(tmp_path / "cache")
        with Library(place.url) as library:  # another machine
            ((video,), _) = library.videos.page()
            assert (video.name, video.path) == ("film.mp4", f"{place.url}/videos/film.mp4")
            assert library.maintenance.verify().damages == ()
            assert library.run([f"{place.url}/videos/film.mp4"], wanted).exit_code == 0
        keys = [key.removeprefix("archive/") for key in server.objects]
    assert set(_blobs(key for key in keys if key.startswith("blobs/"))) == reference
    assert "checkpoints/archive/videos/film.mp4/ckpt.sqlite" in keys
    assert not [key for key in keys if key.endswith("lock.json")]
