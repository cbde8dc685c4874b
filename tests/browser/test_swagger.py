"""The page on which people try the API: it works under the policy of all pages, and asks no other host."""

from playwright.sync_api import expect

from tests.api.kit import Serving
from tests.browser.conftest import Open


def test_the_api_can_be_read_and_tried_in_the_browser(served: Serving, opened: Open) -> None:
    page = opened(served, "/docs")
    operation = page.locator("#operations-videos-list_videos")
    expect(operation).to_be_visible()
    operation.locator("button").first.click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table .response .response-col_status")).to_contain_text("200")
