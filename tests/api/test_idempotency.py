"""A request with an Idempotency-Key: a kill while it is answered does not block the key, and keys do not pile up."""

from pathlib import Path
from typing import Any

import pytest

from rushes.domain.errors import Refused
from rushes.library import Library, idempotency
from rushes.library.idempotency import REQUEST, Requests
from tests.api.kit import Serving, serving

KEY = {"Idempotency-Key": "once"}


def killed(server: Serving, film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask, and die after the work and before the answer: nothing that would come after it happens."""
    add = Library.add

    def die(*asked: Any, **more: Any) -> None:
        add(*asked, **more)
        raise Refused("kill -9")

    with monkeypatch.context() as dying:
        dying.setattr(Library, "add", die)
        dying.setattr(type(server.library.home.records), "delete", lambda *_args, **_more: True)
        assert server.http.post("/api/v1/videos", json={"paths": [str(film)]}, headers=KEY).status_code == 400


def test_after_a_kill_the_same_key_is_answered_by_the_next_process(
    home: Path, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"paths": [str(film)]}
    with serving(home, sources=str(film.parent)) as server:
        killed(server, film, monkeypatch)
        assert server.post("/api/v1/videos", body, 409, headers=KEY)["code"] == "Running"
    with serving(home, sources=str(film.parent)) as server:
        answer = server.post("/api/v1/videos", body, 202, headers=KEY)
        assert server.post("/api/v1/videos", body, 202, headers=KEY) == answer
        assert [job["id"] for job in server.get("/api/v1/jobs")["items"]] == [answer[0]["job"]["id"]]


def test_a_request_that_its_own_process_lost_is_answered_after_a_while(
    server: Serving, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(server, film, monkeypatch)
    monkeypatch.setattr(idempotency, "ANSWER_SECONDS", -1.0)
    server.post("/api/v1/videos", {"paths": [str(film)]}, 202, headers=KEY)


def test_who_lost_a_request_to_another_changes_nothing_of_its_answer(server: Serving) -> None:
    home = server.library.home
    slow, quick = Requests(home, "slow"), Requests(home, "quick")
    lost, taken = slow.take("r", "asked"), quick.take("r", "asked")
    assert lost
    assert taken
    quick.answer(taken, {"status": 202})
    slow.answer(lost, {"status": 500})
    slow.drop(lost)
    kept = quick.get("r")
    assert kept
    assert kept.doc["answer"] == {"status": 202}
    assert slow.take("r", "asked") is None


def test_answers_are_forgotten_after_some_days(home: Path, film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(home, sources=str(film.parent)) as server:
        server.post("/api/v1/videos", {"paths": [str(film)]}, 202, headers=KEY)
        server.library.maintenance.gc()
        assert len(server.library.home.records.list(REQUEST, "me")[0]) == 1
        monkeypatch.setattr(idempotency, "KEEP_SECONDS", -1.0)
        server.library.maintenance.gc()
        assert server.library.home.records.list(REQUEST, "me")[0] == ()
