"""What gave up: grouped, explained, tried again or put away together, and the filter stays."""

from pathlib import Path

from playwright.sync_api import expect

from rushes.domain.errors import BadMedia, SlotTooBig
from rushes.domain.task import Failure, TaskState
from tests.api.kit import WORKER, Serving, enter, submit
from tests.browser.conftest import Open
from tests.browser.page_checks import look_at

BAD = Failure("BadMedia", "reel.mp4 <script>alert(1)</script> makes no sense", BadMedia.hint, BadMedia.verdict)
BIG = Failure("SlotTooBig", "2.5 GB over 2.0 GB", SlotTooBig.hint, SlotTooBig.verdict, ("rss 2.5 GB",))


def _bury(server: Serving, name: str, *failures: Failure) -> str:
    """A job whose tasks died of these."""
    job = submit(server.ledger, name, tasks=len(failures))
    enter(server.ledger)
    for failure, lease in zip(failures, server.ledger.claim(WORKER, ["cpu"], len(failures)), strict=True):
        server.ledger.fail(WORKER, lease.task, lease.fence, failure, None)
    return job.id


def _dead(server: Serving, job: str) -> int:
    return len(server.ledger.tasks(job, TaskState.DEAD).rows)


def test_what_failed_can_be_shown(opened: Open, empty: Serving, pictures: Path) -> None:
    _bury(empty, "launch", BIG, BIG, BAD)
    _bury(empty, "reel", BAD)
    look_at(opened, empty, "failed", "/failed", pictures, ".group")


def test_a_class_is_retried_in_bulk_and_the_filter_stays(opened: Open, empty: Serving) -> None:
    first, second = _bury(empty, "launch", BIG, BIG, BAD), _bury(empty, "reel", BIG)
    page = opened(empty, "/failed")
    page.get_by_label("any error class").select_option("SlotTooBig")
    expect(page.locator(".group")).to_have_count(1)
    page.get_by_label("Select The memory limit was exceeded").check()
    expect(page.locator("[data-chosen]")).to_have_text("3 selected")
    page.get_by_role("button", name="Retry selected").click()
    expect(page.locator("[data-toasts]")).to_contain_text("3 tasks will be retried")
    expect(page.get_by_text("No failed tasks match")).to_be_visible()
    expect(page).to_have_url(f"{empty.url}/failed?kind=SlotTooBig")
    assert (_dead(empty, first), _dead(empty, second)) == (1, 0)


def test_a_class_is_put_away_without_script(opened: Open, empty: Serving) -> None:
    job = _bury(empty, "reel", BAD)
    page = opened(empty, "/failed", java_script_enabled=False)
    expect(page.get_by_text("<script>alert(1)</script>")).to_be_visible()
    page.get_by_role("button", name="Dismiss", exact=True).click()
    expect(page.get_by_text("No failed tasks")).to_be_visible()
    assert _dead(empty, job) == 1


def test_one_step_is_chosen_and_only_it_is_retried(opened: Open, empty: Serving) -> None:
    job = _bury(empty, "launch", BIG)
    page = opened(empty, "/failed?step=probe")
    expect(page.get_by_text("No failed tasks match")).to_be_visible()
    page.goto("/failed?step=develop")
    page.get_by_role("button", name="Retry 1").click()
    expect(page.locator("[data-toasts]")).to_contain_text("1 task will be retried")
    assert _dead(empty, job) == 0
