"""The library: posters, filters that stay, bulk actions, and names that are only text."""

from pathlib import Path

from playwright.sync_api import expect

from tests.api.kit import Serving
from tests.api.test_lists import fill
from tests.browser.conftest import NAME, Open
from tests.browser.page_checks import look_at


def test_the_library_can_be_shown(opened: Open, served: Serving, pictures: Path) -> None:
    look_at(opened, served, "library", "/library", pictures, ".tile img")


def test_the_library_as_a_list_can_be_shown(opened: Open, served: Serving, pictures: Path) -> None:
    look_at(opened, served, "library-list", "/library?view=list", pictures, "td img")


def test_a_filter_lives_in_the_address_and_can_be_cleared(opened: Open, served: Serving) -> None:
    page = opened(served, "/library")
    page.get_by_role("link", name="failed").click()
    expect(page.get_by_role("heading", name="No videos match")).to_be_visible()
    assert "state=failed" in page.url
    page.get_by_role("link", name="Clear filters").last.click()
    expect(page.locator(".tile")).not_to_have_count(0)


def test_what_is_seen_narrows_the_library(opened: Open, served: Serving, film: str) -> None:
    page = opened(served, "/library?has=object:person")
    expect(page.locator(f'.tile[data-video="{film}"]')).to_have_count(1)


def test_a_hostile_name_is_only_text(opened: Open, served: Serving, film: str) -> None:
    page = opened(served, "/library?view=list")
    expect(page.locator(f'tr[data-video="{film}"] a.strong')).to_have_text(NAME)
    assert page.locator("img[onerror]").count() == 0
    assert page.title() != "1"


def test_chosen_videos_are_processed_and_the_filter_stays(opened: Open, served: Serving, film: str) -> None:
    page = opened(served, "/library?state=done")
    page.locator(f'.tile[data-video="{film}"] input').check(force=True)
    expect(page.locator("[data-bulk-count]")).to_have_text("1 selected")
    page.get_by_label("Recipe").select_option("text")
    page.get_by_role("button", name="Process").click()
    expect(page.locator("[data-toasts]")).to_contain_text("1 job started with the recipe text")
    assert page.url.endswith("/library?state=done")
    job = next(j for j in served.library.jobs.page().rows if j.recipe == "text")
    served.library.jobs.cancel(job.id)


def test_without_script_the_library_is_all_there(opened: Open, served: Serving, film: str) -> None:
    page = opened(served, "/library", java_script_enabled=False)
    expect(page.locator(f'.tile[data-video="{film}"]')).to_have_count(1)
    page.get_by_label("Filter by name or folder").fill("no such film")
    page.get_by_label("Filter by name or folder").press("Enter")
    expect(page.get_by_role("heading", name="No videos match")).to_be_visible()


def test_a_page_that_is_not_there_says_so_in_words(
    opened: Open, served: Serving, pictures: Path, complaints: list[str]
) -> None:
    look_at(opened, served, "not-found", "/videos/vid_none", pictures, ".errorbox")
    assert len(complaints) == 1
    complaints.clear()


def test_chosen_videos_and_a_video_on_its_page_are_deleted_after_a_second_look(opened: Open, empty: Serving) -> None:
    fill(empty.library, 3)
    page = opened(empty, "/library")
    for box in page.locator(".tile input").all()[:2]:
        box.check(force=True)
    page.locator(".bulkbar summary").click()
    page.get_by_role("button", name="Delete the selected videos").click()
    expect(page.locator("[data-toasts]")).to_contain_text("2 videos deleted. Originals in folders")
    expect(page.locator(".tile")).to_have_count(1)
    page.locator(".tile a").first.click()
    page.get_by_role("tab", name="Info").click()
    page.locator("details.delete summary").click()
    page.get_by_role("button", name="Delete this video").click()
    expect(page.get_by_role("heading", name="No videos yet")).to_be_visible()
    assert empty.library.videos.page()[0] == ()
