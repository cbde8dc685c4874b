"""The mechanics of its queue: polling, states, retries, errors, figures, variables."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rushes.domain.job import NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.task import LEASE_SECONDS, Draft, Failure, Verdict, retry_delay
from rushes.domain.worker import Incarnation
from rushes.jobs.maintenance.reports import Check
from rushes.library import Library
from rushes.settings import load
from rushes.wiring.incarnation import incarnation
from tests.api.kit import SPEC
from tests.conformance.conftest import Site
from tests.conformance.cortana_vision.conftest import Pipeline

LANE = "elsewhere"  # which the worker of the site leaves alone
FAILURE = Failure("S3ObjectNotFound", "not found", "", "")


@pytest.fixture
def library(site: Site) -> Iterator[Library]:
    with site.library() as opened:
        yield opened


def enqueue(library: Library, name: str, priority: int = 0) -> str:
    job = job_id("me", name)
    new = NewJob(job, "me", name, name, "text", "{}", priority)
    library.home.ledger.submit(new, Draft(task_id(job, "read_text", None), job, "read_text", None, SPEC, LANE))
    return task_id(job, "read_text", None)


def worker(library: Library) -> Incarnation:
    me = incarnation((LANE,), 1, "me")
    library.home.ledger.renew(me, {}, {})
    return me


def look(site: Site, task: str) -> dict[str, Any]:
    """The job of the document that this task is."""
    (job,) = site.http.get(f"/videos/{task.partition('.')[0]}/jobs").json()
    return dict(job)


def cancel(library: Library, *tasks: str) -> None:
    for task in tasks:
        library.jobs.cancel(task.partition(".")[0])


def test_workers_poll_the_database_and_no_job_is_claimed_twice(library: Library) -> None:
    """Database-driven polling: workers claim with FOR UPDATE SKIP LOCKED, so that no job is claimed twice.

    Where: ledger/postgres/dialect.sql
    """
    tasks = {enqueue(library, f"poll {n}") for n in range(4)}
    ledger, both = library.home.ledger, [worker(library) for _ in range(2)]
    claimed = [lease.task for me in (*both, *both) for lease in ledger.claim(me.id, [LANE], 1)]
    assert (set(claimed), len(claimed)) == (tasks, 4)
    claim = (Path(__file__).parents[3] / "src/rushes/ledger/postgres/dialect.sql").read_text()
    assert "FOR UPDATE" in claim
    assert "SKIP LOCKED" in claim
    cancel(library, *tasks)


def test_higher_priority_first_then_older(library: Library) -> None:
    """Priority queues: ORDER BY priority DESC, created_at ASC.

    Where: ledger/postgres/dialect.sql
    """
    late, urgent, last = (enqueue(library, f"order {n}", p) for n, p in enumerate((0, 5, 0)))
    ledger, me = library.home.ledger, worker(library)
    order = [lease.task for _ in range(3) for lease in ledger.claim(me.id, [LANE], 1)]
    assert order == [urgent, late, last]
    cancel(library, late, urgent, last)


def test_a_claimed_job_says_who_holds_it_and_until_when(site: Site, library: Library) -> None:
    """Job leasing: a claimed job has `locked_by` and `locked_until`, which a heartbeat moves on.

    Where: surfaces/api/documents/cortana_vision.py, domain/task.py
    """
    task, me = enqueue(library, "lease", priority=3), worker(library)
    waiting = look(site, task)
    assert (waiting["locked_by"], waiting["locked_until"], waiting["priority"]) == (None, None, 3)
    (lease,) = library.home.ledger.claim(me.id, [LANE], 1)
    first = look(site, task)
    assert (first["locked_by"], first["status"]) == (me.id, "processing")
    now, until = datetime.now(UTC), datetime.fromisoformat(first["locked_until"])
    assert now < until <= now + timedelta(seconds=LEASE_SECONDS + 1)
    assert library.home.ledger.renew(me, {task: lease.fence}, {}).leases[task].value == "keep"
    assert datetime.fromisoformat(look(site, task)["locked_until"]) > until
    cancel(library, task)


def test_a_queued_job_cannot_fail(library: Library) -> None:
    """State transitions, forbidden: queued to failed without processing.

    Where: ledger/sql/work.py
    """
    task, me = enqueue(library, "queued"), worker(library)
    assert library.home.ledger.fail(me.id, task, 0, FAILURE, None) is Verdict.LOST
    assert library.jobs.task(task).state.value == "ready"
    cancel(library, task)


def test_a_failed_job_is_queued_again_after_its_delay(site: Site, library: Library) -> None:
    """State transitions: processing to failed, and failed to queued while retries are left.

    Where: surfaces/api/documents/cortana_vision.py
    """
    task, me = enqueue(library, "again"), worker(library)
    (lease,) = library.home.ledger.claim(me.id, [LANE], 1)
    assert library.home.ledger.fail(me.id, task, lease.fence, FAILURE, 60.0) is Verdict.OK
    row = library.jobs.task(task)
    assert (row.state.value, row.failures) == ("ready", 1)
    assert row.due_in
    assert 0 < row.due_in <= 60
    assert library.home.ledger.claim(me.id, [LANE], 1) == ()
    failed = look(site, task)
    assert (failed["status"], failed["retry_count"], failed["locked_by"]) == ("failed", 1, None)
    assert failed["payload"]["error"]["type"] == FAILURE.kind
    library.home.ledger.revive(row.job, [task])  # its delay is over
    assert look(site, task)["status"] == "queued"
    assert library.home.ledger.claim(me.id, [LANE], 1)
    cancel(library, task)


def test_done_is_final(pipeline: Pipeline) -> None:
    """State transitions, forbidden: done to any other state.

    Where: surfaces/api/documents/eioku.py
    """
    done = pipeline.job("ocr")["id"]
    for move in ("cancel", "retry", "enqueue"):
        assert pipeline.site.http.post(f"/tasks/{done}/{move}").status_code == 400


def test_three_retries_after_one_five_and_fifteen_minutes_with_jitter() -> None:
    """Retry policy: 3 retries after about 1, 5 and 15 minutes, each 0.8 to 1.2 times.

    Where: domain/task.py
    """
    assert [retry_delay(n, 0.5) for n in (1, 2, 3, 4)] == [60, 300, 900, None]
    assert [retry_delay(n, 0.0) for n in (1, 2, 3)] == pytest.approx([48, 240, 720])
    assert [retry_delay(n, 1.0) for n in (1, 2, 3)] == pytest.approx([72, 360, 1080])


@pytest.fixture(scope="module")
def broken(site: Site, films: Path) -> Pipeline:
    """A file that is no film."""
    (films / "broken.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(5000))
    answer = site.http.post("/api/v1/videos", json={"paths": [str(films / "broken.mp4")], "recipe": "text"})
    run = answer.json()[0]["job"]["id"]
    site.wait_for_job(run, "failed")
    return Pipeline(site, run, run)


def test_what_can_never_work_is_not_retried(broken: Pipeline) -> None:
    """Non-retryable errors: an invalid input fails at once, without retries.

    Where: domain/errors.py, domain/task.py
    """
    job = broken.job("transcode")
    assert (job["status"], job["retry_count"]) == ("failed", 1)
    with broken.site.library() as library:
        (task,) = library.jobs.tasks(broken.run)
        assert (task.state.value, task.failures) == ("dead", 1)


def test_an_error_is_stored_with_the_original_payload(broken: Pipeline) -> None:
    """Error message storage: payload has error {type, message, timestamp, retry_count} and original_payload.

    Where: worker/outbox.py, surfaces/api/documents/cortana_vision.py
    """
    payload = broken.job("transcode")["payload"]
    assert payload.keys() == {"error", "original_payload"}
    assert payload["error"].keys() == {"type", "message", "timestamp", "retry_count"}
    assert (payload["error"]["type"], payload["error"]["retry_count"]) == ("BadMedia", 0)
    assert "broken.mp4" in payload["error"]["message"]
    assert datetime.fromisoformat(payload["error"]["timestamp"]).utcoffset() == timedelta(0)
    assert payload["original_payload"].keys() == {"video_id", "s3_original_path"}


def test_failed_jobs_are_listed_and_can_be_retried(broken: Pipeline) -> None:
    """Dead letter queue: failed jobs stay for inspection, are shown by class, and an admin may retry them.

    Where: jobs/dead_letters.py
    """
    groups = {group["kind"]: group for group in broken.get("/api/v1/failed")["items"]}
    assert any(t["job"] == broken.run for cause in groups["BadMedia"]["causes"] for t in cause["tasks"])
    page = broken.site.http.get("/failed", headers={"Accept": "text/html"})
    assert "The file is not a readable video" in page.text
    assert broken.site.http.post(f"/api/v1/jobs/{broken.run}/retry").json()["tasks"] == [f"{broken.run}.probe"]
    broken.site.wait_for_job(broken.run, "failed")


def test_failure_and_retry_rates_are_told_by_type(broken: Pipeline, pipeline: Pipeline) -> None:
    """Logging strategy, monitoring: duration, failure rate and retry rate by type of job.

    Where: jobs/stage_rates.py
    """
    rates = {row["stage"]: row for row in pipeline.get("/api/v1/failed/rates")}
    probe = rates["probe"]
    assert probe["dead"] == 1
    assert probe["failure_rate"] == round(probe["failures"] / probe["attempts"], 4) > 0
    assert probe["retry_rate"] == round(probe["retries"] / probe["attempts"], 4)
    assert rates["segments"]["seconds"] > 0
    told = {name: rates["segments"][name] for name in ("attempts", "failures", "retries", "failure_rate")}
    assert told == {"attempts": 1, "failures": 0, "retries": 0, "failure_rate": 0.0}
    assert "How often steps fail" in pipeline.site.http.get("/failed", headers={"Accept": "text/html"}).text


def test_the_documents_variables_reach_the_store_and_the_bucket(tmp_path: Path) -> None:
    """S3 authentication: S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY.

    Where: settings.py
    """
    env = {"S3_ENDPOINT": "https://spaces.example", "S3_BUCKET": "prod", "S3_ACCESS_KEY_ID": "key"}
    found = load(tmp_path, env | {"S3_SECRET_ACCESS_KEY": "secret"}).settings
    assert (found.s3_endpoint, found.blobs, found.s3_key, found.s3_secret) == (
        "https://spaces.example", "s3://prod", "key", "secret")  # fmt: skip


def test_a_variable_that_has_no_effect_is_told(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker authentication: SUPABASE_URL and SUPABASE_SERVICE_ROLE_KEY are not read, and `rushes doctor` says so.

    Where: library/maintenance/doctor.py
    """
    monkeypatch.setenv("SUPABASE_SERVICE_ROLE_KEY", "eyJhbGc")
    told: list[Check] = [check for check in library.maintenance.doctor() if check.name == "variables"]
    assert [check.detail for check in told] == ["no effect: SUPABASE_SERVICE_ROLE_KEY"]
    assert "DATABASE_URL" in told[0].hint
