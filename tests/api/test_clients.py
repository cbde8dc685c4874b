"""What the author of a client meets: a description that is true, HEAD, names for files, JSON where pages are."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from rushes.plan.planner import JobSpec
from tests.api.kit import Serving, serving, submit
from tests.api.test_uploads import begin

TOKEN = "a-long-and-secret-token"
NOWHERE = str(Path(tempfile.gettempdir(), "nowhere", "film.mp4"))
STUDIO = "https://studio.example"


def operations(server: Serving) -> list[tuple[str, str, dict[str, Any]]]:
    paths = server.get("/openapi.json")["paths"]
    return [(method, path, told) for path, methods in paths.items() for method, told in methods.items()]


def test_errors_are_described_as_they_are_answered(server: Serving) -> None:
    doc = server.get("/openapi.json")
    for method, path, told in operations(server):
        assert list(told["responses"]["default"]["content"]) == ["application/problem+json"], (method, path)
        assert "422" not in told["responses"], (method, path)
    assert doc["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert "HTTPValidationError" not in json.dumps(doc)
    answer = server.get("/api/v1/videos?limit=0", 422)
    assert set(doc["components"]["schemas"]["Problem"]["properties"]) == set(answer)


def test_every_operation_has_a_name_of_its_own(server: Serving) -> None:
    names = [told["operationId"] for _, _, told in operations(server)]
    assert len(names) == len(set(names)) > 60


def test_head_is_answered_wherever_get_is(server: Serving) -> None:
    plain = [p for m, p, told in operations(server) if m == "get" and not told.get("parameters") and "{" not in p]
    for path in (*plain, "/", "/library", "/jobs", "/api/v1/videos", "/openapi.json"):
        if path != "/api/v1/events":
            answer = server.http.head(path)
            assert (answer.status_code, answer.content) == (200, b""), path
    assert server.http.head("/api/v1/events").status_code == 405  # it never ends
    assert server.http.head("/api/v1/videos/vid_none").status_code == 404


def test_what_is_not_there_has_one_code(server: Serving) -> None:
    assert (
        server.get("/api/v1/nothing", 404)["code"] == server.get("/api/v1/videos/vid_none", 404)["code"] == "NotFound"
    )


def test_programs_get_json_where_people_get_pages(server: Serving) -> None:
    job = submit(server.ledger, "film", 1).id
    program = {"Accept": "application/json, text/plain, */*"}
    assert server.get("/jobs", headers=program)["items"][0]["id"] == job
    assert server.get(f"/jobs/{job}", headers=program)["id"] == job
    for anything in (program, {"Accept": "*/*"}, {"Accept": ""}):
        assert server.get("/videos/vid_none", 404, headers=anything)["code"] == "NotFound"
        assert server.get("/search?q=film", headers=anything)["hits"] == []
    assert server.http.get(f"/jobs/{job}").text.startswith("<!doctype html>")
    person = {"Accept": "text/html,application/xhtml+xml,application/json;q=0.9"}
    for path in ("/jobs", "/search?q=film", "/videos/vid_none"):
        assert server.http.get(path, headers=person).text.startswith("<!doctype html>")


def test_files_are_called_like_the_film(developed: Serving) -> None:
    video = developed.get("/api/v1/videos")["items"][0]["id"]
    said = developed.http.get(f"/api/v1/videos/{video}/exports/edl?download=1").headers["content-disposition"]
    assert said == "attachment; filename=\"three shots _b_.edl\"; filename*=UTF-8''three%20shots%20%3Cb%3E.edl"
    asked = {"video_id": video, "t_start": 1.5, "t_end": 2}
    assert developed.post("/api/v1/clips", asked, 202)["name"] == "three shots <b> 0m01.500-0m02.000.mp4"


def test_taking_nothing_in_is_an_error_and_one_film_leads_to_its_job(server: Serving, film: Path) -> None:
    told = server.post("/api/v1/videos", {"paths": [NOWHERE]}, 404)
    assert told["hint"]
    answer = server.http.post("/api/v1/videos", json={"paths": [str(film), NOWHERE]})
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/api/v1/jobs/{answer.json()[0]['job']['id']}"
    assert server.get(answer.headers["location"])["state"] == "created"


def test_a_listed_page_may_ask_before_it_says_who_it_is(home: Path) -> None:
    with serving(home, "0.0.0.0", token=TOKEN, cors=STUDIO) as server:
        asks = {
            "Origin": STUDIO,
            "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "authorization",
        }
        answer = server.http.options("/api/v1/jobs", headers=asks)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, STUDIO)
        assert server.http.options("/api/v1/jobs", headers=asks | {"Origin": "https://evil.example"}).status_code == 401
        known = {"Origin": STUDIO, "Authorization": f"Bearer {TOKEN}"}
        told = server.http.get("/api/v1/jobs", headers=known).headers["access-control-expose-headers"]
        assert {"Location", "Upload-Offset"} <= set(told.split(", "))
        assert server.http.get("/api/v1/jobs", headers={"Origin": STUDIO}).status_code == 401


def test_a_film_is_sent_at_once_and_again_after_a_cut(server: Serving, film: Path) -> None:
    data = film.read_bytes()
    place, job = begin(server, data)
    offset = {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
    assert server.http.patch(place, content=data[:1000], headers=offset).status_code == 204
    answer = server.http.put(place, content=data)
    assert (answer.status_code, answer.headers["upload-offset"]) == (204, str(len(data)))
    assert server.get(place)["state"] == "arrived"
    assert server.http.put(place, content=data).status_code == 400
    assert answer.headers["rushes-job"] == job


@pytest.mark.parametrize(("mode", "format"), [("sbs", "half-sbs"), ("anaglyph", "anaglyph-dubois")])
def test_the_documents_form_says_which_3d_is_wanted(server: Serving, mode: str, format: str) -> None:
    program = {"Accept": "application/json"}
    form = {"filename": "a.mp4", "size": "10", "mode": mode}
    job = server.http.post("/jobs", data=form, headers=program).json()["job_id"]
    assert JobSpec.from_text(server.ledger.job(job).payload).options["stereo"]["format"] == format
    assert server.http.post("/jobs", data=form | {"mode": "smell"}, headers=program).json()["hint"].startswith("Choose")


def test_recipes_are_told_for_films_of_up_to_24_hours(server: Serving) -> None:
    assert server.http.get("/api/v1/recipes?seconds=86401").status_code == 422


def test_a_program_learns_what_can_be_wanted_and_asks_more_of_a_video(developed: Serving) -> None:
    recipes = {one["name"]: one for one in developed.get("/api/v1/recipes?seconds=60")}
    assert recipes["searchable"]["usual"]
    assert "stereo" in recipes["3d"]["stages"]
    video = developed.get("/api/v1/videos")["items"][0]["id"]
    asked = f"/api/v1/videos/{video}/runs"
    answer = developed.http.post(asked, json={"format": "tb"})
    assert answer.status_code == 202
    job = developed.get(answer.headers["location"])
    assert job["recipe"] == "3d"
    assert JobSpec.from_text(developed.ledger.job(job["id"]).payload).options["stereo"]["format"] == "half-tb"
    developed.post(asked, {"format": "smell"}, 400)
    developed.post("/api/v1/videos/vid_none/runs", status=404)
    developed.post(f"/api/v1/jobs/{job['id']}/cancel")


@pytest.mark.parametrize("tags", ["{}", '"other", {}', "W/{}", "*"])
def test_what_a_reader_has_is_not_sent_again(developed: Serving, tags: str) -> None:
    (video,) = developed.get("/api/v1/videos")["items"]
    etag = developed.http.head(video["poster"]).headers["etag"]
    answer = developed.http.get(video["poster"], headers={"If-None-Match": tags.format(etag)})
    assert (answer.status_code, answer.content) == (304, b"")


def test_a_cursor_of_another_list_or_filter_is_refused(server: Serving) -> None:
    submit(server.ledger, "other", 2)
    job = submit(server.ledger, "film", 2).id
    jobs = server.get("/api/v1/jobs?limit=1")["cursor"]
    running = server.get("/api/v1/jobs?limit=1&state=chunking_complete")["cursor"]
    tasks = server.get(f"/api/v1/jobs/{job}/tasks?limit=1")["cursor"]
    assert server.get(f"/api/v1/jobs?limit=1&cursor={jobs}")["items"]
    lists = ("jobs", "jobs?state=completed", f"jobs/{job}/tasks?state=done", "failed", "videos", "clips", "search?q=a")
    for cursor in (running, tasks):
        for path in lists:
            answer = server.get(f"/api/v1/{path}{'&' if '?' in path else '?'}cursor={cursor}", 400)
            assert answer["detail"] == "invalid cursor for this list"
        assert server.http.get(f"/library?has=object:car&cursor={cursor}").status_code == 400
