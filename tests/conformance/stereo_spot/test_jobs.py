"""A job from its form to its film, as the document has it."""

import httpx
import pytest

from tests.conformance.conftest import Site

JSON = {"Accept": "application/json"}


@pytest.mark.parametrize("mode", ["anaglyph", "sbs"])
def test_a_form_with_only_a_mode_makes_a_job_and_leads_to_its_page(site: Site, mode: str) -> None:
    """Web UI, routes: `POST /jobs` (form: mode) creates a job and redirects to its page, which has an upload form.

    Where: surfaces/api/documents/stereo_spot.py, surfaces/web/pages/jobs.py
    """
    answer = site.http.post("/jobs", data={"mode": mode}, headers={"Accept": "text/html"})
    assert answer.status_code == 303
    page = site.http.get(answer.headers["location"], headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert 'type="file"' in page.text
    job = site.http.get(answer.headers["location"], headers=JSON).json()
    assert (job["mode"], job["status"]) == (mode, "created")


def test_json_answers_the_job_and_where_to_upload(site: Site) -> None:
    """Shared types, API DTOs: CreateJobResponse is {job_id, upload_url}; the upload is one PUT to that address.

    Where: surfaces/api/documents/stereo_spot.py
    """
    answer = site.http.post("/jobs", data={"mode": "sbs"}, headers=JSON)
    assert answer.status_code == 201
    assert set(answer.json()) == {"job_id", "upload_url"}
    assert httpx.URL(answer.json()["upload_url"]).is_absolute_url
