"""Whatever is sent, the API answers and never breaks: cases made from its own description, and a list by hand."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from proof import hostile_api

from rushes.domain.job import JobState
from tests.api.kit import Serving, serving, submit

TOKEN = "a-long-and-secret-token"
CASES = int(os.environ.get("RUSHES_FUZZ_CASES", "1000"))


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server that may look nowhere but into an empty folder."""
    folder = tmp_path_factory.mktemp("fuzzed")
    (folder / "films").mkdir()
    with serving(folder / "home", "0.0.0.0", token=TOKEN, sources=str(folder / "films")) as server:
        server.http.headers["Authorization"] = f"Bearer {TOKEN}"
        yield server


@pytest.mark.parametrize("name", hostile_api.DOORS)
def test_no_request_breaks_it_with_and_without_accounts(tmp_path: Path, name: str) -> None:
    tally = hostile_api.Tally()
    with hostile_api.opened(tmp_path, name) as door:
        hostile_api.described(door, CASES // 3, 1, tally)
        hostile_api.handmade(door, CASES // 3, 1, tally)
    print(f"{sum(tally.answers.values())} cases: {dict(sorted(tally.answers.items()))}")
    assert not tally.broken, "\n".join(tally.broken[:5])
    assert sum(tally.answers.values()) >= CASES // 2
    assert sum(n for code, n in tally.answers.items() if code < 300) > CASES // 20, "nobody was let in"


HARD = ["NaN", "Infinity", "-1", str(2**63), str(2**64), "1e400", "", "\0", "%00", "\ud800", "'", '"', "null", "../..",
        "a" * 5000, "ä" * 300, "\u202e", "<script>", "%", "$(id)", "1;DROP TABLE job"]  # fmt: skip


@pytest.mark.parametrize("value", HARD, ids=[f"{n}" for n in range(len(HARD))])
def test_hard_values_are_answered_everywhere(fuzzed: Serving, value: str) -> None:
    raw = json.dumps(value)
    number = value if value in ("NaN", "Infinity") else raw
    text = value.encode("utf-8", "surrogatepass")
    query = {"q": text, "cursor": text, "limit": text, "after": text, "asset_id": text, "state": text, "video_id": text}
    for path in ("videos", "jobs", "search", "artifacts", "corrections", "clips", "failed", "selection"):
        assert fuzzed.http.get(f"/api/v1/{path}", params=query).status_code < 500
    for path, body in (
        ("clips", f'{{"video_id": {raw}, "t_start": {number}, "t_end": {number}}}'),
        ("corrections", f'{{"video_id": "x", "start_us": {number}, "end_us": {number}, "text": {raw}}}'),
        ("people", f'{{"video_id": "x", "start_us": 0, "end_us": 1, "box": [{number}, 0, 1, 1], "name": {raw}}}'),
        ("videos", f'{{"paths": [{raw}], "recipe": {raw}, "language": {raw}, "priority": {number}}}'),
        ("paths", f'{{"path": {raw}}}'),
        ("failed/retry", f'{{"kind": {raw}}}'),
        ("workers/drain", raw),
    ):
        said = {"Content-Type": "application/json", "Idempotency-Key": "k"}
        answer = fuzzed.http.post(f"/api/v1/{path}", content=body.encode(), headers=said)
        assert answer.status_code < 500, f"{path} {body} {answer.text}"


@pytest.mark.parametrize("chunk", ["\u00b8\u00c8", "\u00b2", "-1", "0", "1e3", "9" * 99, "small"])
def test_a_chunk_that_is_no_length_is_refused(server: Serving, tmp_path: Path, chunk: str) -> None:
    assert server.post("/api/v1/videos", {"paths": [str(tmp_path)], "chunk": chunk}, 400)["code"] == "Refused"


def test_a_body_that_is_no_json_or_no_text_is_answered(fuzzed: Serving) -> None:
    for body in (b"{", b"\xff\xfe", b"[" * 100_000, b'{"path": "\\ud800"}', b"null", b"1", b'"\x00"'):
        answer = fuzzed.http.post("/api/v1/paths", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422), answer.text


def test_somebody_elses_job_is_not_there(home: Path) -> None:
    with serving(home) as server:
        job = submit(server.ledger, "film", 1)
        task = server.get(f"/api/v1/jobs/{job.id}/tasks")["items"][0]["id"]
    with serving(home, owner="somebody") as server:
        for path in ("", "/events", "/tasks", "/steps", "/history", "/why"):
            server.get(f"/api/v1/jobs/{job.id}{path}", 404)
        server.get(f"/api/v1/tasks/{task}", 404)
        server.post(f"/api/v1/jobs/{job.id}/cancel", status=404)
        assert server.get("/api/v1/jobs")["items"] == []
        assert server.ledger.job(job.id).state is JobState.RUNNING
