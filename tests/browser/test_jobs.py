"""Jobs: the table and one job's page, live; steering; filters that stay."""

from pathlib import Path

from playwright.sync_api import expect

from rushes.domain.job import JobState
from rushes.domain.task import Failure
from tests.api.kit import WORKER, Serving, begin, enter, submit, work
from tests.browser.conftest import Open
from tests.browser.page_checks import look_at


def test_the_table_and_a_job_can_be_shown(opened: Open, empty: Serving, pictures: Path) -> None:
    for name in ("night_launch", "big_film"):
        submit(empty.ledger, name, tasks=60 if name == "big_film" else 12)
    work(empty.ledger, 5)
    enter(empty.ledger)
    leases = empty.ledger.claim(WORKER, ["cpu"], 3)
    failure = Failure("SlotDied", "the slot died: signal 11", "Look at its log.", "may work next time", ("line 1",))
    empty.ledger.fail(WORKER, leases[0].task, leases[0].fence, failure, None)
    empty.ledger.fail(WORKER, leases[1].task, leases[1].fence, failure, 60.0)
    look_at(opened, empty, "jobs", "/jobs", pictures, "tbody tr")
    look_at(opened, empty, "job", f"/jobs/{leases[0].job}?task={leases[0].task}", pictures, ".map tbody tr")


def test_progress_is_seen_as_it_is_made(opened: Open, empty: Serving) -> None:
    job = submit(empty.ledger, "live", tasks=4)
    table, page = opened(empty, "/jobs"), opened(empty, f"/jobs/{job.id}")
    expect(table.locator(f"#bar-{job.id}")).to_contain_text("1 / 5")
    expect(page.locator("#step-develop .cell.done")).to_have_count(0)
    work(empty.ledger, 2)
    expect(table.locator(f"#bar-{job.id}")).to_contain_text("3 / 5")
    expect(page.locator("#step-develop .cell.done")).to_have_count(2)
    expect(page.locator("#job-events")).to_contain_text("make preview")
    work(empty.ledger, 2)
    expect(page.locator("#job-word")).to_contain_text("done")
    expect(page.locator("#job-actions").get_by_role("button", name="Cancel")).to_have_count(0)


def test_steps_appear_when_the_plan_is_opened(opened: Open, empty: Serving) -> None:
    page = opened(empty, f"/jobs/{begin(empty.ledger, 'fresh').id}")
    expect(page.locator("#step-probe")).to_be_visible()
    submit(empty.ledger, "fresh", tasks=4)
    expect(page.locator("#step-develop .cell")).to_have_count(4)


def test_a_new_job_waits_behind_a_link(opened: Open, empty: Serving) -> None:
    submit(empty.ledger, "first", tasks=1)
    page = opened(empty, "/jobs")
    expect(page.get_by_role("link", name="first.mp4")).to_be_visible()
    submit(empty.ledger, "second", tasks=1)
    page.locator("[data-new] a").click()
    expect(page.get_by_role("link", name="second.mp4")).to_be_visible()


def test_filters_stay_in_the_address_after_an_action(opened: Open, empty: Serving) -> None:
    jobs = [submit(empty.ledger, name, tasks=2) for name in ("one", "two")]
    page = opened(empty, "/jobs")
    page.get_by_label("any recipe").select_option("searchable")
    expect(page.get_by_text("No jobs match")).to_be_visible()
    page.goto("/jobs?state=waiting")
    page.get_by_label("Select one.mp4").check()
    expect(page.locator("[data-chosen]")).to_have_text("1 selected")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("[data-toasts]")).to_contain_text("1 job paused")
    expect(page).to_have_url(f"{empty.url}/jobs?state=waiting")
    assert [empty.ledger.job(j.id).paused for j in jobs] == [True, False]


def test_a_job_is_paused_resumed_cancelled_and_brought_back(opened: Open, empty: Serving) -> None:
    job = submit(empty.ledger, "steered", tasks=3)
    page = opened(empty, f"/jobs/{job.id}")
    for button, word in (("Pause", "paused"), ("Resume", "waiting"), ("Cancel", "cancelled"), ("Retry", "waiting")):
        page.locator("#job-actions").get_by_role("button", name=button).click()
        expect(page.locator("#job-word")).to_have_text(word)
    assert empty.ledger.job(job.id).state is JobState.RUNNING


def test_without_script_a_job_is_cancelled_all_the_same(opened: Open, empty: Serving) -> None:
    job = submit(empty.ledger, "plain", tasks=1)
    page = opened(empty, f"/jobs/{job.id}", java_script_enabled=False)
    page.locator("#job-actions").get_by_role("button", name="Cancel").click()
    expect(page.locator("#job-word")).to_have_text("cancelled")
    expect(page.locator("[data-toasts]")).to_contain_text("Finished results are kept")


def test_history_is_replayed_from_any_number(opened: Open, empty: Serving) -> None:
    job = submit(empty.ledger, "told", tasks=6)
    work(empty.ledger, 6)
    last = empty.ledger.job(job.id).last_event
    page = opened(empty, f"/jobs/{job.id}")
    expect(page.locator("#job-events tr").first).to_contain_text(f"#{last}")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("#job-events tr").first).to_contain_text(f"#{last}")
    page.get_by_label("after number").fill("4")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("#job-events tr").first).to_contain_text("#5")
    expect(page.locator("#job-events tr")).to_have_count(last - 4)


def test_a_job_says_why_it_waits(opened: Open, empty: Serving) -> None:
    job = submit(empty.ledger, "idle", tasks=2)
    empty.post(f"/api/v1/jobs/{job.id}/pause")
    expect(opened(empty, f"/jobs/{job.id}").locator("#job-why")).to_contain_text("the job is paused")


def test_on_a_phone_the_table_of_a_job_fits(opened: Open, empty: Serving) -> None:
    job = submit(empty.ledger, "long_name_of_a_film_" * 3, tasks=60)
    page = opened(empty, f"/jobs/{job.id}", width=390)
    page.wait_for_selector("#job-map tbody tr")
    ends = "[...document.querySelectorAll('#job-map tbody tr > *')].map((one) => one.getBoundingClientRect().right)"
    assert max(page.evaluate(ends)) <= 390
