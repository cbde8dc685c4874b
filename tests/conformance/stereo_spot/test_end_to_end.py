"""A film from its upload to the page that plays it in 3D, on every set-up, with a worker that is killed on the way."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import av
import httpx
import numpy as np
import pytest

from tests.acceptance.conftest import draw, sights
from tests.api.kit import DEADLINE, PLAIN, wait_for
from tests.conformance.conftest import Site, Sites

JSON = {"Accept": "application/json"}
SETUPS = ("sqlite", "postgres+valkey+s3", "aws")
FRAMES, SIZE = 28, (160, 90)


class Client:
    """What the document's text alone tells a program to do."""

    def __init__(self, site: Site, mode: str) -> None:
        self.site, self.mode = site, mode
        answer = site.http.post("/jobs", data={"mode": mode}, headers=JSON).json()
        self.job, self.upload_url = answer["job_id"], answer["upload_url"]

    def upload(self, film: Path) -> None:
        answer = httpx.put(self.upload_url, content=film.read_bytes(), timeout=DEADLINE, verify=PLAIN)
        assert answer.status_code in (200, 204), answer.text

    def awaits_its_file(self) -> bool:
        (why,) = self.site.http.get(f"/api/v1/jobs/{self.job}/why").json()
        return str(why["reason"]) == "its file has not arrived"

    def look(self) -> dict[str, object]:
        found: dict[str, object] = self.site.http.get(f"/jobs/{self.job}", headers=JSON).json()
        return found


Made = Callable[[str], Client]


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven seconds in two segments."""
    return draw(tmp_path_factory.mktemp("stereo") / "walk.mp4", 7, SIZE, rate=4, paint=sights)


@pytest.fixture(scope="session")
def made(sites: Sites, film: Path) -> Made:
    """A film that was made in 3D on a set-up, though its worker was killed in the middle."""
    known: dict[str, Client] = {}

    def make(setup: str) -> Client:
        if setup not in known:
            site = sites(f"stereo-{setup[:3]}", setup, workers=0, chunk_seconds="5")
            client = known[setup] = Client(site, "sbs")
            assert client.look()["status"] == "created"
            client.upload(film)
            wait_for(lambda: not client.awaits_its_file(), "the file was never seen")
            armed = {"RUSHES_CRASH": "ledger.complete:before#7", "RUSHES_CRASH_COUNT": str(site.home.parent / "count")}
            assert worker(site, **armed).wait(DEADLINE) == -signal.SIGKILL
            assert client.look()["status"] == "chunking_complete"
            second = worker(site)
            site.wait_for_job(client.job)
            second.send_signal(signal.SIGTERM)
            second.wait(DEADLINE)
        return known[setup]

    return make


def worker(site: Site, **env: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "rushes", "--home", str(site.home), "worker", "--slots", "1"]
    return subprocess.Popen(argv, env=os.environ | env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("setup", SETUPS)
def test_an_uploaded_film_is_made_in_3d_though_a_worker_is_killed(setup: str, made: Made) -> None:
    """End-to-end job pipeline: an upload is cut, worked on in segments, put together and ready to play.

    Where: stages/stereo.py, stages/join.py
    """
    job = made(setup).look()
    assert (job["status"], job["mode"], job["total_segments"]) == ("completed", "sbs", 2)
    assert str(job["created_at"]) < str(job["completed_at"])


@pytest.mark.parametrize("setup", SETUPS)
def test_the_playback_address_leads_to_a_film_with_a_view_for_each_eye(setup: str, made: Made) -> None:
    """Web UI, video playback: `GET /jobs/{job_id}/play` leads to the film, on S3 by a presigned address.

    Where: surfaces/api/documents/stereo_spot.py, blobs/s3/multipart.py
    """
    client = made(setup)
    answer = client.site.http.get(f"/jobs/{client.job}/play")
    assert answer.status_code == 307
    there = httpx.URL(client.site.url).join(answer.headers["location"])
    assert ("X-Amz-Signature" in str(there)) is (setup != "sqlite")
    film = httpx.get(there, timeout=DEADLINE, verify=PLAIN)
    assert film.status_code == 200
    with av.open(BytesIO(film.content), "r") as found:
        frames = [frame.to_ndarray(format="gray") for frame in found.decode(video=0)]
    assert (len(frames), frames[0].shape) == (FRAMES, SIZE[::-1])
    left, right = np.hsplit(frames[12].astype(int), 2)  # a face
    assert np.abs(left - right).mean() > 1.0, "both eyes see the same"
    assert np.abs(left - right).mean() < 40.0, "the eyes see different films"


@pytest.mark.parametrize("setup", SETUPS)
def test_a_part_of_the_film_can_be_asked_for(setup: str, made: Made) -> None:
    """Web UI, video playback: the player streams from that address, so it answers ranges.

    Where: surfaces/api/media.py
    """
    client = made(setup)
    there = client.site.http.get(f"/jobs/{client.job}/play").headers["location"]
    answer = httpx.get(httpx.URL(client.site.url).join(there), headers={"Range": "bytes=4-7"}, verify=PLAIN)
    assert (answer.status_code, answer.content) == (206, b"ftyp")


@pytest.mark.parametrize("setup", SETUPS)
def test_the_download_has_a_file_name(setup: str, made: Made) -> None:
    """Web UI, video playback: the download is an attachment (`ResponseContentDisposition` on S3) with a name.

    Where: surfaces/api/documents/stereo_spot.py
    """
    client = made(setup)
    answer = httpx.get(f"{client.site.url}/jobs/{client.job}/download", follow_redirects=True, verify=PLAIN)
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith('attachment; filename="source.3D.HSBS.mp4"')


@pytest.mark.parametrize("setup", SETUPS)
def test_segments_and_film_lie_under_the_documents_keys(setup: str, made: Made) -> None:
    """Storage and key layout: outputs are `jobs/{job_id}/segments/{segment_index}.mp4` and `jobs/{job_id}/final.mp4`.

    Where: domain/stereo_keys.py, stages/join.py
    """
    client = made(setup)
    names = [f"jobs/{client.job}/final.mp4", *(f"jobs/{client.job}/segments/{n}.mp4" for n in range(2))]
    with client.site.library() as library:
        assert sorted(library.home.blobs.keys(f"jobs/{client.job}/")) == sorted(names)


@pytest.mark.parametrize("setup", SETUPS[1:])
def test_another_upload_to_the_same_key_starts_the_work_again(setup: str, sites: Sites, film: Path) -> None:
    """Risks, multiple uploads: another file at `input/{job_id}/source.mp4` is processed again, the same one is not.

    Where: jobs/arrivals.py, uploads/bucket_puts.py
    """
    site = sites(f"stereo-{setup[:3]}", setup, workers=0, chunk_seconds="5")
    client = Client(site, "anaglyph")
    assert f"/input/{client.job}/source.mp4?" in client.upload_url

    def jobs() -> list[str]:
        found = site.http.get("/jobs", headers=JSON).json()["items"]
        return [job["job_id"] for job in found if job["mode"] == "anaglyph"]

    client.upload(film)
    wait_for(lambda: not client.awaits_its_file(), "the file was never seen")
    client.upload(film)
    with site.library() as library:
        library.puts.look(old=True)
    assert jobs() == [client.job]
    other = film.with_name("other.mp4")
    other.write_bytes(film.read_bytes() + bytes(8))
    client.upload(other)
    wait_for(lambda: len(jobs()) == 2, "the second film was never seen")
    assert jobs()[1] == client.job


@pytest.mark.parametrize("setup", SETUPS)
def test_the_page_of_a_finished_job_has_a_player_and_a_download(setup: str, made: Made) -> None:
    """Web UI, routes: `GET /jobs/{job_id}` of a finished job embeds an HTML5 player and a separate download button.

    Where: surfaces/web/pages/jobs.py
    """
    client = made(setup)
    page = client.site.http.get(f"/jobs/{client.job}", headers={"Accept": "text/html"}).text
    assert f'src="/jobs/{client.job}/play"' in page
    assert f'href="/jobs/{client.job}/download"' in page
    assert 'type="file"' not in page
