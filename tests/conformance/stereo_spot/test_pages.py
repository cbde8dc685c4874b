"""Pages and routes of the document."""

import pytest

from tests.conformance.conftest import Site


@pytest.mark.parametrize("path", ["/", "/jobs"])
def test_the_dashboard_and_the_list_of_jobs_are_html(site: Site, path: str) -> None:
    """Web UI, pages and routes: `GET /` is the dashboard and `GET /jobs` the list of jobs, rendered on the server.

    Where: surfaces/web/mount.py
    """
    answer = site.http.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
