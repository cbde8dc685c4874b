"""The first page: from the first visit to a film that plays."""

from pathlib import Path

from playwright.sync_api import expect

from tests.api.kit import Serving, begin, submit, wait_for, work
from tests.browser.conftest import Open
from tests.browser.page_checks import look_at, until


def test_the_first_page_can_be_shown(opened: Open, served: Serving, pictures: Path) -> None:
    look_at(opened, served, "dashboard", "/", pictures, ".tile img")


def test_before_the_first_video_it_is_a_way_in(opened: Open, empty: Serving, pictures: Path) -> None:
    look_at(opened, empty, "dashboard-first", "/", pictures, ".welcome")


def test_from_the_first_visit_to_the_job_of_the_sample(opened: Open, empty: Serving) -> None:
    page = opened(empty, "/")
    page.get_by_role("button", name="Try the sample video").click()
    expect(page.locator("[data-toasts]")).to_contain_text("was added")
    expect(page.get_by_text("No worker is running", exact=True)).to_be_visible()
    (job,) = empty.library.jobs.page().rows
    assert job.name == "rushes-sample.mp4"


def test_from_the_first_page_to_a_film_that_plays(opened: Open, served: Serving) -> None:
    page = opened(served, "/")
    page.locator(".tile a.thumb").first.click()
    page.get_by_role("button", name="Play", exact=True).click()
    until(page, "document.querySelector('video').currentTime > 0.3")


def test_a_job_that_begins_appears_by_itself(opened: Open, empty: Serving) -> None:
    page = opened(empty, "/")
    expect(page.locator(".welcome")).to_be_visible()
    wait_for(lambda: empty.app.state.hub.streams > 0, "the page never listened")
    submit(empty.ledger, "begun", tasks=400)
    expect(page.locator("[data-running-job]")).to_contain_text("begun.mp4")
    figures = page.locator('[data-stage="develop"] [data-figures]')
    while figures.text_content() == "0 / 400":  # the page hears of what is done once it listens again
        assert work(empty.ledger), "400 tasks were done, and the page heard of none"
        page.wait_for_timeout(250)


def test_every_page_counts_the_same_jobs(opened: Open, empty: Serving) -> None:
    submit(empty.ledger, "running", tasks=2)
    begin(empty.ledger, "waiting")
    page = opened(empty, "/")
    expect(page.locator("[data-running]")).to_have_text("2 in progress")
    expect(page.locator("main")).to_contain_text("2 jobs, ")
    page.goto("/jobs")
    expect(page.locator("#tab-open")).to_have_text("2")
    expect(page.locator("[data-rows] > tr")).to_have_count(2)
    assert empty.get("/jobs/open") == "2"


def test_when_the_line_is_lost_the_page_says_what_it_shows_and_comes_back_by_itself(
    opened: Open, empty: Serving, complaints: list[str]
) -> None:
    page = opened(empty)
    away = {"status": 503, "body": "away"}
    page.route("**/api/v1/events", lambda route: route.fulfill(**away))  # a browser never tries again by itself
    page.goto("/")
    expect(page.locator("[data-connection]")).to_contain_text("this page shows the state of")
    page.unroute("**/api/v1/events")
    expect(page.locator("[data-connection]")).to_be_hidden()
    complaints.clear()
