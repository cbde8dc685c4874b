"""People: named, merged, taken apart, hidden; and the last word is taken back."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from rushes.domain.span import Span
from rushes.index.changes import Track, TrackUpdate
from tests.api.kit import Serving
from tests.browser.conftest import Open
from tests.browser.page_checks import look_at

MS = Fraction(1, 1000)


@pytest.fixture
def crowd(served: Serving, film: str) -> Iterator[Serving]:
    """Three people in the developed film: one seen three times, two seen once; gone again afterwards."""
    index, owner = served.library.home.index, served.library.home.settings.owner
    before = index.tracks(owner)
    faces = [(0, 500), (0, 2500), (0, 4500), (1, 6000), (2, 8000)]
    index.apply(TrackUpdate(owner, film, [_track(film, who, at) for who, at in faces]))
    yield served
    index.apply(TrackUpdate(owner, film, [t for t in before if t.video == film]))
    for record in served.library.home.records.list("person_name", owner)[0]:
        served.library.home.records.delete("person_name", owner, record.id)
    served.library.home.follower.catch_up()


def _track(film: str, who: int, at: int) -> Track:
    span, box = Span(at, at + 1000, MS), (0.3 + 0.1 * who, 0.2, 0.1, 0.3)
    embedding = np.eye(4, dtype=np.float32)[who]
    embedding[3] = 0.3 if at > 1000 else 0.0  # the first look is a little apart from the others
    return Track(film, span, box, ((span, box, 0.9),), (embedding / np.linalg.norm(embedding)).tobytes())


def _card(page: Page, faces: int) -> str:
    """The address of somebody with that many faces."""
    card = page.locator(".person", has_text=f"{faces} face").first
    return str(card.locator("a").get_attribute("href"))


def test_people_can_be_shown(opened: Open, crowd: Serving, pictures: Path) -> None:
    page = opened(crowd, "/people")
    look_at(opened, crowd, "people", _card(page, 3), pictures, ".panel")


def test_somebody_is_named_and_it_is_taken_back(opened: Open, crowd: Serving) -> None:
    page = opened(crowd, "/people")
    page.goto(_card(page, 3))
    page.get_by_label("Name", exact=True).fill('Anna <b>"O"</b>')
    page.get_by_role("button", name="Save name").click()
    expect(page.locator(".person").first).to_contain_text('Anna <b>"O"</b>')
    expect(page.get_by_text("1 named, 2 unnamed")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("0 named, 3 unnamed")).to_be_visible()


def test_two_who_are_one_are_merged(opened: Open, crowd: Serving) -> None:
    page = opened(crowd, "/people")
    for box in page.locator(".person", has_text="1 face").get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Merge").click()
    expect(page.locator(".person")).to_have_count(2)
    expect(page.locator("[data-toasts]")).to_contain_text("merged")


def test_a_face_of_somebody_else_is_taken_out_without_script(opened: Open, crowd: Serving) -> None:
    page = opened(crowd, "/people", java_script_enabled=False)
    page.goto(_card(page, 3))
    page.get_by_label("Separate:").first.check()
    page.get_by_label("Name of the other person").fill("Bert")
    page.get_by_role("button", name="Separate").click()
    expect(page.locator(".person", has_text="Bert")).to_contain_text("1 face")
    expect(page.locator(".person", has_text="2 faces")).to_have_count(1)


def test_somebody_is_hidden_and_shown_again(opened: Open, crowd: Serving) -> None:
    page = opened(crowd, "/people")
    page.goto(_card(page, 3))
    page.get_by_role("button", name="Hide").click()
    expect(page.locator(".person")).to_have_count(2)
    page.get_by_role("link", name="Show 1 hidden").click()
    page.goto(_card(page, 3))
    page.get_by_role("button", name="Show again").click()
    expect(page.locator(".person")).to_have_count(3)


def test_before_anybody_was_seen_it_says_how_they_come(opened: Open, empty: Serving) -> None:
    expect(opened(empty, "/people").get_by_text("No people yet")).to_be_visible()
