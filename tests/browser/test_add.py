"""Adding films: uploads that survive what happens to them, folders of the server, and what is already here."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from rushes.blobs.documents import read_document
from rushes.bucket.location import BucketLocation
from rushes.surfaces.web.pages import add
from rushes.uploads import direct
from tests.api.kit import Serving, serving
from tests.browser.conftest import NAME, Open, close
from tests.browser.page_checks import look_at

PART = 50_000


@pytest.fixture
def large(footage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A film that is sent in several parts: smaller ones than usual, and some room behind it."""
    monkeypatch.setattr(add, "PART", PART)
    film = tmp_path / "night launch.mp4"
    film.write_bytes((footage / NAME).read_bytes() + bytes(PART))
    return film


def test_the_ways_in_can_be_shown(opened: Open, served: Serving, footage: Path, pictures: Path) -> None:
    look_at(opened, served, "add", "/add", pictures, "[data-drop]")
    look_at(opened, served, "add-folder", f"/add?from=folder&place={footage}", pictures, ".found")


def test_an_upload_cut_in_the_middle_goes_on_after_a_reload(
    opened: Open, empty: Serving, large: Path, complaints: list[str]
) -> None:
    page = opened(empty, "/add")

    def cut(route: Route) -> None:
        late = route.request.method == "PATCH" and route.request.headers["upload-offset"] != "0"
        route.abort() if late else route.continue_()

    page.route("**/api/v1/uploads/*", cut)
    page.locator("[data-files]").set_input_files(large)
    page.get_by_role("button", name="Upload and process 1 video").click()
    expect(page.locator("[data-file]")).to_contain_text("connection lost")
    (upload,) = empty.library.uploads.all()
    assert (upload.offset, upload.state) == (PART, "open")
    goes_on_after_a_reload(page, large, "night launch.mp4")
    (upload,) = empty.library.uploads.all()
    assert (upload.offset, upload.state) == (large.stat().st_size, "arrived")
    complaints.clear()  # the line was cut on purpose
    page.get_by_role("link", name="Open job").click()
    expect(page.locator("h1")).to_have_text("night launch.mp4")


def test_an_upload_shows_how_far_it_is_inside_a_part_and_goes_on_from_the_last_byte(
    opened: Open, empty: Serving, large: Path, monkeypatch: pytest.MonkeyPatch, complaints: list[str]
) -> None:
    part = 12 << 20
    monkeypatch.setattr(add, "PART", part)
    large.write_bytes(large.read_bytes() + bytes(2 * part))
    page = opened(empty, "/add")
    line = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 1 << 20}
    line.send("Network.emulateNetworkConditions", slow)
    page.locator("[data-files]").set_input_files(large)
    page.get_by_role("button", name="Upload and process 1 video").click()
    expect(page.locator("[data-file] [data-note]")).to_have_text(re.compile(r"^[1-9]\d* %, .* [kM]B/s$"))
    page.reload()
    line.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": -1})
    offsets: list[int] = []
    page.on("request", lambda r: offsets.append(int(r.headers["upload-offset"])) if r.method == "PATCH" else None)
    page.locator("[data-files]").set_input_files(large)
    expect(page.locator("[data-file] [data-state]")).to_have_text("uploaded")
    assert offsets[0] % part, "it goes on inside a part"
    (upload,) = empty.library.uploads.all()
    assert empty.library.uploads.staging_file(upload).final.read_bytes() == large.read_bytes()
    complaints.clear()  # the line was cut on purpose


def goes_on_after_a_reload(page: Page, film: Path, told: str) -> None:
    """The line is there again, and the same film is chosen once more."""
    page.reload()
    expect(page.locator("[data-unfinished]")).to_contain_text(told)
    page.unroute_all(behavior="ignoreErrors")
    page.locator("[data-files]").set_input_files(film)
    expect(page.locator("[data-file] [data-state]")).to_have_text("uploaded")


@pytest.fixture
def bucketed(
    tmp_path: Path, seaweed_s3: BucketLocation, contexts: list[BrowserContext], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Serving]:
    """A server whose films lie in a bucket, which takes them in the smallest parts it can."""
    monkeypatch.setattr(direct, "PART", 5 << 20)
    place, name = seaweed_s3, tmp_path.name
    reached = {"s3_endpoint": place.endpoint, "s3_key": place.key, "s3_secret": place.secret}
    with serving(tmp_path / "home", blobs=f"s3://{place.bucket}/{name}", **reached) as running:
        yield running
        close(contexts)


def test_a_film_goes_straight_to_the_bucket_and_goes_on_after_a_reload(
    opened: Open, bucketed: Serving, large: Path, seaweed_s3: BucketLocation, complaints: list[str]
) -> None:
    large.write_bytes(large.read_bytes() + bytes(8 << 20))
    page = opened(bucketed, "/add")

    def cut(route: Route) -> None:
        route.abort() if "partNumber=2" in route.request.url else route.continue_()

    page.route(f"{seaweed_s3.endpoint}/**", cut)
    with page.expect_response(lambda answer: "partNumber=1" in answer.url and answer.ok):
        page.locator("[data-files]").set_input_files(large)
        page.get_by_role("button", name="Upload and process 1 video").click()
    expect(page.locator("[data-file]")).to_contain_text("connection lost")
    goes_on_after_a_reload(page, large, "5.2 MB of")
    (upload,) = bucketed.library.uploads.all()
    assert (upload.state, bool(upload.multipart)) == ("arrived", True)
    assert read_document(bucketed.library.home.blobs, upload.key) == large.read_bytes()
    complaints[:] = [c for c in complaints if seaweed_s3.endpoint not in c]  # it was meant, and cut on purpose


def test_a_bucket_that_the_browser_cannot_reach_is_left_alone(
    opened: Open, bucketed: Serving, large: Path, seaweed_s3: BucketLocation, complaints: list[str]
) -> None:
    page = opened(bucketed, "/add")
    page.route(f"{seaweed_s3.endpoint}/**", lambda route: route.abort())
    page.locator("[data-files]").set_input_files(large)
    page.get_by_role("button", name="Upload and process 1 video").click()
    expect(page.locator("[data-file] [data-state]")).to_have_text("uploaded")
    states = {u.state: bool(u.multipart) for u in bucketed.library.uploads.all()}
    assert states == {"refused": True, "arrived": False}
    complaints[:] = [c for c in complaints if seaweed_s3.endpoint not in c]


def test_an_upload_is_given_up(opened: Open, empty: Serving, large: Path, complaints: list[str]) -> None:
    page = opened(empty, "/add")
    page.route(
        "**/api/v1/uploads/*", lambda route: route.abort() if route.request.method == "PATCH" else route.continue_()
    )
    page.locator("[data-files]").set_input_files(large)
    page.get_by_role("button", name="Upload and process 1 video").click()
    expect(page.locator("[data-file]")).to_contain_text("connection lost")
    page.get_by_role("button", name="Discard night launch.mp4").click()
    expect(page.locator("[data-file]")).to_have_count(0)
    page.reload()
    expect(page.locator("[data-unfinished]")).to_have_count(0)
    assert [u.state for u in empty.library.uploads.all()] == ["refused"]
    complaints.clear()


def test_a_film_that_is_here_is_not_sent_and_an_estimate_is_made_for_others(
    opened: Open, served: Serving, footage: Path, large: Path
) -> None:
    page = opened(served, "/add")
    page.locator("[data-files]").set_input_files([footage / NAME, large])
    expect(page.locator("[data-file]").first).to_contain_text("already in the library")
    expect(page.locator("[data-file]").last).to_contain_text("ready")
    expect(page.get_by_role("button", name="Upload and process 1 video")).to_be_enabled()
    page.get_by_label("subtitles").check()
    expect(page.locator('[data-estimate="subtitles"]')).to_be_visible()
    expect(page.locator('[data-estimate="searchable"]')).to_be_hidden()


def test_what_is_no_footage_is_refused_with_the_reason(
    opened: Open, empty: Serving, tmp_path: Path, complaints: list[str]
) -> None:
    paper = tmp_path / "paper.mp4"
    paper.write_bytes(b"%PDF-1.7\n" + b"x" * 5000)
    page = opened(empty, "/add")
    page.locator("[data-files]").set_input_files(paper)
    page.get_by_role("button", name="Upload and process 1 video").click()
    expect(page.locator("[data-file]")).to_contain_text("is a PDF, not a video")
    assert empty.library.jobs.page().rows == (), "no job is left of it"
    complaints.clear()


def test_a_folder_of_the_server_is_looked_at_and_taken_in_without_script(
    opened: Open, empty: Serving, footage: Path
) -> None:
    page = opened(empty, "/add?from=folder", java_script_enabled=False)
    page.get_by_role("textbox", name="Folder or bucket").fill(str(footage))
    page.get_by_role("button", name="Browse", exact=True).click()
    expect(page.locator(".found")).to_contain_text(NAME)
    page.get_by_label("subtitles").check()
    page.get_by_label("Save this location").check()
    page.get_by_role("button", name="Add 1 video").click()
    expect(page.locator("[data-toasts]")).to_contain_text("1 video added")
    (job,) = empty.library.jobs.page().rows
    assert (job.name, job.recipe) == (NAME, "subtitles")
    page.goto("/add?from=folder")
    expect(page.locator(".remembered")).to_contain_text(str(footage))


def test_a_place_that_is_not_there_is_said_so(opened: Open, empty: Serving) -> None:
    page = opened(empty, "/add?from=folder&place=/no/such/folder")
    expect(page.get_by_text("no such file or folder")).to_be_visible()
    expect(page.get_by_role("button", name="Choose a location first")).to_be_disabled()
