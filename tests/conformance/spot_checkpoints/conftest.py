"""Folders with films, worked on as people do it; the client looks at files and at the SQLite database, nothing else."""

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from rushes.bucket.location import BucketLocation
from tests.acceptance.conftest import VOICE, draw
from tests.api.kit import PROGRAM, wait_for
from tests.metadata_kit import NOTICE, metadata_service

SETTINGS = 'recipe = "subtitles"\nprofile = "fast"\nchunk_seconds = 5\nbeside = false\n'


@dataclass(frozen=True, slots=True)
class Videos:
    """A folder with films and a home beside them."""

    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / ".rushes" / "ledger.sqlite"

    @property
    def files(self) -> Path:
        return self.folder / ".rushes" / "files"

    def rows(self, query: str) -> list[dict[str, Any]]:
        """What a SQLite shell answers."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=5)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(query)]

    def column(self, query: str) -> list[Any]:
        return [next(iter(row.values())) for row in self.rows(query)]

    def rushes(self, *argv: str, status: int = 0, **env: str) -> list[Any]:
        """Run a command; what it printed as JSON."""
        environment = {**os.environ, **env}
        argv = (*PROGRAM, *argv)
        done = subprocess.run(argv, check=False, cwd=self.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    @contextmanager
    def worker(self, *argv: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
        """A worker, once a chunk of speech is leased by it."""
        command = [*PROGRAM, "worker", "--slots", "1", *argv]
        null = subprocess.DEVNULL
        with subprocess.Popen(command, cwd=self.folder, env={**os.environ, **env}, stdout=null, stderr=null) as process:
            try:
                speech = "SELECT 1 FROM chunks WHERE stage = 'transcribe' AND lease_owner IS NOT NULL"
                wait_for(lambda: bool(self.rows(speech)), "no chunk was ever leased")
                yield process
            finally:
                process.kill()


@contextmanager
def frozen_slots(worker: subprocess.Popen[bytes]) -> Iterator[None]:
    """What is in hand stays in hand, however fast the machine is. A worker waits for a slot that has not begun yet."""
    wait_for(lambda: bool(slots_of(worker)), "the worker has no slot")
    slots = slots_of(worker)
    for slot in slots:
        slot.suspend()
    try:
        yield
    finally:
        for slot in slots:
            with suppress(psutil.NoSuchProcess):
                slot.kill()


def slots_of(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Its children that are programs of their own by now, with all that they started."""
    slots = [child for child in psutil.Process(worker.pid).children() if "rushes.wiring" in child.cmdline()]
    return [process for slot in slots for process in (slot, *slot.children(recursive=True))]


def make_videos(folder: Path, *names: str, settings: str = "") -> Videos:
    """A home with films that differ."""
    folder.mkdir()
    for n, name in enumerate(names):
        (folder / name).parent.mkdir(exist_ok=True)
        draw(folder / name, 14 + n, (64, 36), voice=VOICE)
    videos = Videos(folder)
    videos.rushes("init")
    (folder / ".rushes" / "rushes.toml").write_text(SETTINGS + settings)
    return videos


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory) -> Videos:
    """A film that is done; tests only look."""
    videos = make_videos(tmp_path_factory.mktemp("done") / "my videos", "talks/meeting.mp4")
    videos.rushes("run", "talks/meeting.mp4")
    return videos


@pytest.fixture(scope="session")
def noticed(tmp_path_factory: pytest.TempPathFactory) -> Videos:
    """Films whose worker got the Spot notice in the middle of a chunk, and had no time to finish it."""
    names = ("a.mp4", "b.mp4", "c.mp4")
    videos = make_videos(tmp_path_factory.mktemp("noticed") / "videos", *names)
    videos.rushes("add", *names)
    with metadata_service() as metadata:
        spot = {"RUSHES_SPOT_NOTICE": metadata.url}
        with videos.worker("--drain-grace", "0", **spot) as worker, frozen_slots(worker):
            metadata.notice = NOTICE
            worker.wait(60)
        assert metadata.tokens, "it asked for a token first"
    return videos


@pytest.fixture(scope="session")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Videos:
    """A film whose first worker was stopped, whose second had no time, whose third was killed; another finished it."""
    videos = make_videos(tmp_path_factory.mktemp("killed") / "videos", "meeting.mp4")
    videos.rushes("add", "meeting.mp4")
    for number, grace in ((signal.SIGINT, "60"), (signal.SIGTERM, "0"), (signal.SIGKILL, "60")):
        hold = nullcontext if number == signal.SIGINT else frozen_slots
        with videos.worker("--drain-grace", grace) as worker, hold(worker):
            worker.send_signal(number)
            worker.wait(60)
        note = videos.folder / signal.Signals(number).name
        note.write_text(json.dumps(videos.rows("SELECT status, shutdown_reason FROM jobs")))
    videos.rushes("worker", "--until-idle")
    return videos


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory, seaweed_s3: BucketLocation) -> Videos:
    """A film in a bucket, and the results in the same one."""
    from rushes.bucket.client import connect  # noqa: PLC0415 - boto3 takes a second to load

    place = f"s3://{seaweed_s3.bucket}"
    lines = {
        "blobs": place,
        "s3_endpoint": seaweed_s3.endpoint,
        "s3_key": seaweed_s3.key,
        "s3_secret": seaweed_s3.secret,
    }
    settings = "".join(f'{name} = "{value}"\n' for name, value in lines.items())
    videos = make_videos(tmp_path_factory.mktemp("bucket") / "videos", "meeting.mp4", settings=settings)
    connect(seaweed_s3).put("videos/meeting.mp4", videos.folder / "meeting.mp4")
    videos.rushes("run", f"{place}/videos/meeting.mp4")
    return videos
