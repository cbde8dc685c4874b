"""Jobs in queues of one's own over HTTP: put in, watched, steered as those of footage, and what they have made."""

from pathlib import Path

import pytest

from rushes.bucket.location import BucketLocation
from rushes.library.queues import Queues
from tests.api.kit import serving

JOBS = "/api/v1/queues/default/jobs"


def taken(queues: Queues) -> str:
    (found,) = queues.dequeue("default", 1, 60)
    return found.token


def test_a_job_is_put_in_watched_steered_and_read(home: Path) -> None:
    with serving(home, queues="default") as server:
        queues = server.library.queues
        body = {"request_id": "one", "params": "fünf", "priority": 5}
        job = server.post(JOBS, body, 202)
        assert (job["queue"], job["word"], job["priority"]) == ("default", "waiting", 5)
        assert server.post(JOBS, {**body, "params": "other"}, 202)["id"] == job["id"]
        path = f"/api/v1/jobs/{job['id']}"
        assert server.get(f"{path}/result", 404)["detail"] == "this job has no result"
        queues.fail(taken(queues), "it broke", retry=False)
        assert server.get(path)["state"] == "failed"
        server.post(f"{path}/retry", status=200)
        (found,) = queues.dequeue("default", 1, 60)
        assert (found.job, found.params.data, server.get(path)["word"]) == (job["id"], "fünf".encode(), "running")
        queues.complete(found.token, job["id"], b"\x00made")
        assert server.get(path)["state"] == "completed"
        answer = server.http.get(f"{path}/result")
        assert (answer.content, answer.headers["content-type"]) == (b"\x00made", "application/octet-stream")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/v1/queues/nowhere/jobs", {"request_id": "one"}, 400),
        (JOBS, {"request_id": "not an id"}, 400),
        (JOBS, {"request_id": "one", "params": "x" * 900_001}, 422),
        (JOBS, {"request_id": "one", "priority": 1001}, 422),
        (JOBS, {}, 422),
    ],
)
def test_what_cannot_be_put_in_is_refused(home: Path, path: str, body: dict[str, object], status: int) -> None:
    with serving(home, queues="default") as server:
        assert server.http.post(path, json=body).status_code == status
        odd = server.http.post(JOBS, content=b'{"request_id": "one", "params": "\\ud800"}')
        assert odd.status_code == 422
        assert server.get("/api/v1/jobs")["items"] == []
        assert server.http.get("/api/v1/jobs/job_none/result").status_code == 404


def test_a_large_result_is_read_at_the_bucket(home: Path, seaweed_s3: BucketLocation) -> None:
    place, large = seaweed_s3, b"r" * 300_000
    keys = {"s3_endpoint": place.endpoint, "s3_key": place.key, "s3_secret": place.secret}
    with serving(home, queues="default", blobs=f"s3://{place.bucket}/results", **keys) as server:
        job = server.post(JOBS, {"request_id": "one"}, 202)["id"]
        server.library.queues.complete(taken(server.library.queues), job, large)
        sent = server.http.get(f"/api/v1/jobs/{job}/result")
        assert sent.status_code == 307
        assert sent.headers["location"].startswith(place.endpoint)
        assert server.http.get(sent.headers["location"]).content == large
