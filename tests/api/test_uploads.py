"""Uploads: in parts, cut in the middle, resumed, checked while they come; the job is there first."""

import base64
import hashlib
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio import CancelScope
from anyio.lowlevel import checkpoint

from rushes.blobs.documents import read_document
from rushes.bucket.location import BucketLocation
from rushes.domain.task import TaskState
from rushes.home_location import bucket_home
from rushes.library import JobRequest, Library
from rushes.surfaces.api.uploads import _writing
from rushes.uploads.limits import unsent
from rushes.uploads.service import Uploads
from rushes.uploads.writer import UploadWriter
from tests.api.kit import Serving, serving, wait_for
from tests.google_storage import google_storage

PART = "application/offset+octet-stream"


def begin(server: Serving, data: bytes, **said: str) -> tuple[str, str]:
    """The place of a new upload, and its job."""
    said = {"filename": "holiday.mp4", "recipe": "subtitles"} | said
    metadata = ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in said.items())
    headers = {"Upload-Length": str(len(data)), "Upload-Metadata": metadata, "Tus-Resumable": "1.0.0"}
    answer = server.http.post("/api/v1/uploads", headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"], answer.headers["rushes-job"]


def send(server: Serving, place: str, offset: int, data: bytes, **more: str) -> httpx.Response:
    headers = {"Upload-Offset": str(offset), "Content-Type": PART, **more}
    return server.http.patch(place, content=data, headers=headers)


def offset(server: Serving, place: str) -> int:
    return int(server.http.head(place).headers["upload-offset"])


def probe_state(server: Serving, job: str) -> TaskState:
    return server.ledger.tasks(job).rows[0].state


def test_a_job_waits_for_its_file_and_starts_when_it_is_there(server: Serving, film: Path) -> None:
    data = film.read_bytes()
    place, job = begin(server, data)
    assert server.get(f"/api/v1/jobs/{job}")["state"] == "created"
    assert server.get(f"/api/v1/jobs/{job}/why")[0]["reason"] == "its file has not arrived"
    half = len(data) // 2
    assert send(server, place, 0, data[:half]).headers["upload-offset"] == str(half)
    assert probe_state(server, job) is TaskState.WAITING
    assert send(server, place, half, data[half:]).status_code == 204
    assert probe_state(server, job) is TaskState.READY
    assert server.get(place)["state"] == "arrived"
    assert server.library.work(slots=1, until_idle=True) == 0
    (video,) = server.get("/api/v1/videos")["items"]
    assert video["name"] == "holiday.mp4"
    assert video["sha256"] == hashlib.sha256(data).hexdigest()


def test_an_upload_cut_in_the_middle_goes_on_where_it_was_even_after_a_restart(home: Path) -> None:
    data = b"\0\0\0\x18ftypmp42" + bytes(range(256)) * 12_000
    with serving(home) as server:
        place, job = begin(server, data, sha256=hashlib.sha256(data).hexdigest())
        url = httpx.URL(server.url)
        head = (
            f"PATCH {place} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {PART}\r\nUpload-Offset: 0\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        with socket.create_connection((url.host, url.port or 80)) as line:
            line.sendall(head.encode() + data[:2_500_000])
            wait_for(lambda: offset(server, place) > 1_000_000, "nothing was kept before the cut")
    with serving(home) as server:
        there = offset(server, place)
        assert 1_000_000 < there <= 2_500_000
        assert send(server, place, there, data[there:]).status_code == 204
        assert server.get(place)["state"] == "arrived"
        assert probe_state(server, job) is TaskState.READY


def test_a_kill_between_the_last_byte_and_the_ledger_loses_nothing(
    home: Path, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = film.read_bytes()
    with serving(home) as server:
        place, job = begin(server, data)
        monkeypatch.setattr(type(server.library.uploads), "tell", type(server.library.uploads).get)
        send(server, place, 0, data)
        assert probe_state(server, job) is TaskState.WAITING
    monkeypatch.undo()
    with serving(home) as server:
        assert probe_state(server, job) is TaskState.READY


def test_a_part_at_the_wrong_place_is_told_the_right_one(server: Serving) -> None:
    data = b"\0\0\0\x18ftypmp42" + bytes(100)
    place, _ = begin(server, data)
    assert send(server, place, 0, data[:50]).status_code == 204
    wrong = send(server, place, 0, data)
    assert (wrong.status_code, wrong.headers["upload-offset"]) == (409, "50")
    assert send(server, place, 50, data[50:] + b"more").status_code == 413
    assert server.http.patch(place, content=b"x", headers={"Upload-Offset": "50"}).status_code == 415
    assert offset(server, place) == 50


def test_a_part_with_another_checksum_is_not_kept(server: Serving) -> None:
    data = b"\0\0\0\x18ftypmp42" + bytes(100)
    place, _ = begin(server, data)
    right = "sha256 " + base64.b64encode(hashlib.sha256(data[:60]).digest()).decode()
    other = data[:59] + b"x"
    assert send(server, place, 0, other, **{"Upload-Checksum": right}).status_code == 460
    assert offset(server, place) == 0
    assert send(server, place, 0, data[:60], **{"Upload-Checksum": right}).status_code == 204
    assert offset(server, place) == 60


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"#EXTM3U\n#EXTINF:1,\n/etc/passwd\n", "playlist"), (b"ffconcat version 1.0\nfile a", "list of files"),
     (b"<svg onload=alert(1)>", "text"), (b"%PDF-1.7\n\xff\xfe", "PDF"), (b"PK\x03\x04\0\0\xff", "archive"),
     (b"MZ\x90\0", "program"), (bytes(200), "zeros")],
)  # fmt: skip
def test_what_is_no_footage_is_refused_while_it_comes(server: Serving, data: bytes, why: str) -> None:
    place, job = begin(server, data)
    answer = send(server, place, 0, data)
    assert answer.status_code == 400
    assert why in answer.json()["detail"]
    assert server.http.get(f"/api/v1/jobs/{job}").status_code == 404, "no job is left of it"
    assert server.http.head(place).status_code == 410
    assert not list((server.library.home.folder / "uploads").rglob("*.part"))


def test_other_bytes_than_promised_are_refused(server: Serving, film: Path) -> None:
    data = film.read_bytes()
    place, job = begin(server, data, sha256="0" * 64)
    assert "announced" in send(server, place, 0, data).json()["detail"]
    assert server.http.get(f"/api/v1/jobs/{job}").status_code == 404, "no job is left of it"


def test_what_another_process_took_back_and_wrote_anew_is_hashed_as_it_is(home: Path, film: Path) -> None:
    data = film.read_bytes()
    with Library(home) as library:
        one, other = Uploads(library.home), Uploads(library.home)
        upload = one.begin("a.mp4", len(data), JobRequest(only=("probe",)), hashlib.sha256(data).hexdigest())
        with one.writing(upload) as part:
            part.mark_unverified()
            part.write(data[:100] + b"from a bad line")  # and cut off before its checksum could be compared
        with other.writing(upload) as part:
            part.write(data[:200])
        with one.writing(upload) as part:
            part.write(data[200:])
            assert part.finish().state == "arrived"


@pytest.mark.parametrize("name", ["../../x<script>.mp4", "/etc/passwd", "..\\..\\x.exe", "a" * 900, "-f", "%d", "\0"])
def test_a_name_is_only_a_label(server: Serving, name: str) -> None:
    place, job = begin(server, b"x" * 10, filename=name)
    uploads = server.library.home.folder / "uploads"
    assert sorted(p.suffix for p in uploads.rglob("*") if p.is_file()) == [".part"]
    assert [p.parent.parent for p in uploads.rglob("*.part")] == [uploads.resolve()]
    label = server.get(f"/api/v1/jobs/{job}")["name"]
    assert not set("/\\\0") & set(label)
    assert server.get(place)["name"] == label


def test_too_much_is_refused_before_a_byte_comes(home: Path) -> None:
    with serving(home, upload_gb=1) as server:
        answer = server.http.post("/api/v1/uploads", headers={"Upload-Length": str(2 * 10**9)})
        assert answer.status_code == 413
        assert server.get("/api/v1/jobs")["items"] == []
        assert server.http.options("/api/v1/uploads").headers["tus-max-size"] == "1000000000"


def test_an_upload_can_be_given_up(server: Serving) -> None:
    place, job = begin(server, b"x" * 10)
    assert server.http.delete(place).status_code == 204
    assert server.http.get(f"/api/v1/jobs/{job}").status_code == 404, "no job is left of it"


def test_what_nobody_goes_on_with_is_given_up_after_a_week(home: Path) -> None:
    with serving(home) as server:
        (old, job), (young, _) = begin(server, b"x" * 10), begin(server, b"x" * 10)
    for part in (home / "uploads" / old.rpartition("/")[2]).iterdir():
        os.utime(part, (0, 0))
    with serving(home) as server:
        assert [server.get(place)["state"] for place in (old, young)] == ["refused", "open"]
        assert server.http.get(f"/api/v1/jobs/{job}").status_code == 404, "no job is left of it"


def test_two_that_write_at_once_do_not_mix(server: Serving, film: Path) -> None:
    data = film.read_bytes()
    place, _ = begin(server, data)
    uploads: Any = server.library.uploads
    with uploads.writing(uploads.get(place.rpartition("/")[2])):
        assert send(server, place, 0, data).status_code == 423
    assert send(server, place, 0, data).status_code == 204


def test_a_request_that_is_given_up_leaves_the_upload_to_the_next_in_a_thread(
    server: Serving, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = begin(server, film.read_bytes())
    uploads: Any = server.library.uploads
    upload, left, sync = uploads.get(place.rpartition("/")[2]), list[str](), UploadWriter.sync

    def noted(part: UploadWriter) -> None:
        left.append(threading.current_thread().name)
        sync(part)

    async def give_up() -> str:
        with CancelScope() as scope:
            async with _writing(uploads, upload) as part:
                part.write(film.read_bytes()[:100])
                scope.cancel()
                await checkpoint()
        return threading.current_thread().name

    monkeypatch.setattr(UploadWriter, "sync", noted)
    with ThreadPoolExecutor(1) as aside:  # a browser's test may have left a loop in this thread
        loop = aside.submit(anyio.run, give_up).result()
    assert len(left) == 1
    assert left[0] != loop, "the disk would have stalled every other request"
    assert offset(server, place) == 100
    assert send(server, place, 100, film.read_bytes()[100:]).status_code == 204


def test_the_documents_form_answers_with_where_to_send_the_film(server: Serving) -> None:
    form = {"filename": "a.mp4", "size": "10"}
    answer = server.http.post("/jobs", data=form, headers={"Accept": "application/json"})
    assert answer.status_code == 201
    assert server.get(answer.json()["upload_url"])["job"] == answer.json()["job_id"]
    assert server.http.post("/jobs", data=form).headers["location"].startswith("/jobs/job_")


def test_in_a_bucket_home_the_file_goes_where_workers_look_for_it(
    home: Path, film: Path, ministack_s3: BucketLocation
) -> None:
    place, data = ministack_s3, film.read_bytes()
    bucket = {"s3_endpoint": place.endpoint, "s3_key": place.key, "s3_secret": place.secret}
    with serving(home, blobs=f"s3://{place.bucket}/uploaded", **bucket) as server:
        at, job = begin(server, data)
        assert send(server, at, 0, data).status_code == 204
        assert probe_state(server, job) is TaskState.READY
        assert read_document(server.library.home.blobs, f"input/{job}/source.mp4") == data
        assert not list((home / "uploads").rglob("*.part"))
        assert offset(server, at) == len(data)


def test_in_a_bucket_of_google_uploads_go_through_the_server_and_are_there_for_every_machine(
    film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = film.read_bytes()
    with google_storage() as google:
        monkeypatch.setenv("S3_ENDPOINT", google.url)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        with serving(bucket_home("gs://films/archive")) as server:
            at, job = begin(server, data, direct="yes")
            assert send(server, at, 0, data).status_code == 204
            assert probe_state(server, job) is TaskState.READY
            assert read_document(server.library.home.blobs, f"input/{job}/source.mp4") == data
            (added,) = server.library.upload([film], JobRequest(only=("probe",)))
            assert added.job
            assert probe_state(server, added.job.id) is TaskState.READY
            assert {key.partition("/source.")[2] for key in google.objects if "/input/" in key} == {
                "mp4",
                "mp4/ckpt.sqlite",
            }


def promise(server: Serving, size: int, **headers: str) -> int:
    """The status of an upload that is only announced."""
    return server.http.post("/api/v1/uploads", headers={"Upload-Length": str(size), **headers}).status_code


def test_promised_uploads_are_summed_against_the_disk(home: Path) -> None:
    with serving(home, upload_gb=10**6, open_uploads_gb=10**6, reserve_mb=0) as server:
        free = shutil.disk_usage(home).free
        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda _: promise(server, int(free * 0.4)), range(8)))
        assert sorted(told) == [201, 201, *[413] * 6]
        (one, _other) = [u for u in server.library.uploads.all() if u.state == "open"]
        server.http.delete(f"/api/v1/uploads/{one.id}")
        assert promise(server, int(free * 0.3)) == 201


def test_what_has_come_of_an_upload_is_on_the_disk_and_no_promise_any_more(server: Serving) -> None:
    data = b"\0\0\0\x18ftypmp42" + bytes(100_000)
    place, _ = begin(server, data)
    assert unsent(server.library.uploads.all()) == len(data)
    send(server, place, 0, data[:60_000])
    assert unsent(server.library.uploads.all()) == len(data) - 60_000


def test_each_person_may_leave_so_many_uploads_open_and_so_much(home: Path) -> None:
    with serving(home, "0.0.0.0", token="a-long-and-secret-token", open_uploads=3, open_uploads_gb=5) as server:
        ada, bob = (signed_in(server, name) for name in ("ada", "bob"))
        assert [promise(server, 10, **ada) for _ in range(4)] == [201, 201, 201, 413]
        assert [promise(server, 2 * 10**9, **bob) for _ in range(3)] == [201, 201, 413]
        assert promise(server, 10, **bob) == 201


def signed_in(server: Serving, name: str) -> dict[str, str]:
    """The headers of somebody with an account."""
    server.app.state.access.accounts.create(name, "a long and good password")
    form = {"name": name, "password": "a long and good password"}
    answer = server.http.post("/login", data=form, headers={"Origin": server.url}, follow_redirects=False)
    cookie = answer.headers["set-cookie"].partition(";")[0]
    server.http.cookies.clear()
    return {"Cookie": cookie, "Origin": server.url}


@pytest.mark.parametrize(
    ("said", "mode"),
    [({"recipe": "3d", "format": "full-tb"}, "full-tb"), ({"recipe": "", "format": "anaglyph"}, "anaglyph"),
     ({"recipe": "subtitles", "format": "sbs"}, ""), ({"recipe": "3d"}, "sbs")],
)  # fmt: skip
def test_a_3d_format_is_asked_for_with_the_upload(server: Serving, said: dict[str, str], mode: str) -> None:
    _, job = begin(server, b"film", **said)
    assert server.get(f"/jobs/{job}", headers={"Accept": "application/json"})["mode"] == mode


def test_the_size_of_a_film_may_come_with_its_parts(server: Serving, film: Path) -> None:
    data = film.read_bytes()
    made = server.http.post("/jobs", data={"mode": "sbs"}, headers={"Accept": "application/json"})
    at = made.headers["location"]
    head = server.http.head(at).headers
    assert (head["upload-defer-length"], head["upload-offset"], "upload-length" in head) == ("1", "0", False)
    part = {"Content-Type": "application/offset+octet-stream", "Upload-Length": str(len(data))}
    assert server.http.patch(at, content=data[:1000], headers=part | {"Upload-Offset": "0"}).status_code == 204
    assert server.http.head(at).headers["upload-length"] == str(len(data))
    other = part | {"Upload-Offset": "1000", "Upload-Length": "1"}
    assert server.http.patch(at, content=data[1000:], headers=other).status_code == 400
    assert server.http.patch(at, content=data[1000:], headers=part | {"Upload-Offset": "1000"}).status_code == 204
    assert probe_state(server, made.json()["job_id"]) is TaskState.READY


def test_a_film_that_is_put_as_a_whole_may_be_cut_and_put_again(server: Serving, film: Path) -> None:
    data = film.read_bytes()
    made = server.http.post("/jobs", data={"mode": "sbs"}, headers={"Accept": "application/json"}).json()

    def cut() -> Iterator[bytes]:
        yield data[:1000]
        raise ConnectionError

    with pytest.raises(ConnectionError):
        server.http.put(made["upload_url"], content=cut(), headers={"Content-Length": str(len(data))})
    assert probe_state(server, made["job_id"]) is TaskState.WAITING
    wait_for(lambda: server.http.put(made["upload_url"], content=data).status_code == 204, "it was never taken")
    assert probe_state(server, made["job_id"]) is TaskState.READY
