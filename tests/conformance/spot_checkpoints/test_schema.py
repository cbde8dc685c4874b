"""The tables of the document, column by column, with true values."""

import hashlib
import json
import re
from datetime import datetime
from typing import Any

import pytest

from tests.conformance.spot_checkpoints.conftest import Videos
from tests.conformance.spot_checkpoints.test_places import path_of

COLUMNS = {
    "jobs": "job_id created_at updated_at source_type config_json status shutdown_reason shutdown_requested_at",
    "files": "file_id job_id source_uri source_fingerprint discovered_at status total_chunks done_chunks"
    " final_output_uri final_output_sha256 last_error updated_at",
    "chunks": "chunk_id file_id chunk_index start_seconds end_seconds chunk_plan_hash status lease_owner"
    " lease_expires_at attempt_count transcript_uri transcript_sha256 last_error started_at completed_at updated_at",
    "attempts": "attempt_id chunk_id file_id worker_id started_at ended_at outcome error_message",
    "leases": "lease_id scope scope_id worker_id acquired_at expires_at released_at",
    "event_log": "event_id ts level entity_type entity_id message data_json",
}
NOT_NULL = {
    "jobs": "job_id created_at updated_at source_type config_json status",
    "files": "file_id job_id source_uri source_fingerprint discovered_at status total_chunks done_chunks updated_at",
    "chunks": "chunk_id file_id chunk_index start_seconds end_seconds chunk_plan_hash status attempt_count updated_at",
    "attempts": "attempt_id worker_id started_at",
    "leases": "lease_id scope scope_id worker_id acquired_at expires_at",
    "event_log": "event_id ts level message",
}


@pytest.mark.parametrize("table", COLUMNS)
def test_every_table_has_its_columns(done: Videos, table: str) -> None:
    """5.3: jobs, files, chunks, attempts, leases and event_log have the columns of the DDL.

    Where: ledger/sqlite/migrations/0006_checkpoints.sql, ledger/sqlite/migrations/0008_sources.sql
    """
    rows = done.rows(f"SELECT {', '.join(COLUMNS[table].split())} FROM {table}")
    assert rows
    assert all(row[name] is not None for row in rows for name in NOT_NULL[table].split())


@pytest.mark.parametrize("table", COLUMNS)
def test_every_row_has_a_key_of_its_own(killed: Videos, table: str) -> None:
    """5.3: the first column is the primary key.

    Where: ledger/sqlite/migrations/0006_checkpoints.sql
    """
    keys = killed.column(f"SELECT {COLUMNS[table].split()[0]} FROM {table}")
    assert keys
    assert len(keys) == len(set(keys))


def test_rows_point_to_each_other(killed: Videos) -> None:
    """5.3: files belong to jobs, chunks to files, attempts to chunks and files, leases to chunks.

    Where: ledger/sqlite/migrations/0006_checkpoints.sql
    """
    for query in (
        "SELECT 1 FROM files LEFT JOIN jobs USING (job_id) WHERE jobs.job_id IS NULL",
        "SELECT 1 FROM chunks LEFT JOIN files USING (file_id) WHERE files.file_id IS NULL",
        "SELECT 1 FROM attempts LEFT JOIN chunks USING (chunk_id, file_id) WHERE chunks.status IS NULL",
        "SELECT 1 FROM leases LEFT JOIN chunks ON scope_id = chunk_id WHERE scope = 'chunk' AND chunk_id IS NULL",
    ):
        assert killed.rows(query) == []


def test_a_chunk_is_unique_in_its_plan(done: Videos) -> None:
    """5.3: UNIQUE (file_id, chunk_index, chunk_plan_hash).

    Where: ledger/sqlite/migrations/0008_sources.sql
    """
    doubles = "SELECT 1 FROM chunks GROUP BY file_id, chunk_index, chunk_plan_hash HAVING count(*) > 1"
    assert done.rows(doubles) == []


def test_chunks_cover_the_film_without_gap_or_overlap(done: Videos) -> None:
    """2.5 and 5.3: boundaries are deterministic; `start_seconds` and `end_seconds` of neighbours meet.

    Where: plan/grid.py
    """
    bounds = done.rows("SELECT start_seconds, end_seconds FROM chunks WHERE stage = 'transcribe' ORDER BY chunk_index")
    assert [(b["start_seconds"], b["end_seconds"]) for b in bounds] == [(0.0, 5.0), (5.0, 10.0), (10.0, 14.0)]


def test_the_job_says_what_was_asked(done: Videos) -> None:
    """5.1: a job carries a snapshot of its configuration.

    Where: ledger/sqlite/migrations/0008_sources.sql, plan/planner.py
    """
    (job,) = done.rows("SELECT config_json, source_type, status, shutdown_reason FROM jobs")
    config = json.loads(job.pop("config_json"))
    assert (config["chunk_seconds"], config["profile"]) == (5, "fast")
    assert job == {"source_type": "local", "status": "done", "shutdown_reason": None}


def test_the_file_counts_its_chunks(done: Videos) -> None:
    """5.3: `total_chunks` and `done_chunks` are what the rows of chunks say.

    Where: ledger/sqlite/migrations/0006_checkpoints.sql
    """
    (file,) = done.rows("SELECT status, total_chunks, done_chunks FROM files")
    (n,) = done.column("SELECT count(*) FROM chunks")
    assert file == {"status": "done", "total_chunks": n, "done_chunks": n}


def test_done_means_that_the_text_is_there_and_its_hash_matches(done: Videos) -> None:
    """2.4, primary invariant: `chunk.status = done` implies that the artifact exists and matches its hash.

    Where: worker/broker/attempt.py, ledger/sqlite/migrations/0006_checkpoints.sql
    """
    rows = done.rows("SELECT transcript_uri, transcript_sha256 FROM chunks WHERE stage = 'transcribe'")
    assert len(rows) == 3
    for row in rows:
        assert hashlib.sha256(path_of(row["transcript_uri"]).read_bytes()).hexdigest() == row["transcript_sha256"]


def test_the_final_output_is_the_transcript(done: Videos) -> None:
    """5.3: `final_output_uri` and `final_output_sha256` are those of the final transcript.

    Where: ledger/sqlite/migrations/0006_checkpoints.sql
    """
    (file,) = done.rows("SELECT final_output_uri, final_output_sha256 FROM files")
    path = path_of(file["final_output_uri"])
    assert path.name == "meeting.txt"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == file["final_output_sha256"]


def test_the_fingerprint_knows_the_file(done: Videos) -> None:
    """2.5: the local fingerprint is path, size and mtime_ns.

    Where: domain/video.py, sources/folder.py
    """
    film = done.folder / "talks" / "meeting.mp4"
    (fingerprint,) = map(json.loads, done.column("SELECT source_fingerprint FROM files"))
    told = film.stat()
    assert (fingerprint["path"], fingerprint["size"]) == ("talks/meeting.mp4", told.st_size)
    assert fingerprint["mtime_ns"] == told.st_mtime_ns


def test_the_plan_hash_is_a_sha256_and_the_same_for_all_chunks_of_a_plan(done: Videos) -> None:
    """2.5: `chunk_plan_hash` is a sha256 of bounds, options, model and versions, one for the chunks of a plan.

    Where: plan/planner.py
    """
    hashes = set(done.column("SELECT chunk_plan_hash FROM chunks WHERE stage = 'transcribe'"))
    assert len(hashes) == 1
    assert re.fullmatch("[0-9a-f]{64}", hashes.pop())


def test_times_are_iso_8601_and_in_order(done: Videos) -> None:
    """5.3: created, started, completed and updated are times as text, in their order.

    Where: ledger/sqlite/migrations/0008_sources.sql
    """

    def at(value: Any) -> datetime:
        assert value.endswith("Z")
        return datetime.fromisoformat(value)

    for row in done.rows("SELECT started_at, completed_at, updated_at FROM chunks"):
        assert at(row["started_at"]) <= at(row["completed_at"]) <= at(row["updated_at"])
    (job,) = done.rows("SELECT created_at, updated_at FROM jobs")
    assert at(job["created_at"]) < at(job["updated_at"])


def test_attempts_that_succeeded_say_who_and_when(done: Videos) -> None:
    """5.3: an attempt has its worker, start, end and outcome.

    Where: ledger/sqlite/migrations/0006_checkpoints.sql
    """
    rows = done.rows("SELECT outcome, worker_id, started_at <= ended_at AS ordered, error_message FROM attempts")
    assert {row["outcome"] for row in rows} == {"success"}
    assert all(row["ordered"] and row["error_message"] is None for row in rows)


def test_released_leases_stay(done: Videos) -> None:
    """3.2 and 5.3: a lease that is over has `released_at`; it was released before it expired.

    Where: ledger/sqlite/migrations/0006_checkpoints.sql
    """
    rows = done.rows("SELECT acquired_at, released_at, expires_at FROM leases")
    assert rows
    assert all(row["acquired_at"] <= row["released_at"] < row["expires_at"] for row in rows)


def test_the_event_log_is_there_for_debugging(killed: Videos) -> None:
    """2.1: an append-only event trail in the database; the loss of a worker is in it as a warning.

    Where: domain/event.py
    """
    levels = {row["message"]: row["level"] for row in killed.rows("SELECT message, level FROM event_log")}
    assert {"submitted", "planned", "done", "lost", "finished"} <= levels.keys()
    assert (levels["lost"], levels["done"]) == ("warning", "info")


def test_the_database_is_in_wal_mode(done: Videos) -> None:
    """2.2: journal_mode is WAL.

    Where: sqlite/file.py
    """
    assert done.column("PRAGMA journal_mode") == ["wal"]
