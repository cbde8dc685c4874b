"""A home in a bucket: a machine dies with its disk, and another one goes on; to the byte as if nothing had happened."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from proof.kills import environment

from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation, parse_location
from rushes.domain.event import EventType
from rushes.domain.job import JobState
from rushes.library import JobRequest, Library
from rushes.library.watching.event_listener import EventListener
from rushes.model_settings import models_folder
from rushes.settings import Settings
from rushes.sources.port import StorageEvent
from tests.acceptance.conftest import draw, wait_for
from tests.google_storage import google_storage
from tests.metadata_kit import metadata_service

ONLY = ("--only", "shots", "--only", "playlist", "--chunk", "1", "--slots", "1", "--no-beside")
# Each request, before and after: test_bucket_kills.py. Here real stages are killed, by the command line.
POINTS = ("checkpoint:before#3", "manifest:after#3")
FILMS = 6


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


@contextmanager
def elsewhere(bucket: BucketLocation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """The home as another machine sees it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    for name, value in {
        "ENDPOINT": bucket.endpoint,
        "ACCESS_KEY_ID": bucket.key,
        "SECRET_ACCESS_KEY": bucket.secret,
    }.items():
        monkeypatch.setenv(f"S3_{name}", value)
    with Library(bucket.url) as library:
        yield library


def test_machines_share_out_the_films_of_a_prefix(
    bucket: BucketLocation, machine: Callable[[str], Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six films, three machines, two of them killed with their disks: every film is done once."""
    for n in range(1, FILMS):  # and the one that is there
        connect(bucket).put(f"videos/{n}.mp4", draw(tmp_path / f"{n}.mp4", seconds=n))
    recipe = {"RUSHES_RECIPE": "subtitles", "RUSHES_SLOTS": "1", "RUSHES_MODELS": str(models_folder(Settings()))}
    dying = {}
    for name, point in (("first", "manifest:after#3"), ("second", "checkpoint:after#4")):
        killed = {"RUSHES_CRASH": point, "RUSHES_CRASH_COUNT": str(tmp_path / f"count-{name}")}
        dying[machine(name)] = machine(name).start("worker", bucket.url, **recipe, **killed)
    for one, process in dying.items():
        output, _ = process.communicate(timeout=240)
        assert process.returncode == -signal.SIGKILL, output
        one.lose()
    code, output = machine("living").run("worker", bucket.url, "--until-idle", **recipe)
    assert code == 0, output
    with elsewhere(bucket, tmp_path, monkeypatch) as library:
        jobs = library.jobs.page().rows
        assert Counter(job.state for job in jobs) == {JobState.COMPLETED: FILMS}
        events = [event for job in jobs for event in library.jobs.follow(job.id)]
        done = Counter(event.task for event in events if event.type is EventType.DONE)
        assert set(done.values()) == {1}
        lost = sum(event.type is EventType.LOST for event in events)
        assert lost <= len(dying), "more than one chunk for each slot that was killed"


def has_begun(witness: Path) -> bool:
    return witness.exists() and "begin toy_chunk 1" in witness.read_text()


def test_a_notice_with_25_seconds_left_brings_everything_into_the_bucket(
    bucket: BucketLocation, machine: Callable[[str], Machine], toy_film: Path, tmp_path: Path
) -> None:
    """Less than is kept in reserve: the chunk in hand is abandoned, and what is done is stored and released."""
    gate, witness = tmp_path / "gate.toy_chunk.1", tmp_path / "witness"
    gate.touch()
    toys = environment(tmp_path, TOY_GATE=str(tmp_path / "gate"))
    connect(bucket).put("toy.mp4", toy_film)
    noticed = machine("noticed")
    with metadata_service() as metadata:
        env = {name: toys[name] for name in ("PYTHONPATH", "TOY_WITNESS", "TOY_GATE", "RUSHES_SANDBOX")}
        argv = ("run", f"{bucket.url}/toy.mp4", "--only", "toy_join", "--chunk", "5", "--slots", "1")
        process = noticed.start(
            "--home", bucket.url, *argv, **env, RUSHES_SPOT_NOTICE=metadata.url, RUSHES_DRAIN_SECONDS="3600"
        )
        wait_for(lambda: process.poll() is not None or has_begun(witness), "chunk 1 never began")
        then = datetime.now(UTC) + timedelta(seconds=25)
        metadata.notice = json.dumps({"action": "terminate", "time": then.isoformat()}).encode()
        output, _ = process.communicate(timeout=240)
        assert datetime.now(UTC) < then, "the machine is gone"  # after 4 s, with 15 processes on two cores
        assert process.returncode == 143, output
    noticed.lose()
    keys = [meta["path"] for page in connect(bucket).list() for meta in page]
    assert [key for key in keys if key.endswith("lock.json")] == []
    (key,) = [key for key in keys if key.endswith("ckpt.sqlite")]
    (tmp_path / "ckpt.sqlite").write_bytes(bytes(connect(bucket).get(key).bytes()))
    with closing(sqlite3.connect(tmp_path / "ckpt.sqlite")) as db:
        ((reason, at),) = db.execute("SELECT shutdown_reason, shutdown_requested_at FROM jobs")
        assert reason == f"Spot notice: terminate at {then.isoformat()}"
        assert at.endswith("Z")
        chunks = dict(db.execute("SELECT chunk_index, status FROM chunks WHERE stage = 'toy_chunk'"))
        assert (chunks[0], chunks[1]) == ("done", "abandoned")
        assert db.execute("SELECT count(*) FROM leases WHERE released_at IS NULL").fetchone() == (0,)


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
            library.paths.add(f"{place.url}/later")
            connect(place).put("later/another.mp4", b"film")
            EventListener(library.home).deal([StorageEvent("films", "archive/later/another.mp4")])
            assert "another.mp4" in [job.name for job in library.jobs.page().rows]
        keys = [key.removeprefix("archive/") for key in server.objects]
    assert set(_blobs(key for key in keys if key.startswith("blobs/"))) == reference
    assert "checkpoints/archive/videos/film.mp4/ckpt.sqlite" in keys
    assert not [key for key in keys if key.endswith("lock.json")]
