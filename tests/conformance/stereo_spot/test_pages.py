"""Pages and routes of the document."""

import re

import pytest

from tests.conformance.conftest import Site

HTML, JSON = {"Accept": "text/html"}, {"Accept": "application/json"}


def begin(site: Site, mode: str = "sbs") -> str:
    return str(site.http.post("/jobs", data={"mode": mode}, headers=JSON).json()["job_id"])


@pytest.mark.parametrize("path", ["/", "/jobs"])
def test_the_dashboard_and_the_list_of_jobs_are_html(site: Site, path: str) -> None:
    """Web UI, pages and routes: `GET /` is the dashboard and `GET /jobs` the list of jobs, rendered on the server.

    Where: surfaces/web/mount.py
    """
    answer = site.http.get(path, headers=HTML)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")


def test_static_files_are_served(site: Site) -> None:
    """Web UI, pages and routes: `GET /static/*` serves static files, the favicon too.

    Where: surfaces/web/mount.py
    """
    icon = re.search(r'rel="icon" href="(/static/[^"]+)"', site.http.get("/", headers=HTML).text)
    assert icon
    assert site.http.get(icon[1]).headers["content-type"] == "image/svg+xml"


def test_the_api_describes_itself(site: Site) -> None:
    """Web UI, pages and routes: OpenAPI is at `/openapi.json`.

    Where: surfaces/http/openapi.py
    """
    assert site.http.get("/openapi.json").json()["openapi"].startswith("3.")


def test_nobody_logs_in_on_one_machine(site: Site) -> None:
    """Web UI, authentication: none for a single user.

    Where: surfaces/http/access.py
    """
    assert site.http.get("/api/v1/jobs").status_code == 200


def test_progress_is_a_stream_of_events(site: Site) -> None:
    """Web UI, pages and routes: `GET /jobs/{job_id}/events` is a stream (SSE) of the job's progress.

    Where: surfaces/api/events.py
    """
    job = begin(site)
    with site.http.stream("GET", f"/jobs/{job}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert next(line for line in answer.iter_lines() if line.startswith("data: "))


def test_times_are_formatted_by_the_browser(site: Site) -> None:
    """Web UI, all jobs: timestamps are formatted in the viewer's time zone, by the page's script.

    Where: surfaces/web/templates/parts.html
    """
    page = site.http.get(f"/jobs/{begin(site)}", headers=HTML).text
    assert re.search(r'<time datetime="20\d\d-\d\d-\d\dT[^"]+"', page)


def test_jobs_in_progress_come_by_creation_the_newest_first(site: Site) -> None:
    """Web UI, all jobs: those in progress descend by `created_at`; DynamoDB's three queries are merged.

    Where: library/jobs.py
    """
    jobs = [begin(site) for _ in range(3)]
    found = site.http.get("/jobs", headers=JSON).json()["items"]
    going = [job for job in found if job["status"] in ("created", "chunking_in_progress", "chunking_complete")]
    assert [job["job_id"] for job in going][:3] == jobs[::-1]
    assert [job["created_at"] for job in going] == sorted((job["created_at"] for job in going), reverse=True)
    page = site.http.get("/jobs", headers=HTML).text
    places = [page.index(f"/jobs/{job}") for job in jobs]
    assert places == sorted(places, reverse=True)


def test_finished_jobs_come_after_them_the_last_to_finish_first(site: Site) -> None:
    """Web UI, all jobs: completed jobs descend by `completed_at`, after all that are in progress.

    Where: library/jobs.py
    """
    first, second, third = (begin(site) for _ in range(3))
    for job in (second, first, third):
        assert site.http.post(f"/api/v1/jobs/{job}/cancel").status_code == 200
    found = site.http.get("/jobs?limit=500", headers=JSON).json()["items"]
    over = [job["completed_at"] is not None for job in found]
    assert over == sorted(over)
    ended = [job for job in found if job["completed_at"]]
    assert [job["job_id"] for job in ended][:3] == [third, first, second]
    assert [job["completed_at"] for job in ended] == sorted((job["completed_at"] for job in ended), reverse=True)


def test_the_list_is_paged_and_each_job_comes_once(site: Site) -> None:
    """Web UI, all jobs: the list has pages, finished jobs after those in progress.

    Where: library/jobs.py
    """
    for _ in range(3):
        begin(site)
    found, place = [], "/jobs?limit=2"
    while place:
        page = site.http.get(place, headers=JSON).json()
        assert len(page["items"]) <= 2
        found += [job["job_id"] for job in page["items"]]
        place = page["next"]
    whole = [job["job_id"] for job in site.http.get("/jobs?limit=500", headers=JSON).json()["items"]]
    assert found == whole
    assert len(set(found)) == len(found)
