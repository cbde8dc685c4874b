"""Outputs that are damaged, missing, or there although the database does not know them."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.spot_checkpoints.conftest import Videos, make_videos
from tests.conformance.spot_checkpoints.test_places import path_of

RUNBOOK = "SELECT chunk_index, status, last_error FROM chunks WHERE status != 'done'"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Videos:
    """A film that is done."""
    prefix = 'transcripts_prefix = "texts/of films"\n'
    made = make_videos(tmp_path_factory.mktemp("damaged") / "videos", "meeting.mp4", settings=prefix)
    made.rushes("run", "meeting.mp4")
    return made


@pytest.fixture
def videos(whole: Videos, tmp_path: Path) -> Iterator[Videos]:
    """The same, to be damaged: the next test finds it whole again, in the same place."""
    kept = tmp_path / "kept"
    subprocess.run(["cp", "-a", whole.folder, kept], check=True)
    yield whole
    shutil.rmtree(whole.folder)
    kept.rename(whole.folder)


def _first_text(videos: Videos) -> Path:
    return path_of(videos.column("SELECT transcript_uri FROM chunks WHERE stage = 'transcribe' AND chunk_index = 0")[0])


def test_a_text_that_is_missing_is_corrupt_until_it_is_made_again(videos: Videos) -> None:
    """8.3: a done chunk whose artifact is missing becomes `corrupt`, and the artifact comes back.

    Where: jobs/maintenance/verify.py, jobs/maintenance/repair.py
    """
    text, before = _first_text(videos), _first_text(videos).read_bytes()
    text.unlink()
    videos.rushes("verify", status=1)
    (row,) = videos.rows(RUNBOOK)
    assert (row["chunk_index"], row["status"]) == (0, "corrupt")
    assert "chunk_0000.txt" in row["last_error"]
    videos.rushes("verify", "--repair")
    assert text.read_bytes() == before
    assert videos.rows(RUNBOOK) == []


def test_bytes_that_do_not_match_are_kept_aside_and_the_chunk_is_done_again(videos: Videos) -> None:
    """2.5 and 8.3: on a mismatch the chunk is `corrupt`, the old artifact is preserved, and the output made again.

    Where: jobs/maintenance/repair.py, blobs/folder/__init__.py
    """
    text, before = _first_text(videos), _first_text(videos).read_bytes()
    attempts = "SELECT attempt_count FROM chunks WHERE stage = 'transcribe' AND chunk_index = 0"
    (tries,) = videos.column(attempts)
    (sha256,) = videos.column("SELECT transcript_sha256 FROM chunks WHERE stage = 'transcribe' AND chunk_index = 0")
    (blob,) = videos.files.rglob(sha256)
    blob.chmod(0o600)
    blob.write_bytes(b"something else")
    videos.rushes("verify", status=1)
    assert {row["status"] for row in videos.rows(RUNBOOK)} == {"corrupt"}
    videos.rushes("verify", "--repair")
    assert text.read_bytes() == before
    assert videos.rows(RUNBOOK) == []
    assert videos.column(attempts) == [tries + 1]
    assert [f for f in videos.files.rglob("*") if f.is_file() and f.read_bytes() == b"something else"]


def test_outputs_that_are_there_are_taken_although_the_database_is_lost(videos: Videos) -> None:
    """2.4, recovery invariant: an artifact that exists is verified and its chunk becomes `done` without running again.

    Where: worker/broker/attempt.py, jobs/open_plan.py
    """
    for file in videos.database.parent.glob("ledger.sqlite*"):
        file.unlink()
    manifests = {file: file.stat().st_mtime_ns for file in (videos.files / "results").rglob("*.json")}
    videos.rushes("run", "meeting.mp4")
    assert manifests == {file: file.stat().st_mtime_ns for file in manifests}, "nothing was made again"
    assert videos.column("SELECT status FROM files") == ["done"]
    assert path_of(videos.column("SELECT final_output_uri FROM files")[0]).is_file()


def test_the_runbook_lists_what_failed(tmp_path: Path) -> None:
    """8.4: `SELECT chunk_index, status, last_error FROM chunks WHERE status != 'done'`; permanent_failed is final.

    Where: ledger/sqlite/migrations/0008_sources.sql
    """
    videos = make_videos(tmp_path / "videos")
    (videos.folder / "broken.mp4").write_bytes(b"\0\0\0\x18ftypisom" + bytes(4096))
    videos.rushes("add", "broken.mp4")
    videos.rushes("worker", "--until-idle", status=3)
    (row,) = videos.rows(RUNBOOK)
    assert (row["chunk_index"], row["status"]) == (0, "permanent_failed")
    assert row["last_error"].startswith("BadMedia: ")
    assert videos.column("SELECT outcome FROM attempts") == ["permanent_failed"]
    assert videos.column("SELECT status FROM files") == ["permanent_failed"]
    assert videos.column("SELECT status FROM jobs") == ["failed"]


def test_a_changed_film_is_new_work(videos: Videos) -> None:
    """2.5: the fingerprint changes with the film, and with it the identity of its chunks.

    Where: domain/video.py, jobs/submit.py
    """
    before = set(videos.column("SELECT source_fingerprint FROM files"))
    film = videos.folder / "meeting.mp4"
    film.write_bytes(film.read_bytes() + b"\0\0\0\x08free")
    videos.rushes("add", "meeting.mp4")
    assert len(set(videos.column("SELECT source_fingerprint FROM files")) - before) == 1
    (new,) = videos.rows("SELECT file_id, status, done_chunks FROM files ORDER BY discovered_at DESC LIMIT 1")
    assert (new["status"], new["done_chunks"]) == ("pending", 0), "nothing of the old film counts"
    assert videos.column(f"SELECT DISTINCT status FROM chunks WHERE file_id = '{new['file_id']}'") == ["pending"]


def test_another_language_is_another_plan(videos: Videos, done: Videos, killed: Videos) -> None:
    """2.5: the plan's hash changes with language, options and model; the same plan elsewhere has the same.

    Where: plan/planner.py
    """
    speech = "SELECT DISTINCT chunk_plan_hash FROM chunks WHERE stage = 'transcribe'"
    videos.rushes("run", "meeting.mp4", "--language", "en")
    assert len(videos.column(speech)) == 2
    assert done.column(speech) == killed.column(speech)


def test_prefixes_are_configured(videos: Videos) -> None:
    """1.2, notes: the prefixes can be configured, by environment variables as well.

    Where: settings.py
    """
    assert (videos.files / "texts" / "of films" / "meeting" / "meeting.txt").read_text().strip()
    shown = videos.rushes("config", "show", TRANSCRIPTS_PREFIX="elsewhere", VIDEO_PREFIX="films")
    assert "elsewhere" in str(shown)
    assert "TRANSCRIPTS_PREFIX" in str(shown)
