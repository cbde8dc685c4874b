"""Clips: listed with their video and together, watched, downloaded, linked to, and deleted."""

from pathlib import Path

from playwright.sync_api import expect

from tests.api.kit import Serving
from tests.browser.conftest import NAME, Open
from tests.browser.page_checks import look_at


def cut(served: Serving, film: str, start: float) -> str:
    ask = {"video_id": film, "t_start": start, "t_end": start + 1, "padding_ms": 0}
    clip = served.post("/api/v1/clips", ask, 202)["clip_id"]
    assert served.library.work(slots=1, until_idle=True) == 0
    return str(clip)


def test_clips_have_a_page_and_a_list_with_their_video(
    opened: Open, served: Serving, film: str, pictures: Path
) -> None:
    clip = cut(served, film, 2.0)
    look_at(opened, served, "clips", "/library/clips", pictures, ".joblist li")
    look_at(opened, served, "clip", f"/library/clips/{clip}", pictures, "video")
    page = opened(served, f"/videos/{film}#clips")
    row = page.locator("#clips .joblist li").filter(has_text="0:02.000 to 0:03.000")
    expect(row).to_contain_text("kept until")
    row.get_by_role("link", name="0:02.000 to 0:03.000").click()
    expect(page.get_by_role("link", name=NAME)).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download").click()
    assert saved.value.suggested_filename.endswith("0m02.000-0m03.000.mp4")


def test_a_clip_is_deleted_where_it_is_listed_and_the_list_says_so(opened: Open, served: Serving, film: str) -> None:
    cut(served, film, 5.0)
    page = opened(served, "/library/clips", java_script_enabled=False)
    row = page.locator(".joblist li").filter(has_text="0:05.000 to 0:06.000")
    row.get_by_role("button", name="Delete clip").click()
    expect(page.get_by_text("Clip deleted.")).to_be_visible()
    expect(page.locator(".joblist li").filter(has_text="0:05.000 to 0:06.000")).to_have_count(0)


def test_a_clip_that_waits_appears_when_it_is_cut(opened: Open, served: Serving, film: str) -> None:
    ask = {"video_id": film, "t_start": 7.0, "t_end": 8.0, "padding_ms": 0}
    clip = served.post("/api/v1/clips", ask, 202)["clip_id"]
    page = opened(served, f"/library/clips/{clip}")
    expect(page.get_by_role("status").filter(has_text="waiting for a worker")).to_be_visible()
    assert served.library.work(slots=1, until_idle=True) == 0
    expect(page.locator("video")).to_be_visible()
