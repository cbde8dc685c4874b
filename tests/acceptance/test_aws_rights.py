"""The policies in infra/aws: a set-up, a worker and a server can do their work, and use all that they are allowed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from rushes.library import JobRequest, Library
from rushes.servers.process import Running
from tests.acceptance.aws_rights import Role, guarded
from tests.acceptance.conftest import draw
from tests.api.kit import DEADLINE, serving, wait_for
from tests.servers_aws import KEY, SECRET, ministack

RARE = {
    "sqs:ChangeMessageVisibility",  # for work of minutes, and on the way out
    "s3:DeleteObject",  # when it is time to clear up
    "s3:ListBucket",  # and so that S3 answers 404, not 403, for what is missing
}


@pytest.fixture
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """An empty emulator: the names in the policies are fixed."""
    running = ministack(tmp_path_factory.mktemp("account"))
    s3 = boto3.client("s3", **client(running.url))
    for bucket in ("footage", "films", "private"):
        s3.create_bucket(Bucket=bucket)
    sqs = boto3.client("sqs", **client(running.url))
    sqs.send_message(QueueUrl=sqs.create_queue(QueueName="rushes-events")["QueueUrl"], MessageBody="no event")
    film = draw(tmp_path_factory.mktemp("films") / "film.mp4", 3)
    for name in ("2026/one.mp4", "2026/two.mp4"):
        s3.put_object(Bucket="films", Key=name, Body=film.read_bytes() + name.encode())
    yield running
    running.stop()


def client(url: str) -> dict[str, str]:
    return {"endpoint_url": url, "region_name": "us-east-1", "aws_access_key_id": KEY, "aws_secret_access_key": SECRET}


def settings(url: str) -> dict[str, str]:
    places = {"store": "dynamodb://rushes", "blobs": "s3://footage/rushes", "aws_endpoint": url, "s3_endpoint": url}
    return {**places, "s3_key": KEY, "s3_secret": SECRET, "sources": "s3://films", "storage_events": "rushes-events"}


def rushes(home: Path, url: str, *words: str) -> str:
    env = {f"RUSHES_{name.upper()}": value for name, value in settings(url).items()}
    argv = [sys.executable, "-m", "rushes", "--home", str(home), *words]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_role_can_do_its_work_and_no_more(account: Running, tmp_path: Path) -> None:
    with guarded(account.url) as (role, url):
        _set_up(role, url, tmp_path / "setup")
        served = _serve(role, url, tmp_path / "server")
        _work(role, url, tmp_path / "worker")
        _care(role, url, tmp_path / "server")
        assert role.unused <= RARE | served


def test_a_home_in_a_bucket_needs_four_rights_and_no_more(
    aws_server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = "s3://my-films/archive"
    s3 = boto3.client("s3", **client(aws_server.url))
    s3.create_bucket(Bucket="my-films")
    s3.upload_file(str(draw(tmp_path / "film.mp4", 3)), "my-films", "archive/videos/film.mp4")
    with guarded(aws_server.url) as (role, url):
        role.take("bucket")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        for name, value in {"ENDPOINT": url, "KEY": KEY, "SECRET": SECRET}.items():
            monkeypatch.setenv(f"RUSHES_S3_{name}", value)
        with Library(home) as library, library.watching(home):
            assert library.run([f"{home}/videos/film.mp4"], JobRequest(only=("playlist", "shots"))).exit_code == 0
            assert library.maintenance.verify().damages == ()
    assert set(role.refused) == {("s3:GetObject", "arn:aws:s3:::my-films/archive")}  # is it a film? no: it is a folder
    assert role.unused == set()


def _set_up(role: Role, url: str, home: Path) -> None:
    role.take("setup", "worker")
    with Library(home, options={name: (value, "test") for name, value in settings(url).items()}) as library:
        found = {check.name: check for check in library.maintenance.doctor()}
    assert all(found[name].ok for name in ("store", "protection", "results", "hints")), found
    assert role.refused == []
    used = role.used
    role.take("setup")
    assert role.unused <= used


def _serve(role: Role, url: str, home: Path) -> set[str]:
    role.take("server")
    with serving(home, **settings(url)) as server:
        wait_for(lambda: "sqs:DeleteMessage" in role.used, "no message was read")
        server.post("/api/v1/videos", {"paths": ["s3://films/2026"], "only": ["playlist", "shots"]}, 202)
        _upload(server)
        assert server.get("/readyz")["status"] == "ready"
    assert role.refused == []
    return role.used


def _upload(server: Any) -> None:
    """A film that a browser begins to send straight to the bucket, and gives up."""
    said = {"Upload-Length": "1000", "Upload-Metadata": "filename YS5tcDQ=,direct eWVz"}
    begun = server.http.post("/api/v1/uploads", headers=said)
    assert begun.status_code == 201, begun.text
    assert server.http.post(begun.headers["rushes-parts"]).json()["parts"]
    assert server.http.delete(begun.headers["location"]).status_code in (200, 204)


def _work(role: Role, url: str, home: Path) -> None:
    role.take("worker")
    rushes(home, url, "worker", "--until-idle", "--slots", "1")
    assert role.refused == []
    assert role.unused <= RARE
    s3 = boto3.client("s3", **client(url))
    with pytest.raises(Exception, match="AccessDenied"):
        s3.get_object(Bucket="private", Key="anything")
    with pytest.raises(Exception, match="AccessDenied"):
        s3.delete_object(Bucket="films", Key="2026/one.mp4")
    with pytest.raises(Exception, match="AccessDenied"):
        boto3.client("dynamodb", **client(url)).delete_table(TableName="rushes")


def _care(role: Role, url: str, home: Path) -> None:
    role.take("server")
    for words in (("watch", "--once", "s3://films/2026"), ("ls",), ("verify",), ("gc",), ("jobs", "ls")):
        rushes(home, url, *words)
    assert role.refused == []


def test_a_worker_that_may_not_read_the_original_makes_a_dead_letter_at_once(account: Running, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with guarded(account.url) as (role, url):
        role.take("setup", "worker", "server")
        rushes(home, url, "add", "s3://films/2026/one.mp4", "--only", "probe", "--again", "7")
        role.take("worker")
        role.statements = [s for s in role.statements if s["Sid"] != "Originals"]
        argv = [sys.executable, "-m", "rushes", "--home", str(home), "worker", "--until-idle", "--slots", "1", "--json"]
        env = {f"RUSHES_{name.upper()}": value for name, value in settings(url).items()}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=DEADLINE)
        assert done.returncode == 3, done.stdout + done.stderr
        (told,) = [line for line in map(json.loads, done.stdout.splitlines()) if line["message_type"] == "task"]
        assert (told["outcome"], told["level"], told["why"].partition(":")[0]) == ("dead", "error", "StoreRefuses")
