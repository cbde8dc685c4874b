"""Workers: who works on what, and telling one to stop."""

from pathlib import Path

from playwright.sync_api import expect

from rushes.domain.worker import Incarnation
from tests.api.kit import WORKER, Serving, enter, submit
from tests.browser.conftest import Open
from tests.browser.page_checks import look_at


def test_workers_can_be_shown(opened: Open, empty: Serving, pictures: Path) -> None:
    submit(empty.ledger, "worked", tasks=3)
    empty.ledger.claim(WORKER, ["cpu"], 2)
    empty.ledger.renew(Incarnation("x86_64-8.mill-2.a0fb65.1", "h", "b", 1, "1", ("cpu", "gpu"), 4, owner="me"), {}, {})
    look_at(opened, empty, "workers", "/workers", pictures, "tbody tr")


def test_no_worker_is_said_with_what_to_do(opened: Open, empty: Serving) -> None:
    expect(opened(empty, "/workers").get_by_text("rushes worker")).to_be_visible()


def test_a_worker_is_told_to_stop(opened: Open, empty: Serving) -> None:
    enter(empty.ledger)
    page = opened(empty, "/workers")
    expect(page.locator("tbody tr")).to_contain_text("idle")
    page.get_by_role("button", name="Drain").click()
    expect(page.locator("tbody tr")).to_contain_text("draining")
    assert [w.draining for w in empty.ledger.workers()] == [True]
