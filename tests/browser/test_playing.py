"""What was made is played: every picture carries its number, so that the time a browser shows it at can be checked."""

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise

import av
import numpy as np
import pytest
from playwright.sync_api import Page, expect

from rushes.index.port import Video
from rushes.library import JobRequest, Library
from rushes.media.reading.nal import ParameterSets
from tests.acceptance.conftest import VOICE, draw
from tests.api.kit import Serving, serving
from tests.browser.conftest import Open
from tests.browser.page_checks import until

RATE, SECONDS, SIDE = 10, 12, 24  # frames per second; of the film; pixels of a square
NEAR = 0.005  # seconds

WATCH = """(video) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  canvas.canvas.width = 192; canvas.canvas.height = 108;
  window.number = () => {
    canvas.drawImage(video, 0, 0, 192, 108);
    const bright = (bit) => canvas.getImageData(24 * bit + 12, 12, 1, 1).data[1] > 126;
    return [...Array(8).keys()].reduce((sum, bit) => sum + (bright(bit) ? 1 << bit : 0), 0);
  };
  let last = -1;
  const watch = () => video.requestVideoFrameCallback((_, at) => { last = at.mediaTime; watch(); });
  watch();
  const comes = async (moment) => {  // a busy machine shows a picture late; after so long it never will
    const over = performance.now() + 10_000;
    while (Math.abs(last - moment) > 0.005 && performance.now() < over) await new Promise((go) => setTimeout(go, 20));
  };
  window.shown = async (seconds, moment) => {
    const there = new Promise((done) => video.addEventListener("seeked", done, { once: true }));
    video.currentTime = seconds;
    await there;
    await comes(moment);
    return [last, number()];
  };
  window.play = async (speed, end) => {
    const seen = [];
    const see = () => video.requestVideoFrameCallback((_, at) => { seen.push(at.mediaTime); see(); });
    see();
    const ended = new Promise((done, failed) => { video.onended = done; video.onerror = () => failed(video.error); });
    video.playbackRate = speed;
    await video.play();
    await ended;
    await comes(end);
    return seen;
  };
}"""

SHOW = """(url) => {
  const video = document.body.appendChild(document.createElement("video"));
  [video.id, video.src] = ["clip", url];
}"""


def numbered(n: int, rate: int, size: tuple[int, int]) -> np.ndarray:
    """A grey that moves, with the number of the picture as black and white squares."""
    width, height = size
    plane = np.add.outer(np.arange(height), np.arange(width) + 3 * n) % 200 + 20
    for bit in range(8):
        plane[:SIDE, bit * SIDE : (bit + 1) * SIDE] = 235 if n >> bit & 1 else 16
    return np.repeat(plane[:, :, None], 3, axis=2).astype(np.uint8)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server over a film of three chunks."""
    place = tmp_path_factory.mktemp("numbers")
    film = draw(place / "film.mp4", SECONDS, (192, 108), RATE, VOICE, numbered)
    with Library(place / ".rushes") as library:
        assert library.run([film], JobRequest(only=("playlist",), chunk="5"), beside=False).exit_code == 0
    with serving(place / ".rushes") as running:
        yield running
    shutil.rmtree(place)


def watched(page: Page, selector: str) -> Page:
    until(page, f"document.querySelector('{selector}').readyState >= 2")
    page.evaluate(f"({WATCH})(document.querySelector('{selector}'))")
    return page


TRIES = 3  # a busy machine may leave out a picture, even the last one


def plays(page: Page, frames: int) -> bool:
    """Whether it plays to its end, each picture at a time of the film."""
    return any(_played(page, frames) for _ in range(TRIES))


def _played(page: Page, frames: int) -> bool:
    moments: list[float] = page.evaluate("(end) => play(3, end)", (frames - 1) / RATE)
    assert all(abs(t * RATE - round(t * RATE)) < NEAR * RATE for t in moments), moments
    assert moments == sorted(moments)
    return round(moments[-1] * RATE) == frames - 1


def entered(page: Page, number: int, first: int = 0) -> bool:
    """Whether a moment within a picture, not so late that a browser prefers the next, shows that picture."""
    return any(_entered(page, number, (number - first) / RATE) for _ in range(TRIES))


def _entered(page: Page, number: int, wanted: float) -> bool:
    moment, shown = page.evaluate("([at, wanted]) => shown(at, wanted)", [wanted + 0.3 / RATE, wanted])
    return bool(shown == number and abs(moment - wanted) < NEAR)


def bounds(numbers: Serving, video: Video) -> list[float]:
    text = numbers.http.get(f"/files/videos/proxy/{video.id}/video.m3u8").text
    lasting = [float(found) for found in re.findall(r"EXTINF:([\d.]+)", text)]
    return [sum(lasting[:n]) for n in range(len(lasting) + 1)]


def test_the_proxy_plays_from_the_first_frame_to_the_last_and_can_be_entered_in_every_segment(
    opened: Open, numbers: Serving
) -> None:
    (video,) = numbers.library.videos.page()[0]
    page = watched(opened(numbers, f"/videos/{video.id}"), "video")
    assert page.evaluate("number()") == 0
    assert plays(page, RATE * SECONDS)
    assert page.evaluate("document.querySelector('video').getVideoPlaybackQuality().totalVideoFrames") >= RATE * SECONDS
    marks = bounds(numbers, video)
    assert len(marks) > 4
    for start, end in reversed(list(pairwise(marks))):
        # the first three packets of a chunk last a third of their time in its file: Chromium passes by what is over
        for number in (*(start * RATE + n for n in range(4)), (start + end) * RATE // 2, end * RATE - 1):
            assert entered(page, round(number)), number


def test_a_clip_of_two_encoders_plays_to_its_end(opened: Open, numbers: Serving) -> None:
    (video,) = numbers.library.videos.page()[0]
    clip = numbers.library.clip(video.id, 1_300_000, 7_400_000, 0)
    with av.open(clip.path) as made:
        assert len(ParameterSets.of(made.streams.video[0].codec_context.extradata or b"").sps) == 2
    page = opened(numbers, "/")
    page.evaluate(SHOW, f"/files/videos/clips/{video.id}/{clip.id}.mp4")
    assert plays(watched(page, "#clip"), 61)
    for number in (73, 70, 69, 45, 20, 19, 13):  # on both sides of both seams
        assert entered(page, number, 13), number


def test_a_missing_file_is_told_in_the_player_and_repaired_there(
    opened: Open, numbers: Serving, complaints: list[str]
) -> None:
    (video,) = numbers.library.videos.page()[0]
    sound = numbers.library.folder / "files" / "videos" / "proxy" / video.id / "sound.mp4"
    sound.unlink()
    page = opened(numbers, f"/videos/{video.id}")
    expect(page.locator(".unready")).to_have_text("This video cannot be played: sound.mp4 is missing.")
    expect(page.get_by_role("alert")).to_contain_text("1 file of this video is missing: sound.mp4.")
    page.get_by_role("button", name="Repair").click()
    expect(page.get_by_text("Repaired.")).to_be_visible()
    expect(page.locator("video")).to_have_count(1)
    assert sound.exists()


def test_a_file_that_goes_while_the_page_is_open_is_told_as_well(
    opened: Open, numbers: Serving, complaints: list[str]
) -> None:
    (video,) = numbers.library.videos.page()[0]
    folder = numbers.library.folder / "files" / "videos" / "proxy" / video.id
    page = opened(numbers)
    page.route("**/sound.mp4", lambda route: route.fulfill(status=404))
    page.goto(f"/videos/{video.id}")
    expect(page.get_by_role("alert")).to_contain_text("This video cannot be played here")
    expect(page.get_by_role("button", name="Repair")).to_be_visible()
    assert (folder / "sound.mp4").exists()
    complaints[:] = [one for one in complaints if "404" not in one]
