"""What every page must hold: no serious finding of axe, nothing wider than the screen; and its pictures are kept."""

import time
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

from tests.api.kit import DEADLINE, Serving
from tests.browser.conftest import LOOKS, Open

GRAVE = ("serious", "critical")
AXE = ((1440, "light"), (390, "dark"))


def look_at(opened: Open, server: Serving, name: str, path: str, pictures: Path, ready: str = "main") -> None:
    """At both widths, in both themes; axe at each width and in each theme once."""
    page = opened(server, path, reduced_motion="reduce")
    page.wait_for_selector(ready, state="attached")
    for width, theme in LOOKS:
        page.set_viewport_size({"width": width, "height": 900 if width > 600 else 844})
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.screenshot(path=pictures / f"{name}-{width}-{theme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than {width}"
        if (width, theme) in AXE:
            assert grave(page) == [], (name, width, theme)


def grave(page: Page) -> list[str]:
    """Serious findings of axe, with where they are."""
    found = Axe().run(page).response["violations"]
    return [f"{v['id']}: {[n['target'] for n in v['nodes']][:4]}" for v in found if v["impact"] in GRAVE]


def until(page: Page, expression: str) -> None:
    """Wait until something is true in a page, which forbids the eval of Playwright's own wait."""
    over = time.monotonic() + DEADLINE
    while not page.evaluate(expression):
        assert time.monotonic() < over, f"never: {expression}"
        page.wait_for_timeout(20)
