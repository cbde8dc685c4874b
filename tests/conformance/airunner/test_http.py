"""What the document says of jobs, queues and events, over HTTP."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from proof.setups import Servers

from rushes.domain.job import JobCommand, NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.task import Draft
from rushes.library import Library
from tests.api.kit import serving
from tests.conformance.airunner.conftest import add
from tests.conformance.conftest import Site
from tests.servers_aws import KEY, SECRET


@contextmanager
def client(servers: Servers, service: str) -> Iterator[Any]:
    made = boto3.client(
        service, "us-east-1", endpoint_url=servers.aws.url, aws_access_key_id=KEY, aws_secret_access_key=SECRET
    )
    yield made
    made.close()


def test_a_queue_is_made_as_the_document_says(site: Site, job: str, all_servers: Servers) -> None:
    """AWS resources, SQS queues: standard; visibility 300 s, long polling 20 s, retention 14 days, DLQ after 3, SSE.

    Where: transport/sqs.py
    """
    with client(all_servers, "sqs") as sqs:
        urls = [url for url in sqs.list_queues()["QueueUrls"] if url.endswith("-cpu")]
        assert urls, "rushes-{env}-{queue}"
        told = sqs.get_queue_attributes(QueueUrl=urls[0], AttributeNames=["All"])["Attributes"]
    assert (told["VisibilityTimeout"], told["ReceiveMessageWaitTimeSeconds"]) == ("300", "20")
    assert told["MessageRetentionPeriod"] == str(14 * 86400)
    assert json.loads(told["RedrivePolicy"])["maxReceiveCount"] in (3, "3")
    assert told["SqsManagedSseEnabled"] == "true"


def test_a_queue_of_its_own_has_messages_as_the_document_says(all_servers: Servers, tmp_path: Path) -> None:
    """AWS resources, SQS queues: one for each logical queue; a message is {job_id, queue, attempt}.

    Where: transport/sqs.py, library/queues.py
    """
    (tmp_path / "rushes.toml").write_text(all_servers.settings("aws", "bodies") + 'queues = "default"\n')
    with client(all_servers, "sqs") as sqs:
        with Library(tmp_path) as library:
            queues = library.queues
            job = queues.enqueue("default", "first", b"").id
            url, _dead = sorted(sqs.list_queues(QueueNamePrefix="rushes-bodies-q-default-")["QueueUrls"])
            assert _message(sqs, url) == {"job_id": job, "queue": "default", "attempt": 1}
            sqs.send_message(QueueUrl=url, MessageBody="poison")
            (taken,) = queues.dequeue("default", 10, 60)
            queues.give_back(taken.token)
        assert _message(sqs, url) == {"job_id": job, "queue": "default", "attempt": 2}
        left = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        counts = left["ApproximateNumberOfMessages"], left["ApproximateNumberOfMessagesNotVisible"]
        assert counts == ("1", "0"), "what was heard is deleted, and so is poison"


def _message(sqs: Any, url: str) -> dict[str, Any]:
    """The next message, which stays."""
    (found,) = sqs.receive_message(QueueUrl=url, VisibilityTimeout=0, WaitTimeSeconds=5)["Messages"]
    body = json.loads(found["Body"])
    return {name: body[name] for name in ("job_id", "queue", "attempt")}


def test_the_table_is_billed_on_demand_and_events_have_a_time_to_live(
    site: Site, job: str, all_servers: Servers
) -> None:
    """AWS resources, DynamoDB tables: billed on demand, with indexes; events expire by TTL; streams carry NEW_IMAGE.

    Where: ledger/dynamodb/keys.py, aws/table.py
    """
    with client(all_servers, "dynamodb") as dynamodb:
        table = dynamodb.describe_table(TableName="airunner")["Table"]
        life = dynamodb.describe_time_to_live(TableName="airunner")["TimeToLiveDescription"]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert {"by_owner", "by_state"} <= {index["IndexName"] for index in table["GlobalSecondaryIndexes"]}
    assert life["TimeToLiveStatus"] == "ENABLED"
    assert table["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}


def test_the_same_film_again_is_the_same_job(site: Site, job: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """EnqueueJob: a request that was made before returns the existing job.

    Where: jobs/submit.py
    """
    add(site, next(tmp_path_factory.getbasetemp().glob("films*/silent.mp4")))
    assert [found["id"] for found in site.http.get("/api/v1/jobs").json()["items"]] == [job]


@pytest.mark.parametrize("state", ["", "completed"])
def test_jobs_are_listed_by_queue_and_state(site: Site, job: str, state: str) -> None:
    """ListJobs: lists the jobs of a queue, newest first, and filters by state.

    Where: ledger/dynamodb/queries.py, surfaces/api/jobs.py
    """
    asked = {"queue": "cpu"} | ({"state": state} if state else {})
    (found,) = site.http.get("/api/v1/jobs", params=asked).json()["items"]
    assert (found["id"], found["queue"], found["state"]) == (job, "cpu", "completed")
    assert found["created_at"].endswith("Z")
    assert site.http.get("/api/v1/jobs", params={"queue": "now"}).json()["items"] == []
    assert site.http.get("/api/v1/jobs", params={"queue": "cpu", "state": "failed"}).json()["items"] == []


def test_jobs_are_listed_by_their_time_of_creation(site: Site, job: str) -> None:
    """ListJobs: GSI1 sorts by `created_at`, so a range of times can be listed; an invalid time is refused.

    Where: library/created_range.py, surfaces/api/jobs.py
    """
    created = site.http.get(f"/api/v1/jobs/{job}").json()["created_at"]
    later = f"{int(created[:4]) + 1}-01-01"

    def found(**asked: str) -> list[str]:
        return [row["id"] for row in site.http.get("/api/v1/jobs", params=asked).json()["items"]]

    assert (
        found(created_from=created, created_to=created) == found(created_from="2020-01-01", state="completed") == [job]
    )
    assert (
        found(created_from=later) == found(created_to="2020-01-01") == found(created_to="2020-01-01", queue="cpu") == []
    )
    assert site.http.get("/api/v1/jobs", params={"created_from": "yesterday"}).status_code == 400


def test_a_queue_that_is_not_configured_is_400(site: Site) -> None:
    """Error handling: an unknown queue is InvalidArgument (400).

    Where: library/jobs.py
    """
    answer = site.http.get("/api/v1/jobs", params={"queue": "nowhere"})
    assert (answer.status_code, answer.json()["code"]) == (400, "Refused")


def test_a_job_that_is_not_there_is_404(site: Site) -> None:
    """Error handling: an unknown job is NotFound (404).

    Where: surfaces/http/problems.py
    """
    for path in ("/api/v1/jobs/job_none", "/api/v1/jobs/job_none/events", "/api/v1/jobs/job_none/tasks"):
        assert site.http.get(path).status_code == 404


def test_throttling_is_429_with_a_time_to_wait(site: Site, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Error handling: AWS throttling is retried with back-off, then ResourceExhausted (429 with Retry-After).

    Where: aws/client.py, surfaces/http/problems.py
    """
    with serving(site.home) as mine:
        service = mine.ledger.table.service  # type: ignore[attr-defined]
        monkeypatch.setattr(service, "_patience", 0.1)
        service.events.register("before-call.dynamodb.*", _throttled)
        answer = mine.http.get(f"/api/v1/jobs/{job}")
    assert (answer.status_code, answer.json()["code"]) == (429, "Throttled")
    assert int(answer.headers["Retry-After"]) > 0


def _throttled(**_call: Any) -> tuple[Any, dict[str, Any]]:
    """The answer of a table that gets too many requests, before any is sent."""
    error = {"Code": "ThrottlingException", "Message": "slow down"}
    return SimpleNamespace(status_code=400), {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}


def test_a_fault_of_the_server_is_500_and_says_nothing_of_its_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Error handling: an internal error is Internal (500); it is logged, and the response reveals nothing.

    Where: surfaces/http/problems.py
    """
    with serving(tmp_path / "home") as mine:
        monkeypatch.setattr(mine.ledger, "jobs", _break)
        answer = mine.http.get("/api/v1/jobs")
    assert answer.status_code == 500
    assert "secret" not in answer.text


def _break(*_asked: object, **_more: object) -> None:
    raise RuntimeError("a secret")


def _events(site: Site, job: str, after: int) -> list[tuple[str, int, dict[str, Any]]]:
    """What a stream tells until it ends."""
    found = []
    with site.http.stream("GET", f"/api/v1/jobs/{job}/events", params={"after": after}) as answer:
        for part in "".join(answer.iter_text()).split("\n\n"):
            lines = dict(line.split(": ", 1) for line in part.splitlines() if ": " in line and line[0] != ":")
            if "id" in lines:
                found.append((lines["event"], int(lines["id"]), json.loads(lines["data"])))
    return found


def test_events_are_replayed_in_order_from_any_number(site: Site, job: str) -> None:
    """StreamEvents: past events are replayed in order, starting at `fromSequence`.

    Where: surfaces/api/events.py
    """
    numbers = [number for _, number, _ in _events(site, job, 0)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [number for _, number, _ in _events(site, job, 3)] == numbers[3:]


@pytest.fixture
def trimmed(site: Site) -> Iterator[str]:
    """A job of its own that was cancelled and trimmed: the other tests replay theirs whole."""
    job = job_id("local", "trimmed")
    first = Draft(task_id(job, "none", None), job, "none", None, "{}", "nobody-takes-this")
    with site.library() as library:
        ledger = library.home.ledger
        ledger.submit(NewJob(job, library.home.owner, "trimmed", "trimmed", "none", "{}"), first)
        ledger.control(job, JobCommand.CANCEL)
        ledger.control(job, JobCommand.TRIM, 0)
        yield job
        ledger.control(job, JobCommand.FORGET)


def test_events_that_are_no_longer_kept_are_told_as_truncated(site: Site, trimmed: str) -> None:
    """Event retention: events expire; a replay that would start earlier says where it begins (`before`).

    Where: ledger/rules.py, library/work/retention.py
    """
    (kind, _, told), *rest = _events(site, trimmed, 0)
    assert kind == "truncated"
    assert told["data"]["before"] == rest[0][1]
