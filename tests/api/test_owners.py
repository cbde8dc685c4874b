"""Two owners in one home: every route is asked for the other's things, and nothing happens to them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rushes.domain.errors import NotAllowed
from rushes.domain.task import Failure
from rushes.index.changes import Run, RunUpdate, SelectionUpdate
from rushes.library import Library
from tests.api.kit import WORKER, Serving, serving, submit
from tests.api.routes import RouteShape, every_route

VIDEO, PERSON = "vid_mine000000000001", "per_mine00000001"
BAD = Failure("BadMedia", "it makes no sense", "Look at it.", "will not work without a change")
OPEN_TO_ALL = ("/api/v1/events", "/events")  # streams without an id never end


@dataclass
class Mine:
    """What the first owner has: ids by the name of the parameter that takes them."""

    ids: Mapping[str, str]
    bodies: Mapping[str, Any]  # what a form or document may name, by its field


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("owners")


@pytest.fixture(scope="module")
def mine(folder: Path) -> Mine:
    return make_mine(folder)


def make_mine(folder: Path) -> Mine:
    """A video, jobs in three states, a clip, an upload, a path, a correction and a worker of the owner `me`."""
    (folder / "film.mp4").write_bytes(b"not a film")
    with serving(folder / "home", sources=str(folder)) as server:
        home: Any = server.library.home
        facts = {"video": VIDEO, "name": "film.mp4", "path": "film.mp4", "duration_us": 10_000_000, "size": 1}
        run = Run("job_film", "me", VIDEO, "searchable", "completed", "2026-01-01T00:00:00.000001Z", facts)
        home.index.apply(RunUpdate(run), SelectionUpdate("me", VIDEO))
        dead = submit(server.ledger, "dead", 1)
        (lease,) = server.ledger.claim(WORKER, ["cpu"], 1)
        server.ledger.fail(WORKER, lease.task, lease.fence, BAD, None)
        job = submit(server.ledger, "open", 2)
        upload = server.http.post("/api/v1/uploads", headers={"Upload-Length": "1000"}).headers["location"]
        path = server.post("/api/v1/paths", {"path": str(folder)}, 201)["id"]
        said = {"video_id": VIDEO, "start_us": 0, "end_us": 1, "text": "corrected"}
        correction = server.post("/api/v1/corrections", said, 201)["id"]
        home.records.put("clip", "me", "clp_mine", {"video": VIDEO, "job": job.id, "start": 0.0, "end": 1.0})
        task = f"{job.id}.develop.00000"
    ids = {
        "video_id": VIDEO, "asset_id": VIDEO, "job_id": job.id, "task_id": task, "clip_id": "clp_mine",
        "upload_id": upload.rpartition("/")[2], "path_id": path, "correction_id": correction, "person_id": PERSON,
        "name": f"thumbs/{VIDEO}/poster.jpg", "kind": "srt", "ms": "0", "move": "cancel", "do": "retry",
    }  # fmt: skip
    bodies = {
        "video_id": VIDEO, "video": VIDEO, "job": [job.id, dead.id], "worker": WORKER, "upload": ids["upload_id"],
        "path": path, "correction": correction, "who": PERSON, "into": PERSON, "do": "cancel", "only": "BadMedia",
        "kind": "BadMedia", "priority": 9, "value": 9, "start_us": 0, "end_us": 1, "at_us": 0, "text": "changed",
        "hidden": True, "artifact_type": "speech", "run_id": job.id, "t_start": 0, "t_end": 1, "start": "0", "end": "1",
        "recipe": "searchable", "face": f"{VIDEO}@0",
    }  # fmt: skip
    return Mine(ids, bodies)


@pytest.fixture(scope="module")
def other(folder: Path, mine: Mine) -> Iterator[Serving]:
    """A server of somebody else over the same home."""
    with serving(folder / "home", owner="somebody") as server:
        yield server


def kept(server: Serving) -> dict[str, Any]:
    """All that the first owner has, as the stores hold it."""
    home: Any = server.library.home
    ledger = server.ledger
    jobs = ledger.jobs("me").rows
    records = [r for r in home.records.changed()[0] if r.owner == "me"]
    workers = [(w.incarnation.id, w.draining) for w in ledger.workers()]
    tasks = {job.id: [(t.id, t.state, t.failures) for t in ledger.tasks(job.id).rows] for job in jobs}
    rows = [(j.id, j.state, j.paused, j.priority, j.last_event) for j in jobs]
    films = home.index.videos("me")
    return {"jobs": rows, "tasks": tasks, "records": records, "workers": workers, "films": films}


def test_no_route_shows_or_changes_what_another_owner_has(other: Serving, mine: Mine) -> None:
    before, asked, wrong = kept(other), 0, list[str]()
    for route in every_route(other.app):
        if route.path in OPEN_TO_ALL or route.path == "/setup":
            continue
        answer = ask(other, route, mine)
        asked += 1
        where = f"{route.method} {route.path}: {answer.status_code} {answer.text[:200]}"
        named = [name for name in mine.ids if name.endswith("_id") and f"{{{name}" in route.path]
        expected = (403, 404) if named else range(200, 500)
        shown = [id for name, id in mine.ids.items() if name.endswith("_id") and id not in str(answer.request.url)]
        tells = (
            answer.status_code < 400 and not route.path.endswith("/audit") and any(id in answer.text for id in shown)
        )
        if answer.status_code not in expected or tells:  # an error, or one's own log, repeats what one asked
            wrong.append(where)
        assert kept(other) == before, where
    assert not wrong, "\n".join(wrong)
    assert asked > 120


def ask(server: Serving, route: RouteShape, mine: Mine) -> Any:
    """The route with the first owner's ids in its path and in whatever it may be sent."""
    path = route.path.replace("{name:path}", "{name}")
    for name, id in mine.ids.items():
        path = path.replace(f"{{{name}}}", id)
    pages = not route.path.startswith("/api/")
    query = {"asset_id": VIDEO, "video_id": VIDEO, "video": VIDEO, "q": "film"}
    said = {"Accept": "text/html" if pages else "application/json", "Upload-Offset": "0", "Upload-Length": "5"}
    said |= {"Upload-Checksum": "sha256 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}
    if route.method in ("GET", "HEAD", "OPTIONS"):
        return server.http.request(route.method, path, params=query, headers=said, follow_redirects=False)
    if pages and not any(path.startswith(p) for p in ("/clips", "/paths", "/selection", "/tasks")):
        return server.http.request(route.method, path, data=mine.bodies, headers=said, follow_redirects=False)
    document = {k: v for k, v in mine.bodies.items() if k not in ("path", "job", "only")}
    body = json.dumps(document | {"name": "changed"}).encode()
    said |= {"Content-Type": "application/json"}
    return server.http.request(route.method, path, params={"worker": WORKER}, content=body, headers=said)


def test_only_the_owner_of_a_worker_or_the_one_who_runs_the_fleet_drains_it(tmp_path: Path) -> None:
    make_mine(tmp_path)
    with serving(tmp_path / "home", owner="somebody") as server:
        no = server.post(f"/api/v1/workers/drain?worker={WORKER}", status=403)
        assert "another owner" in no["detail"]
        assert server.http.post("/workers", data={"worker": WORKER}).status_code == 403
        assert "Drain" not in server.http.get("/workers").text
        assert not any(w.draining for w in server.ledger.workers())
    with Library(tmp_path / "home", options={"owner": ("somebody", "test")}) as library, pytest.raises(NotAllowed):
        library.jobs.drain(WORKER)
    with serving(tmp_path / "home", owner="ops", fleet_admin=True) as server:
        server.post(f"/api/v1/workers/drain?worker={WORKER}", status=202)
        assert all(w.draining for w in server.ledger.workers())


def test_a_user_who_is_no_admin_drains_nothing_and_reads_no_audit_log(tmp_path: Path) -> None:
    make_mine(tmp_path)
    with serving(tmp_path / "home") as server:
        accounts = server.app.state.access.accounts
        accounts.create("ada", "correct horse battery")
        accounts.create("bert", "correct horse battery")
        for name, code in (("bert", 403), ("ada", 200)):
            server.http.cookies.clear()
            form = {"name": name, "password": "correct horse battery"}
            assert server.http.post("/login", data=form).status_code == 303
            assert server.http.get("/api/v1/audit").status_code == code
            assert server.http.get("/audit").status_code == code
            told = server.http.post(f"/api/v1/workers/drain?worker={WORKER}")
            assert told.status_code == (202 if code == 200 else 403)
            assert ("Drain" in server.http.get("/workers").text) is False or code == 200
            assert ("/audit" in server.http.get("/settings").text) is (code == 200)
