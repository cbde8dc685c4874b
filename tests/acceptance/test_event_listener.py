"""Storage events end to end: workers and servers hear them, from a queue or by HTTP; what was lost is looked for."""

import json
import secrets
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import StoreAway
from rushes.domain.job import JobState
from rushes.domain.task import TaskState
from rushes.library import JobRequest, Library
from rushes.library.watching.event_listener import LOOKED, EventListener
from rushes.servers import seaweed
from rushes.servers.process import free_port
from rushes.sources.port import StorageEvent
from rushes.uploads import limits as promises
from rushes.uploads.expected import ExpectedUpload
from tests.acceptance.conftest import wait_for
from tests.acceptance.test_storage_events import PROBE, Site, hurried, site  # noqa: F401 - fixtures
from tests.api.kit import PROGRAM, Serving, serving
from tests.servers_aws import KEY, SECRET

SHOUT, JSON = "storage-secret", {"Accept": "application/json"}


def promised(library: Library) -> ExpectedUpload:
    return library.expect_upload("holiday.mp4", PROBE)


def state(library: Library, upload: ExpectedUpload) -> TaskState:
    return library.home.ledger.tasks(upload.job.id).rows[0].state


def hear(library: Library) -> None:
    queue = library.home.storage_events
    assert queue
    EventListener(library.home).hear(queue, 0)


def as_it_is(body: str) -> str:
    return body


def by_sns(body: str) -> str:
    return json.dumps({"Type": "Notification", "Message": body})


def by_eventbridge(body: str) -> str:
    s3 = json.loads(body)["Records"][0]["s3"]
    detail = {"bucket": {"name": s3["bucket"]["name"]}, "object": {"key": s3["object"]["key"], "etag": "e"}}
    return json.dumps({"source": "aws.s3", "detail-type": "Object Created", "detail": detail})


@pytest.mark.parametrize("way", [as_it_is, by_sns, by_eventbridge])
def test_a_process_that_hears_of_an_upload_begins_its_job_once(site: Site, way: Callable[[str], str]) -> None:  # noqa: F811
    with Library(site.home) as library:
        upload = promised(library)
        site.put(f"home/{upload.key}")
        told = [body for body in site.taken() if upload.job.id in body]
        for body in [*map(way, told * 2), json.dumps({"Event": "s3:TestEvent"}), "poison"]:
            site.say(body)
        while site.left:
            hear(library)
        assert state(library, upload) is TaskState.READY
        assert [job.id for job in library.jobs.page().rows] == [upload.job.id]


def test_forged_events_and_other_keys_change_nothing(site: Site) -> None:  # noqa: F811
    with Library(site.home) as library:
        upload, other = promised(library), promised(library)
        connect(site.bucket).put(f"home/{other.key}", b"film")
        job, here = upload.job.id, site.bucket.bucket
        keys = [upload.key, f"input/{job}/source.mov", f"input/{job}/../{other.job.id}/source.mp4",
                "input/x/source.mp4", "input//source.mp4", f"segments/{job}/00000_00001_sbs.mp4", "", "/", "\0",
                f"jobs/{job}/segments/0.mp4", "results/me/ab/abc.json", "x" * 5000, f"blobs/me/{'0' * 64}"]  # fmt: skip
        forged = [*(StorageEvent(here, f"home/{key}") for key in keys), StorageEvent("other", f"home/{other.key}"),
                  StorageEvent(here, other.key), StorageEvent(here, f"home2/{other.key}")]  # fmt: skip
        EventListener(library.home).deal(forged)
        assert (state(library, upload), state(library, other)) == (TaskState.WAITING, TaskState.WAITING)
        assert len(library.jobs.page().rows) == 2


def test_an_upload_whose_event_was_lost_is_found_without_a_list_by_one_process_a_minute(
    site: Site,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Library(site.home) as library:
        upload = promised(library)
        EventListener(library.home).look()
        connect(site.bucket).put(f"home/{upload.key}", b"film")
        monkeypatch.setattr(type(library.home.blobs), "keys", None)
        EventListener(library.home).look()
        assert state(library, upload) is TaskState.WAITING, "somebody has just looked"
        library.home.delete_record(LOOKED, LOOKED)
        EventListener(library.home).look()
        assert state(library, upload) is TaskState.READY


def test_an_upload_that_is_too_large_is_deleted_and_its_job_ends(
    site: Site,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(promises, "_GB", 0.01)
    with Library(site.home, options={"upload_gb": (300, "the test")}) as library:
        upload, good = promised(library), promised(library)
        connect(site.bucket).put(f"home/{upload.key}", b"four")
        connect(site.bucket).put(f"home/{good.key}", b"two")
        EventListener(library.home).deal(StorageEvent(site.bucket.bucket, f"home/{u.key}") for u in (upload, good))
        assert library.home.ledger.job(upload.job.id).state is JobState.CANCELLED
        assert state(library, good) is TaskState.READY
        assert [u.key for u in (upload, good) if library.home.blobs.read(u.key, 0, 1)] == [good.key]


def test_a_film_is_taken_in_as_its_place_wants_it_whoever_hears_of_it(site: Site) -> None:  # noqa: F811
    with Library(site.home) as library:
        remembered, watched = f"{site.bucket.url}/remembered", f"{site.bucket.url}/watched"
        library.paths.add(remembered, JobRequest(profile="fast"))
        list(library.watch([watched], PROBE, pause=lambda _seconds: False))
        site.put("remembered/a.mp4", b"one")
        site.put("watched/b.mp4", b"two")
        site.put("elsewhere/c.mp4", b"three")
        while site.left:
            hear(library)
        found = {job.name: json.loads(job.payload) for job in library.jobs.page().rows}
        assert {name: (doc["profile"], doc["stages"] == ["probe"]) for name, doc in found.items()} == {
            "a.mp4": ("fast", False), "b.mp4": ("balanced", True)
        }  # fmt: skip


def test_a_message_that_cannot_be_dealt_with_now_holds_up_no_other_and_stays(site: Site) -> None:  # noqa: F811
    def wake(_bucket: str, key: str) -> None:
        woken.append(key)
        if key.endswith("bad"):
            raise StoreAway("it is away")

    woken: list[str] = []
    with Library(site.home) as library:
        queue = library.home.storage_events
        assert queue
        for key in ("answers/bad", "answers/good"):
            site.put(key)
        while len(set(woken)) < 2:
            try:
                EventListener(library.home, wake).hear(queue, 0)
            except StoreAway:
                continue
    assert site.left == 1


def test_a_worker_begins_what_was_uploaded_and_no_watch_runs(site: Site, toy_film: Path) -> None:  # noqa: F811
    with Library(site.home) as library:
        upload = promised(library)
        argv = [*PROGRAM, "--home", str(site.home), "worker", "--slots", "1"]
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            try:
                connect(site.bucket).put(f"home/{upload.key}", toy_film)
                done = lambda: library.home.ledger.job(upload.job.id).state is JobState.COMPLETED  # noqa: E731
                wait_for(done, "nobody has worked on it")
                wait_for(lambda: site.left == 0, "its event was never dealt with")
            finally:
                running.kill()


def told(server: Serving, body: Any, token: str = SHOUT) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return server.http.post("/api/v1/storage-events", content=body, headers=headers).status_code


def test_seaweedfs_tells_a_server_by_its_webhook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rushes.library.watching.event_listener.LOOK_SECONDS", 4e9)  # nobody looks by itself
    place = BucketLocation("films", "", f"http://127.0.0.1:{free_port()}", KEY, SECRET)
    home, folder = tmp_path / "home", tmp_path / "weed"
    home.mkdir()
    lines = {"blobs": "s3://films/home", "s3_endpoint": place.endpoint, "s3_key": KEY, "s3_secret": SECRET}
    lines |= {"events_token": SHOUT, "token": "of programs"}
    (home / "rushes.toml").write_text("".join(f'{key} = "{value}"\n' for key, value in lines.items()))
    with Library(home) as library:
        library.home.records.put(LOOKED, "me", LOOKED, {"at": 0.0})
    with serving(home) as server:
        folder.mkdir(0o700)
        (folder / "notification.toml").write_text(
            f'[notification.webhook]\nenabled = true\nendpoint = "{server.url}/api/v1/storage-events"\n'
            f'bearer_token = "{SHOUT}"\npath_prefixes = ["/buckets/films/home/input"]\n'
        )
        weed = seaweed.start(folder, "films", KEY, SECRET, int(place.endpoint.rpartition(":")[2]))
        try:
            upload = promised(server.library)
            connect(place).put(f"home/{upload.key}", b"film")
            wait_for(lambda: state(server.library, upload) is TaskState.READY, "nobody told the server")
        finally:
            weed.process.kill()
            weed.process.wait()


def test_the_address_for_events_takes_one_token_which_opens_nothing_else(site: Site) -> None:  # noqa: F811
    with serving(site.home, events_token=SHOUT, token="of programs", storage_events="") as server:
        upload = promised(server.library)
        connect(site.bucket).put(f"home/{upload.key}", b"film")
        event = next(body for body in site.taken() if upload.job.id in body)
        minio = json.dumps({"EventName": "s3:ObjectCreated:Put", "Key": "k", **json.loads(event)})
        assert [told(server, minio, token) for token in ("", "wrong", secrets.token_hex(4))] == [401] * 3
        assert state(server.library, upload) is TaskState.WAITING
        assert [told(server, minio), told(server, minio, "of programs")] == [204, 204]
        assert state(server.library, upload) is TaskState.READY
        assert [told(server, b"hello"), told(server, b"[" * 900_000), told(server, b" " * 1_000_001)] == [400, 400, 413]
        other = server.http.get("/api/v1/jobs", headers={"Authorization": f"Bearer {SHOUT}"})
        assert other.status_code == 401


def test_an_address_to_put_to_takes_just_the_promised_size(seaweed_s3: BucketLocation, tmp_path: Path) -> None:
    data = b"\0\0\0\x18ftypmp42" + bytes(100)
    there = {"blobs": f"{seaweed_s3.url}/{tmp_path.name}", "s3_endpoint": seaweed_s3.endpoint}
    with serving(tmp_path / "home", **there, s3_key=seaweed_s3.key, s3_secret=seaweed_s3.secret) as server:
        said = server.http.post("/jobs", data={"mode": "sbs", "size": len(data)}, headers=JSON).json()
        assert httpx.put(said["upload_url"], content=data + b"x").status_code == 403
        assert httpx.put(said["upload_url"], content=data).status_code == 200
        server.library.puts.look(old=False)
        job = said["job_id"]
        assert server.ledger.tasks(job).rows[0].state is TaskState.READY


def test_what_is_put_without_a_promised_size_is_deleted_if_it_is_too_large(
    site: Site,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(promises, "_GB", 1)
    with serving(site.home, storage_events="", upload_gb=200) as server:
        said = server.http.post("/jobs", data={"mode": "sbs"}, headers=JSON).json()
        key, blobs = f"input/{said['job_id']}/source.mp4", server.library.home.blobs
        for _ in range(2):  # its address is good for a while longer
            assert httpx.put(said["upload_url"], content=bytes(201)).status_code == 200
            server.library.puts.look(old=False)
            assert blobs.read(key, 0, 1) is None
        assert server.http.get(f"/api/v1/jobs/{said['job_id']}").status_code == 404, "no job is left of it"
