"""A real Chromium on a real server over a real home with one developed film, made once for all processes."""

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from rushes.library import JobRequest, Library
from tests.acceptance.conftest import VOICE, draw, sights
from tests.api.kit import DEADLINE, Serving, serving

HEADLESS = Path(sys.prefix) / "headless" / "chromium-headless-shell"  # from scripts/test
CHROMIUM = str(HEADLESS) if HEADLESS.exists() else shutil.which("chromium") or "/usr/bin/chromium"
SWITCHES = ["--no-sandbox", "--disable-background-networking", "--autoplay-policy=no-user-gesture-required"]
NAME = 'The <img src=x onerror="document.title=1"> & "rest".mp4'
STAGES = ("playlist", "shots", "transcript", "segments", "objects", "faces")
LOOKS: list[tuple[int, Literal["light", "dark"]]] = [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")]
Open = Callable[..., Page]
expect.set_options(timeout=1000 * DEADLINE)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser; a laptop may lack it, the test command promises it."""
    if not Path(CHROMIUM).exists() and os.environ.get("RUSHES_TEST_PROMISED") != "all":
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def footage(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder with a developed film and its home: a copy for this process of what the first one makes."""
    shared = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent
    made = shared / "browser_footage"
    with (shared / "browser_footage.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            part = tmp_path_factory.mktemp("making")
            film = draw(part / NAME, 12, (640, 360), rate=5, voice=VOICE, paint=sights)
            with Library(part / ".rushes") as library:
                assert library.run([film], JobRequest(only=STAGES, profile="fast"), beside=False).exit_code == 0
            part.rename(made)
    own = tmp_path_factory.mktemp("browser") / "footage"
    shutil.copytree(made, own)
    return own


@pytest.fixture(scope="session")
def served(footage: Path) -> Iterator[Serving]:
    """A server over that home, for everything that only looks or adds."""
    with serving(footage / ".rushes") as running:
        yield running


@pytest.fixture
def contexts() -> list[BrowserContext]:
    """What a test opened: closed before its server, which a page would miss."""
    return []


@pytest.fixture
def empty(tmp_path: Path, contexts: list[BrowserContext]) -> Iterator[Serving]:
    """A server over a home in which nothing is yet."""
    with serving(tmp_path / "home", sources=f"{tempfile.gettempdir()},/no") as running:
        yield running
        close(contexts)


def close(contexts: list[BrowserContext]) -> None:
    """Leave every page."""
    while contexts:
        contexts.pop().close()


@pytest.fixture
def complaints() -> list[str]:
    """What a page complained of, and requests that left this machine; a test may forgive what it provoked."""
    return []


@pytest.fixture
def opened(chromium: Browser, complaints: list[str], contexts: list[BrowserContext]) -> Iterator[Open]:
    """Opens a page of a server at a width, in a theme; at the end nothing may have been complained of."""

    def open(server: Serving, path: str = "", width: int = 1440, theme: str = "light", **more: object) -> Page:
        size = {"width": width, "height": 900 if width > 600 else 844}
        context = chromium.new_context(base_url=server.url, viewport=size, color_scheme=theme, **more)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * DEADLINE)
        _listen(page, server, complaints)
        if path:
            page.goto(path)
        return page

    yield open
    close(contexts)
    assert complaints == []


def _listen(page: Page, server: Serving, complaints: list[str]) -> None:
    def told(message: ConsoleMessage) -> None:
        if message.type == "error" and not server.app.state.hub.closing:  # who leaves is missed by open pages
            complaints.append(f"console: {message.text} {message.location.get('url', '')}")

    page.on("console", told)
    page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
    page.on("request", lambda request: complaints.extend(_abroad(request.url, server)))


def _abroad(url: str, server: Serving) -> list[str]:
    parts = urlsplit(url)
    here = parts.scheme in {"blob", "data"} or parts.netloc == urlsplit(server.url).netloc
    return [] if here else [f"another host: {url}"]


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept."""
    told = os.environ.get("RUSHES_SCREENSHOTS")
    place = Path(told) if told else tmp_path_factory.mktemp("screenshots")
    place.mkdir(parents=True, exist_ok=True)
    return place


@pytest.fixture
def film(served: Serving) -> str:
    """The id of the developed film."""
    (video,) = [v for v in served.library.videos.page()[0] if v.name == NAME]
    return video.id
