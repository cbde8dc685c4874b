"""One video: plays, steps, follows what is said, is corrected and cut; by pointer, by key, and by a link."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from rushes.domain.errors import Refused
from rushes.library import JobRequest
from rushes.library.videos.export import KINDS
from tests.acceptance.conftest import draw
from tests.api.kit import Serving
from tests.browser.conftest import NAME, Open
from tests.browser.page_checks import grave, look_at, until

MEDIA = Path(__file__).parents[1] / "media"
FILM = "document.querySelector('video')"
NOW = f"{FILM}.currentTime"


def ready(page: Page) -> Page:
    page.wait_for_selector(".lane.shot li", state="attached")
    until(page, f"{FILM}.readyState >= 2 && !{FILM}.seeking")
    return page


def test_the_page_of_a_video_can_be_shown(opened: Open, served: Serving, film: str, pictures: Path) -> None:
    look_at(opened, served, "video", f"/videos/{film}?t=4.5&q=country", pictures, ".lane.shot li")


def test_it_plays_and_the_word_that_is_said_is_marked(opened: Open, served: Serving, film: str) -> None:
    page = ready(opened(served, f"/videos/{film}?t=3"))
    page.get_by_role("button", name="Play", exact=True).click()
    until(page, f"{NOW} > 3.5")
    expect(page.locator(".transcript li.current")).to_have_count(1)
    page.wait_for_selector(".transcript .now")


def test_a_click_on_a_word_goes_there_and_what_was_looked_for_is_marked(
    opened: Open, served: Serving, film: str
) -> None:
    lines = served.get(f"/api/v1/videos/{film}/lines")["items"]
    line = next(one for one in lines if "country" in one["text"])
    number = next(n for n, word in enumerate(line["words"]) if "country" in word[0])
    page = ready(opened(served, f"/videos/{film}?q=country"))
    marked = page.locator(f"#l{line['start_us']} mark").first
    expect(marked).to_have_text("country")
    page.wait_for_selector(".transcript.playable")
    marked.click()
    until(page, f"Math.abs({NOW} * 1e6 - {line['words'][number][1]}) < 200000")
    page.wait_for_selector(f"#l{line['start_us']} mark.now")


def test_the_keys_of_a_player(opened: Open, served: Serving, film: str) -> None:
    page = ready(opened(served, f"/videos/{film}"))
    expect(page.locator("[data-keys]")).to_be_visible()  # keys are heard from now on
    page.keyboard.press("ArrowRight")
    until(page, f"!{FILM}.seeking && 4.99 < {NOW} && {NOW} < 5.19")  # the player may begin a moment into the film
    page.keyboard.press(".")
    until(page, f"5.2 < {NOW} && {NOW} < 5.4")  # five pictures a second
    page.keyboard.press(",")
    until(page, f"5 < {NOW} && {NOW} < 5.2")
    page.keyboard.press("i")
    expect(page.locator("[data-in]")).to_have_value("0:05.000")
    page.set_viewport_size({"width": 390, "height": 844})  # a phone has no keys
    page.get_by_role("button", name="End here").click()
    expect(page.locator("[data-out]")).to_have_value("0:05.001")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.keyboard.press("l")
    page.keyboard.press("j")
    page.keyboard.press(">")
    assert page.evaluate(f"{FILM}.playbackRate") == 1.25
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_label("Search")).to_be_focused()


def test_everything_can_be_reached_by_tab(opened: Open, served: Serving, film: str) -> None:
    page = ready(opened(served, f"/videos/{film}"))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.dataset.do ?? document.activeElement.id ?? ''"))
    assert {"play", "forward", "captions", "boxes", "tab-said"} <= seen


def test_tabs_hold_what_is_known(opened: Open, served: Serving, film: str) -> None:
    page = ready(opened(served, f"/videos/{film}"))
    page.get_by_role("tab", name="Objects").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("person")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="People")).to_be_focused()
    person = served.get("/api/v1/people")[0]["id"]
    expect(page.get_by_role("tabpanel")).to_contain_text(f"Person {person[-4:]}")
    page.get_by_role("link", name="Name this person").first.click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()


def test_boxes_lie_over_the_picture(opened: Open, served: Serving, film: str) -> None:
    page = ready(opened(served, f"/videos/{film}?t=4"))
    page.get_by_role("button", name="Boxes").click()
    page.wait_for_selector(".boxes .box")
    inside = page.evaluate("""[...document.querySelectorAll('.boxes .box')].every((box) => {
        const [a, b] = [box.getBoundingClientRect(), document.querySelector('video').getBoundingClientRect()];
        return a.left >= b.left - 2 && a.right <= b.right + 2 && a.top >= b.top - 2 && a.bottom <= b.bottom + 2; })""")
    assert inside


def test_a_correction_is_kept(opened: Open, served: Serving, film: str) -> None:
    page = ready(opened(served, f"/videos/{film}"))
    page.get_by_role("button", name="Captions").click()
    line = page.locator(".transcript li").first
    line.hover()
    line.get_by_role("link", name="Correct this line").click()
    line.get_by_label("Transcript line").fill("And so, my fellow <b>Americans</b>: ask not")
    line.get_by_role("button", name="Save").click()
    expect(line.locator(".badge")).to_have_text("edited")
    until(page, f"[...{FILM}.textTracks[0].cues ?? []].some((cue) => cue.text.includes('&lt;b'))")
    page.reload()
    expect(line.locator("[data-text]")).to_have_text("And so, my fellow <b>Americans</b>: ask not")
    assert page.locator(".transcript b").count() == 0
    assert "<b>Americans</b>" in served.http.get(f"/api/v1/videos/{film}/exports/txt").text
    line.get_by_role("button", name="Undo the correction").click()
    expect(page.locator(".transcript li").first).not_to_contain_text("<b>")


def test_text_that_was_read_is_only_text(opened: Open, served: Serving, film: str) -> None:
    videos = served.library.videos
    line = videos.lines(film, "text")[0]
    evil = "</textarea><script>document.title=1</script>"
    videos.correct(videos.get(film), line.span.start_us, line.span.end_us, evil, "text")
    page = ready(opened(served, f"/videos/{film}"))
    page.get_by_role("tab", name="Text").click()
    expect(page.get_by_role("tabpanel")).to_contain_text(evil)
    assert page.locator("main script").count() == 0
    assert page.title() == f"{NAME} · rushes"


def test_lanes_grow_while_a_job_runs(opened: Open, served: Serving, film: str, footage: Path) -> None:
    page = ready(opened(served, f"/videos/{film}"))
    page.get_by_role("button", name="Zoom in").click()
    videos = served.library.videos
    line = videos.lines(film, "text")[0]
    said = videos.correct(videos.get(film), line.span.start_us, line.span.end_us, "new to this page", "text")
    wanted = JobRequest(only=("shots",), profile="fast")
    assert served.library.run([footage / NAME], wanted, beside=False).exit_code == 0
    expect(page.locator(".lane.text")).to_contain_text("new to this page")
    assert page.evaluate("document.querySelector('.track').style.getPropertyValue('--zoom')") == "2"
    videos.undo_correction(said.id)


def test_a_selection_is_cut_and_downloaded(opened: Open, served: Serving, film: str, tmp_path: Path) -> None:
    page = ready(opened(served, f"/videos/{film}"))
    lane = page.locator(".lane.speech .lane-spans")
    box = lane.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 4)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 4, steps=5)
    page.mouse.up()
    expect(page.locator("[data-selection-length]")).to_contain_text("frames")
    page.get_by_label("Subtitles").select_option("burnt")
    page.get_by_role("button", name="Clip", exact=True).click()
    expect(page.locator("[data-toasts]")).to_contain_text("Cutting the clip")
    assert served.library.work(slots=1, until_idle=True) == 0
    with page.expect_download() as download:
        page.locator("[data-toasts]").get_by_role("link", name="Download").click()
    assert download.value.suggested_filename.startswith("The ")
    download.value.save_as(tmp_path / "clip.mp4")
    assert (tmp_path / "clip.mp4").stat().st_size > 1000


def test_a_film_in_3d_plays_in_place_of_the_flat_one(opened: Open, served: Serving, film: str, footage: Path) -> None:
    blobs = served.library.home.blobs
    blobs.publish(f"videos/3d/{film}/half-sbs.mp4", "me", blobs.put("me", footage / NAME).sha256)
    page = ready(opened(served, f"/videos/{film}?t=3"))
    page.get_by_role("tab", name="3D").click()
    page.get_by_role("link", name="Watch").click()
    page.wait_for_url("**view=half-sbs**")
    ready(page)
    expect(page.get_by_role("tabpanel")).to_contain_text("playing")
    assert page.evaluate("document.querySelector('video').currentSrc").endswith("/half-sbs.mp4")
    page.get_by_role("button", name="Play", exact=True).click()
    until(page, f"{NOW} > 3.2")
    assert grave(page) == []
    page.get_by_role("link", name="Leave 3D").click()
    ready(page)
    expect(page.get_by_role("button", name="Boxes")).to_be_visible()


def test_without_script_a_line_is_corrected_by_a_form(opened: Open, served: Serving, film: str) -> None:
    page = opened(served, f"/videos/{film}", java_script_enabled=False)
    page.get_by_role("link", name="Correct this line").first.click()
    page.get_by_label("Transcript line").fill("said by a form")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-transcript]")).to_contain_text("said by a form")
    page.get_by_role("button", name="Undo the correction").click()
    expect(page.locator("[data-transcript]")).not_to_contain_text("said by a form")


def test_an_export_that_cannot_be_made_says_why_on_a_page(
    opened: Open, served: Serving, film: str, complaints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object) -> bytes:
        raise Refused("an EDL needs a constant frame rate", "Export OTIO instead.")

    monkeypatch.setitem(KINDS, "edl", refuse)
    page = ready(opened(served, f"/videos/{film}"))
    page.locator("summary", has_text="Export").click()
    page.get_by_role("link", name="Shots, EDL").click()
    expect(page.locator("main")).to_contain_text("An EDL needs a constant frame rate")
    expect(page.locator("main")).to_contain_text("Export OTIO instead.")
    complaints.clear()  # a browser tells the status of a page


def test_a_menu_closes_on_escape_outside_and_when_something_is_chosen(opened: Open, served: Serving, film: str) -> None:
    page = ready(opened(served, f"/videos/{film}"))
    menu, opener = page.locator("details.menu").first, page.locator("summary", has_text="Export")
    opener.click()
    expect(menu).to_have_attribute("open", "")
    page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(opener).to_be_focused()
    opener.click()
    page.locator("h1").click()
    expect(menu).not_to_have_attribute("open", "")
    opener.click()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Subtitles, SRT").click()
    assert saved.value.suggested_filename.endswith(".srt")
    expect(menu).not_to_have_attribute("open", "")


def test_space_pauses_wherever_the_focus_is_but_not_in_a_field(opened: Open, served: Serving, film: str) -> None:
    page = ready(opened(served, f"/videos/{film}"))
    expect(page.locator("[data-keys]")).to_be_visible()
    for place in (
        page.get_by_role("tab", name="Objects"),
        page.locator("[data-copy]"),
        page.locator("[data-position]"),
    ):
        place.focus()
        page.keyboard.press("Space")
        until(page, f"!{FILM}.paused")
        page.keyboard.press("Space")
        until(page, f"{FILM}.paused")
    expect(page.get_by_role("tab", name="Transcript")).to_have_attribute("aria-selected", "true")
    page.get_by_label("Find in transcript").focus()
    page.keyboard.type("a b")
    expect(page.get_by_label("Find in transcript")).to_have_value("a b")
    assert page.evaluate(f"{FILM}.paused")


def test_what_is_not_in_the_transcript_is_said_so(opened: Open, served: Serving, film: str) -> None:
    page = ready(opened(served, f"/videos/{film}"))
    page.get_by_label("Find in transcript").fill("zebra")
    expect(page.locator("[data-find-none]")).to_have_text("Nothing in this transcript contains “zebra”.")
    page.get_by_label("Find in transcript").fill("country")
    expect(page.locator("[data-find-none]")).to_be_hidden()


def test_a_copied_link_keeps_the_selection(opened: Open, served: Serving, film: str) -> None:
    page = ready(opened(served, f"/videos/{film}", permissions=["clipboard-read", "clipboard-write"]))
    for field in ("[data-in]", "[data-out]"):
        assert page.locator(field).get_attribute("placeholder") == "not set"
    page.locator("[data-in]").fill("0:02.5")
    page.locator("[data-out]").fill("0:04")
    page.locator("[data-out]").press("Tab")
    page.get_by_role("button", name="Copy link").click()
    until(page, "navigator.clipboard.readText().then((text) => text.includes('end='))")
    other = ready(opened(served, page.evaluate("navigator.clipboard.readText()")))
    expect(other.locator("[data-in]")).to_have_value("0:02.500")
    expect(other.locator("[data-out]")).to_have_value("0:04.000")


def test_on_a_phone_the_controls_of_a_clip_and_the_shots_fit(opened: Open, served: Serving, film: str) -> None:
    page = ready(opened(served, f"/videos/{film}", width=390))
    page.get_by_role("tab", name="Shots").click()
    places = "[...document.querySelectorAll('[data-selection] > *, #shots li')]"
    boxes = page.evaluate(f"{places}.map((one) => one.getBoundingClientRect().toJSON()).filter((box) => box.width)")
    assert len(boxes) > 10
    assert all(box["left"] >= 16 and box["right"] <= 374 for box in boxes)


def test_after_a_3d_preview_the_page_shows_what_there_is(opened: Open, empty: Serving, tmp_path: Path) -> None:
    film, library = draw(tmp_path / "plain.mp4", 2), empty.library
    assert library.run([film], JobRequest(only=("probe",)), beside=False).exit_code == 0
    (video,) = library.videos.page()[0]
    strip = library.home.blobs.put("me", (MEDIA / "coffee.jpg").read_bytes())
    library.home.blobs.publish(f"videos/3d/{video.id}/preview-anaglyph-dubois.jpg", "me", strip.sha256)
    page = opened(empty, f"/videos/{video.id}#in-3d")
    expect(page.locator(".unready")).to_contain_text("Only a 3D preview was made of this video")
    expect(page.locator("#in-3d figcaption")).to_have_text("Preview, red and cyan glasses")
    expect(page.locator("#in-3d figure img")).to_be_visible()
    page.get_by_role("button", name="Process this video").click()
    expect(page.get_by_text("Job started.")).to_be_visible()
