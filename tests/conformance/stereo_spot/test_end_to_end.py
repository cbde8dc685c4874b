"""A film from its upload to the page that plays it in 3D, on every set-up, with a worker that is killed on the way."""

import json
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

from rushes.home import Home
from tests.acceptance.conftest import draw, sights
from tests.api.kit import DEADLINE, PLAIN, wait_for
from tests.conformance.conftest import Site, Sites, clear_after

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


def cancel(site: Site, jobs: list[str]) -> None:
    """So that no worker of another test takes them."""
    assert {site.http.post(f"/api/v1/jobs/{job}/cancel").status_code for job in jobs} == {200}


def frames_of(film: bytes) -> int:
    with av.open(BytesIO(film), "r") as found:
        return sum(1 for _ in found.decode(video=0))


def read(home: Home, name: str) -> bytes:
    part = home.blobs.read(name)
    assert part
    return part.data


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
    cancel(site, jobs())


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


@pytest.mark.parametrize("setup", SETUPS[1:])
def test_a_larger_film_goes_in_parts_to_the_same_key(setup: str, sites: Sites, film: Path) -> None:
    """Large user uploads: beyond a single PUT the film comes by multipart upload; the key remains.

    Where: uploads/service.py, surfaces/api/uploads.py
    """
    site, data = sites(f"stereo-{setup[:3]}", setup, workers=0, chunk_seconds="5"), film.read_bytes()
    answer = site.http.post("/jobs", data={"mode": "tb"}, headers=JSON)
    at, job = answer.headers["location"], answer.json()["job_id"]
    asked = {"Upload-Length": str(len(data))}
    (part,) = site.http.post(f"{at}/parts", headers=asked).json()["parts"]
    assert httpx.put(part["url"], content=data[part["start"] : part["end"]], verify=PLAIN).status_code == 200
    said = site.http.post(f"{at}/parts", headers=asked).json()
    assert (said["parts"], said["upload"]["state"]) == ([], "arrived")
    with site.library() as library:
        assert list(library.home.blobs.keys(f"input/{job}/")) == [f"input/{job}/source.mp4"]
    cancel(site, [job])


def test_what_conversions_took_is_told_by_size_and_day(made: Made) -> None:
    """Observability: SegmentConversionDurationSeconds and ConversionSecondsPerMb by size, and a history for estimates.

    Where: estimates/conversions.py, surfaces/cli/commands/stereo.py
    """
    home = made("sqlite").site.home
    argv = [sys.executable, "-m", "rushes", "--home", str(home)]
    told = json.loads(subprocess.run([*argv, "--json", "rates"], check=True, capture_output=True, text=True).stdout)
    names = {metric["name"] for metric in told["metrics"]}
    assert names == {"SegmentConversionDurationSeconds", "ConversionSecondsPerMb"}
    assert {metric["namespace"] for metric in told["metrics"]} == {"StereoSpot/Conversion"}
    assert {metric["count"] for metric in told["metrics"]} == {2}
    assert {tuple(metric["dimensions"].values()) for metric in told["metrics"]} == {("local", "0-5")}
    (day,) = told["history"]
    assert set(day) == {"cloud", "backend", "instance_type", "avg_duration_sec", "eta_seconds_per_mb", "date"}
    assert day["eta_seconds_per_mb"] > 0
    table = subprocess.run([*argv, "rates", "--markdown"], check=True, capture_output=True, text=True).stdout
    assert table.startswith("| cloud | backend | instance type | avg_duration_sec | eta_seconds_per_mb | date |")


@pytest.mark.parametrize("setup", SETUPS)
def test_segments_lie_beside_the_film_for_a_day(setup: str, made: Made, tmp_path: Path) -> None:
    """Storage and key layout: `segments/{job_id}/{i:05d}_{n:05d}_{mode}.mp4` in, `jobs/{job_id}/segments/{i}.mp4` out.

    Both for one day; `final.mp4` stays.

    Where: domain/stereo_keys.py, stages/source_segments.py, stages/join.py, jobs/maintenance/deletion.py
    """
    client = made(setup)
    film, segments = f"jobs/{client.job}/final.mp4", [f"jobs/{client.job}/segments/{n}.mp4" for n in range(2)]
    given = [f"segments/{client.job}/{n:05d}_00002_sbs.mp4" for n in range(2)]
    with client.site.library() as library:
        home = library.home
        assert sum(frames_of(read(home, name)) for name in given) == FRAMES
        assert all(client.site.http.head(f"/files/{name}").status_code == 200 for name in (film, *segments, *given))
        for hours, left in ((23, [film, *segments, *given]), (25, [film])):
            clear_after(home, tmp_path, hours=hours)
            found = [*home.blobs.keys(f"jobs/{client.job}/"), *home.blobs.keys(f"segments/{client.job}/")]
            assert sorted(found) == left
