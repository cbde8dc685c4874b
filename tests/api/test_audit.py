"""The audit log: every route that changes something has its word in it, and no secret stands there."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from rushes.library.access import audit as audit_log
from rushes.library.access.audit import AUDIT, Audit
from rushes.surfaces.http.audit import ACTIONS, UNTOLD
from tests.api.kit import WORKER, Serving, begin, serving, submit
from tests.api.routes import every_route

PASSWORD = "correct horse battery"
TOKEN = "a-long-and-secret-token"


def entries(server: Serving, **more: Any) -> list[tuple[str, str, str, str]]:
    """The log, oldest first."""
    rows = Audit(server.library.home).page(limit=500)[0]
    return [(e.who, e.address, e.action, e.target) for e in reversed(rows)]


def test_every_route_that_changes_something_is_told_of(server: Serving) -> None:
    unsafe = {r.endpoint.__name__ for r in every_route(server.app) if r.method not in ("GET", "HEAD", "OPTIONS")}
    assert unsafe - set(ACTIONS) - UNTOLD == set()
    known = {r.endpoint.__name__ for r in every_route(server.app)}
    assert (set(ACTIONS) | UNTOLD) - known == set()


def test_logins_steering_deletions_and_originals_are_written_down(developed: Serving, tmp_path: Path) -> None:
    home = shutil.copytree(developed.library.folder, tmp_path / "home")
    with serving(home, "0.0.0.0", "code", proxy="127.0.0.1", token=TOKEN) as server:
        server.app.state.access.accounts.create("ada", PASSWORD)
        job = begin(server.ledger, "steered").id
        video = server.library.videos.page()[0][0].id
        ada = {"X-Forwarded-For": "203.0.113.5"}
        before = len(entries(server))
        server.http.post("/login", data={"name": "ada", "password": "wrong " + PASSWORD}, headers=ada)
        server.http.post("/login", data={"name": PASSWORD, "password": "ada"}, headers=ada)
        server.http.post("/login", data={"name": "ada", "password": PASSWORD}, headers=ada)
        for path in (f"jobs/{job}/pause", f"jobs/{job}/cancel", "jobs/job_nowhere/cancel"):
            server.http.post(f"/api/v1/{path}", headers=ada)
        server.http.post("/jobs/some", data={"do": "retry", "job": [job]}, headers=ada)
        server.http.head(f"/api/v1/videos/{video}/original", headers=ada)
        assert server.http.get(f"/api/v1/videos/{video}/original", headers=ada).status_code == 200
        assert server.http.post("/api/v1/paths", json={"path": "/nowhere"}, headers=ada).status_code == 403
        server.http.post("/logout", headers=ada)
        server.http.cookies.clear()
        server.http.delete("/api/v1/videos/vid_nowhere", headers={"Authorization": f"Bearer {TOKEN}"})
        server.http.get("/api/v1/jobs", headers={"Authorization": "Bearer guess"} | ada)
        assert entries(server)[before:] == [
            ("ada", "203.0.113.5", "login failed", ""),
            ("unknown", "203.0.113.5", "login failed", ""),
            ("ada", "203.0.113.5", "login", ""),
            ("ada", "203.0.113.5", "job changed", f"/api/v1/jobs/{job}/pause"),
            ("ada", "203.0.113.5", "job changed", f"/api/v1/jobs/{job}/cancel"),
            ("ada", "203.0.113.5", "job changed", f"retry {job}"),
            ("ada", "203.0.113.5", "original exported", f"/api/v1/videos/{video}/original"),
            ("ada", "203.0.113.5", "logout", "/logout"),
            ("token", "203.0.113.5", "login failed", ""),
        ]
        kept = str([r.doc for r in server.library.home.records.list(AUDIT, "me", limit=500)[0]])
        assert not [secret for secret in (PASSWORD, TOKEN, "guess") if secret in kept]


def test_the_log_comes_in_pages_newest_first_on_a_page_and_by_the_api(server: Serving) -> None:
    submit(server.ledger, "one")
    for n in range(5):
        Audit(server.library.home).write("login", f"user{n}", "10.0.0.1")
    server.post(f"/api/v1/workers/drain?worker={WORKER}", status=202)
    first = server.get("/api/v1/audit?limit=4")
    rest = server.get(first["next"])
    assert [e["who"] for e in first["items"] + rest["items"]] == ["local", "user4", "user3", "user2", "user1", "user0"]
    assert first["items"][0]["target"] == WORKER
    page = server.http.get("/audit").text
    assert "worker drained" in page
    assert page.index("user4") < page.index("user0")
    assert server.http.get("/audit?cursor=made-up").status_code == 400


def test_what_is_old_is_forgotten_and_strangers_fill_no_disk(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Audit(server.library.home)
    now = time.time()
    with monkeypatch.context() as then:
        then.setattr(time, "time", lambda: now - 366 * audit_log.DAY)
        for _ in range(3):
            log.write("login", "old", "10.0.0.1")
    log.write("login", "new", "10.0.0.1")
    assert [e.who for e in log.since(3600)] == ["new"]
    assert log.forget() == 3
    assert [who for who, *_ in entries(server)] == ["new"]
    for _ in range(audit_log.FAILURES + 5):
        log.write_failure("unknown", "198.51.100.1")
    assert len(list(log.since(3600))) == audit_log.FAILURES + 1
