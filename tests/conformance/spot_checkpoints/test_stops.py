"""Spot notices, signals, kills: what is recorded, and that the next worker goes on."""

import configparser
import json
from pathlib import Path

from tests.conformance.spot_checkpoints.conftest import Videos

ROOT = Path(__file__).resolve().parents[3]


def test_a_spot_notice_is_recorded_with_its_reason_and_time(noticed: Videos) -> None:
    """3.1 and 3.2: on the notice of IMDSv2 (token first) `shutdown_requested_at` and the reason are recorded.

    Where: worker/drain.py, ledger/sqlite/migrations/0006_checkpoints.sql
    """
    rows = noticed.rows("SELECT shutdown_reason, shutdown_requested_at FROM jobs WHERE shutdown_reason IS NOT NULL")
    assert rows
    assert {row["shutdown_reason"] for row in rows} == {"Spot notice: terminate at 2026-11-16T03:00:00Z"}
    assert all(row["shutdown_requested_at"].endswith("Z") for row in rows)


def test_a_chunk_without_time_to_finish_is_abandoned(noticed: Videos) -> None:
    """3.2: if the time is not sufficient, the attempt is marked `abandoned`, and the lease is released.

    Where: worker/core.py
    """
    assert "abandoned" in noticed.column("SELECT outcome FROM attempts")
    assert noticed.column("SELECT status FROM chunks WHERE status = 'abandoned'")
    assert noticed.column("SELECT count(*) FROM leases WHERE released_at IS NULL") == [0]


def test_nothing_is_leased_after_a_stop(noticed: Videos) -> None:
    """3.2: a draining worker leases no new chunks; what was not begun is pending.

    Where: worker/core.py
    """
    assert noticed.column("SELECT count(*) FROM chunks WHERE lease_owner IS NOT NULL") == [0]
    (told,) = noticed.column("SELECT min(shutdown_requested_at) FROM jobs")
    assert noticed.column(f"SELECT count(*) > 0 FROM attempts WHERE started_at <= '{told}'") == [1]
    assert noticed.column(f"SELECT count(*) FROM attempts WHERE started_at > '{told}'") == [0]
    assert noticed.column("SELECT count(*) FROM files WHERE status != 'done'") != [0]


def test_a_signal_is_recorded_with_its_name(killed: Videos) -> None:
    """3.1: SIGTERM and SIGINT stop a worker as the notice does, and are the reason that is recorded.

    Where: worker/drain.py
    """
    for name in ("SIGINT", "SIGTERM"):
        assert json.loads((killed.folder / name).read_text()) == [{"status": "running", "shutdown_reason": name}]


def test_the_next_worker_finishes_without_doing_anything_twice(killed: Videos) -> None:
    """3.2 and 8.1: a restart resumes from the checkpoints; no done chunk is processed again.

    Where: worker/core.py
    """
    assert killed.column("SELECT status FROM files") == ["done"]
    successes = "SELECT count(*) FROM attempts WHERE outcome = 'success' GROUP BY chunk_id"
    assert set(killed.column(successes)) == {1}


def test_a_chunk_that_has_time_is_finished(killed: Videos) -> None:
    """3.2: if the remaining time is sufficient, the running chunk is finished and its output written.

    Where: worker/core.py
    """
    speech = "SELECT outcome FROM attempts WHERE chunk_id LIKE '%.transcribe.%' ORDER BY started_at LIMIT 1"
    assert killed.column(speech) == ["success"], "the first worker was stopped while it had time"


def test_a_killed_worker_loses_its_lease_and_the_chunk_is_done_by_another(killed: Videos) -> None:
    """5.4 and 8.2: chunks of a worker that died are reclaimed when its lease is over.

    Where: ledger/sql/sweep.py
    """
    assert killed.column("SELECT status FROM files") == ["done"]
    (lost,) = killed.rows(
        "SELECT chunk_id, worker_id FROM attempts JOIN event_log ON chunk_id = entity_id AND message = 'lost'"
        " WHERE data_json ->> '$.worker' = worker_id"
    )
    done = f"SELECT worker_id FROM attempts WHERE chunk_id = '{lost['chunk_id']}' AND outcome = 'success'"
    (again,) = killed.rows(done)
    assert again["worker_id"] != lost["worker_id"]
    (tries,) = killed.column(f"SELECT attempt_count FROM chunks WHERE chunk_id = '{lost['chunk_id']}'")
    assert killed.column(f"SELECT count(*) FROM attempts WHERE chunk_id = '{lost['chunk_id']}'") == [tries]


def test_what_was_killed_has_the_same_bytes_as_what_was_not(killed: Videos, done: Videos) -> None:
    """2.1: crash-only; a kill leaves a state that can be resumed, and the outputs are the same.

    Where: worker/broker/attempt.py, media/encoders.py
    """
    whole = (done.files / "transcripts" / "talks" / "meeting" / "meeting.txt").read_bytes()
    assert (killed.files / "transcripts" / "meeting" / "meeting.txt").read_bytes() == whole


def test_a_file_is_done_only_when_its_chunks_and_its_transcript_are(noticed: Videos) -> None:
    """7: a file is done only when all chunks are done and the final transcript is written.

    Where: ledger/rules.py
    """
    for row in noticed.rows("SELECT status, total_chunks, done_chunks, final_output_uri FROM files"):
        complete = row["done_chunks"] == row["total_chunks"] and row["final_output_uri"] is not None
        assert (row["status"] == "done") is complete


def test_no_temporary_file_is_left(killed: Videos) -> None:
    """2.3: outputs are written to a temporary name and renamed; readers see whole files only.

    Where: files.py
    """
    names = [file.name for file in (killed.files / "transcripts").rglob("*") if file.is_file()]
    assert {Path(name).suffix for name in names} <= {".txt", ".srt", ".vtt", ".json"}


def test_the_unit_restarts_and_has_two_minutes() -> None:
    """4.2: the systemd unit has Restart=always, RestartSec=10, KillSignal=SIGTERM and TimeoutStopSec=120.

    Where: infra/systemd/rushes-worker.service
    """
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[method-assign,assignment]  # names are not to be lowered
    unit.read_string((ROOT / "infra" / "systemd" / "rushes-worker.service").read_text())
    service = unit["Service"]
    wanted = {"Restart": "always", "RestartSec": "10", "KillSignal": "SIGTERM", "TimeoutStopSec": "120"}
    assert {name: service[name] for name in wanted} == wanted
