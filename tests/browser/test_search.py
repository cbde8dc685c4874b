"""Search: from words to a clip in the downloads; by pointer and by key."""

from pathlib import Path

from playwright.sync_api import expect

from tests.api.kit import Serving
from tests.browser.conftest import Open
from tests.browser.page_checks import look_at


def test_the_search_can_be_shown(opened: Open, served: Serving, pictures: Path) -> None:
    look_at(opened, served, "search", "/search?q=country+OR+object:person", pictures, ".hit img")


def test_what_there_is_to_find_can_be_shown(opened: Open, served: Serving, pictures: Path) -> None:
    look_at(opened, served, "search-empty", "/search", pictures, ".chip")


def test_no_hits_say_what_else_to_try(opened: Open, served: Serving, pictures: Path) -> None:
    look_at(opened, served, "search-none", '/search?q="country+can+xyzzy"', pictures, ".empty")


def test_from_words_to_a_clip_in_the_downloads(opened: Open, served: Serving, tmp_path: Path) -> None:
    page = opened(served, "/")
    page.get_by_label("Search").fill('say:"your country"')
    page.get_by_label("Search").press("Enter")
    hit = page.locator(".hit").first
    expect(hit.locator("mark").first).to_have_text("your country")
    hit.get_by_role("button", name="Clip").click()
    expect(page.locator("[data-toasts]")).to_contain_text("Cutting the clip")
    assert served.library.work(slots=1, until_idle=True) == 0
    with page.expect_download() as download:
        page.locator("[data-toasts]").get_by_role("link", name="Download").click()
    download.value.save_as(tmp_path / "clip.mp4")
    assert (tmp_path / "clip.mp4").stat().st_size > 1000


def test_all_hits_are_taken_along_for_other_tools(opened: Open, served: Serving, tmp_path: Path) -> None:
    page = opened(served, "/search?q=country+OR+object:person")
    for name, begins in (
        ("CSV", b"video,name,kind"),
        ("JSON Lines", b"{"),
        ("EDL", b"TITLE: country OR object:person"),
    ):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        download.value.save_as(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_hits_are_walked_by_key_and_played(opened: Open, served: Serving, film: str) -> None:
    page = opened(served, "/search?q=country+OR+object:person&order=time")
    page.locator("h2.title").click()
    page.keyboard.press("n")
    page.keyboard.press("n")
    expect(page.locator(".chosen-hit")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/videos/{film}?*")
    expect(page.locator("[data-hits]")).to_be_visible()


def test_a_box_offers_what_is_known(opened: Open, served: Serving) -> None:
    page = opened(served, "/search")
    page.locator(".bigsearch input").fill("object:per")
    expect(page.locator("#completions option").first).to_have_attribute("value", "object:person")


def test_without_script_the_search_finds(opened: Open, served: Serving) -> None:
    page = opened(served, "/search?q=country", java_script_enabled=False)
    expect(page.locator(".hit mark").first).to_have_text("country")


def test_a_misspelt_word_is_put_right_by_one_click(opened: Open, served: Serving) -> None:
    page = opened(served, "/search?q=contry")
    page.get_by_role("link", name="Did you mean: country").click()
    expect(page.locator(".hit mark").first).to_have_text("country")


def test_what_is_not_understood_is_named(opened: Open, served: Serving) -> None:
    page = opened(served, "/search?q=objct:car")
    expect(page.locator(".sentence")).to_contain_text("Did you mean object:?")


def test_words_that_are_said_are_offered(served: Serving) -> None:
    offered = served.http.get("/search/complete", params={"q": "say:coun"}).json()
    assert "say:country" in offered


def test_a_long_name_stays_inside_its_facet(opened: Open, served: Serving, film: str) -> None:
    videos = served.library.videos
    videos.rename(videos.get(film), "a_very_long_name_without_any_space_" * 6)
    try:
        page = opened(served, f"/search?q=country&video={film}")
        name = page.locator(".facet a span").filter(has_text="a_very_long_name").first
        expect(name).to_be_visible()
        facets, shown = page.locator(".facets").bounding_box(), name.bounding_box()
        assert facets
        assert shown
        assert shown["x"] + shown["width"] <= facets["x"] + facets["width"]
        assert page.locator(".facet .count").last.bounding_box()["x"] <= facets["x"] + facets["width"]  # type: ignore[index]
    finally:
        videos.rename(videos.get(film), "")
