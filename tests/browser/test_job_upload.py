"""The page of a job that waits for its film: choose it, send it, watch it in 3D, save it."""

from pathlib import Path

from playwright.sync_api import Route, expect

from tests.acceptance.conftest import draw, sights
from tests.api.kit import Serving
from tests.browser.conftest import Open
from tests.browser.page_checks import look_at, until


def test_a_film_is_sent_from_the_page_of_its_job_and_played_there_in_3d(
    opened: Open, empty: Serving, pictures: Path, tmp_path: Path
) -> None:
    film = draw(tmp_path / "walk.mp4", 2, (160, 90), rate=4, paint=sights)
    place = empty.http.post("/jobs", data={"mode": "anaglyph"}).headers["location"]
    look_at(opened, empty, "job-upload", place, pictures)
    page = opened(empty, place)
    form = page.get_by_label("Upload", exact=True)
    expect(form.get_by_role("button", name="Upload")).to_be_disabled()
    form.get_by_label("Video file").set_input_files(film)
    form.get_by_role("button", name="Upload").click()
    expect(page.get_by_label("Video file")).to_have_count(0)
    assert empty.library.work(slots=1, until_idle=True) == 0
    expect(page.locator("#job-film video")).to_be_visible()
    until(page, "document.querySelector('#job-film video').videoWidth === 160")
    with page.expect_download() as saved:
        page.locator("#job-film").get_by_role("link", name="Download").click()
    assert saved.value.suggested_filename == "source.anaglyph.mp4"
    look_at(opened, empty, "job-film", place, pictures, "#job-film video")


def test_the_rest_of_a_film_is_sent_after_the_line_was_lost(
    opened: Open, empty: Serving, complaints: list[str], tmp_path: Path
) -> None:
    film = draw(tmp_path / "walk.mp4", 2, (64, 36), rate=4)
    place = empty.http.post("/jobs", data={"mode": "sbs"}).headers["location"]
    page = opened(empty, place)
    lost = iter([True])

    def lose_once(route: Route) -> None:
        route.abort() if route.request.method == "PATCH" and next(lost, False) else route.continue_()

    page.route("**/api/v1/uploads/*", lose_once)
    page.get_by_label("Video file").set_input_files(film)
    page.get_by_label("Upload", exact=True).get_by_role("button", name="Upload").click()
    expect(page.get_by_label("Video file")).to_have_count(0)
    assert empty.get(f"/api/v1/jobs/{place.rpartition('/')[2]}")["state"] == "created"
    assert [text for text in complaints if "ERR_FAILED" not in text] == []
    complaints.clear()
