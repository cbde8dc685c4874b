"""What the guides tell operators to type works, from an empty machine on.

Blocks marked ```` ```sh run ```` and ```` ```sql run ```` are executed in the order of the page, on real servers.
"""

import json
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import psycopg
import pytest
import redis

from rushes.bucket.location import BucketLocation
from rushes.model_settings import models_folder
from rushes.servers import postgres, valkey
from rushes.servers.process import Running, free_port
from rushes.settings import load
from tests.acceptance.conftest import draw, wait_for
from tests.acceptance.machine import Machine, blocks
from tests.servers_aws import KEY, SECRET, ministack

SHM = Path("/dev/shm")


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return draw(tmp_path_factory.mktemp("guide") / "film.mp4", 3).read_bytes()


def buckets(place: BucketLocation, film: bytes, *names: str, key: str = "2026/film.mp4") -> Any:
    """Buckets that did not exist, with a film in the first."""
    s3 = boto3.client(
        "s3", endpoint_url=place.endpoint, aws_access_key_id=place.key, aws_secret_access_key=place.secret,
        region_name="us-east-1",
    )  # fmt: skip
    for name in names:
        s3.create_bucket(Bucket=name)
    s3.put_object(Bucket=names[0], Key=key, Body=film)
    return s3


@pytest.fixture
def database() -> Iterator[tuple[Running, Path]]:
    """A server, and the folder of its socket, where its administrator comes in."""
    with tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None) as folder:
        running = postgres.start(Path(folder))
        with psycopg.connect(_administrator(running, Path(folder)), autocommit=True) as db:
            db.execute("DROP DATABASE rushes")  # it made its own, and the guide begins without
            db.execute("DROP OWNED BY rushes")
            db.execute("DROP ROLE rushes")
        yield running, Path(folder)
        running.stop()


def _administrator(server: Running, folder: Path) -> str:
    (cluster,) = folder.glob("postgres-*/PG_VERSION")
    return f"host={cluster.parent} port={server.port} user=postgres dbname=postgres"


def ask(url: str, token: str, path: str) -> Any:
    request = urllib.request.Request(f"{url}{path}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def settings_of(machine: Machine) -> dict[str, str]:
    lines = (machine.folder / "etc" / "rushes" / "rushes.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def valkey_server(tmp_path: Path) -> Iterator[Running]:
    running = valkey.start(tmp_path / "valkey")
    yield running
    running.stop()


def certificate(machine: Machine, port: int) -> None:
    """One for the name in the guide, which curl on that machine believes and finds here."""
    files = {"out": "ssl/certs/rushes.example.org.pem", "keyout": "ssl/private/rushes.example.org.key"}
    places = {name: str(machine.folder / "etc" / file) for name, file in files.items()}
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=rushes.example.org"]
    argv += ["-addext", "subjectAltName=DNS:rushes.example.org"]
    subprocess.run([*argv, "-out", places["out"], "-keyout", places["keyout"]], check=True, capture_output=True)
    found = f'resolve = "rushes.example.org:{port}:127.0.0.1"\ncacert = "{places["out"]}"\n'
    (machine.folder / ".curlrc").write_text(found)


def test_the_commands_of_the_postgres_and_valkey_guides_make_a_fleet(
    tmp_path: Path, database: tuple[Running, Path], seaweed_s3: BucketLocation, film: bytes, valkey_server: Running
) -> None:
    server, folder = database
    s3 = buckets(seaweed_s3, film, "films", "footage")
    port, proxy = free_port(), free_port()
    names = {"db.example.org:5432": f"127.0.0.1:{server.port}", "http://s3.example.org:8333": seaweed_s3.endpoint}
    names |= {"the-key": seaweed_s3.key, "the-secret": seaweed_s3.secret}
    names |= {"127.0.0.1:8000": f"127.0.0.1:{port}", "--port 8000": f"--port {port}"}
    names |= {"https://rushes.example.org": f"https://rushes.example.org:{proxy}", "443 ssl": f"127.0.0.1:{proxy} ssl"}
    names |= {"valkeys://": "valkey://", "valkey.example.org:6379": f"127.0.0.1:{valkey_server.port}"}
    machine = Machine(tmp_path / "machine", names, {"RUSHES_MODELS": str(models_folder(load().settings))})
    certificate(machine, proxy)
    try:
        for language, text in blocks("run-on-postgres.md"):
            if language == "sql":
                with psycopg.connect(_administrator(server, folder), autocommit=True) as db:
                    for statement in text.split(";\n"):
                        db.execute(statement.encode())
            else:
                machine.run(text)
        token, url = settings_of(machine)["RUSHES_TOKEN"], f"http://127.0.0.1:{port}"
        wait_for(lambda: states(url, token) == ["completed"], "the worker never did the film")
        assert ask(url, token, "/readyz")["status"] == "ready"
        (video,) = ask(url, token, "/api/v1/videos")["items"]
        assert video["name"] == "film.mp4"
        assert '"path": "/api/v1/jobs"' in machine.log("rushes-serve.service"), "there is no access log"
        for language, text in blocks("run-on-postgres-and-valkey.md"):
            if language == "valkey":
                administrator: Any = redis.Redis.from_url(valkey_server.url)
                administrator.execute_command(*text.split())
            else:
                machine.run(text)
        s3.put_object(Bucket="films", Key="2026/second.mp4", Body=film + b"second")
        machine.run("set -a; . /etc/rushes/rushes.env; set +a; rushes add s3://films/2026/second.mp4")
        wait_for(lambda: states(url, token) == ["completed"] * 2, "the worker never did the second film")
    finally:
        machine.stop()


def states(url: str, token: str) -> list[str]:
    return [job["state"] for job in ask(url, token, "/api/v1/jobs")["items"]]


def test_the_commands_of_the_aws_guide_make_a_fleet_and_restore_it(tmp_path: Path, film: bytes) -> None:
    aws = ministack(tmp_path / "aws")
    s3 = boto3.client("s3", **aws_client(aws))
    s3.create_bucket(Bucket="films", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    s3.put_object(Bucket="films", Key="2026/film.mp4", Body=film)
    here = {"AWS_ENDPOINT": aws.url, "S3_ENDPOINT": aws.url, "S3_KEY": KEY, "S3_SECRET": SECRET}
    lines = "".join(f"\nRUSHES_{name}={value}" for name, value in here.items())
    names = {"AWS_REGION=eu-central-1": f"AWS_REGION=eu-central-1{lines}"}
    env = {"RUSHES_MODELS": str(models_folder(load().settings)), "MACHINE_AWS": aws.url}
    env |= {"AWS_DEFAULT_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    machine = Machine(tmp_path / "machine", names, env)
    listed = "set -a; . /etc/rushes/rushes.env; set +a; rushes jobs ls --json"
    try:
        for _, text in blocks("run-on-aws.md"):
            if "restore-table" in text:
                wait_for(lambda: '"completed"' in machine.run(listed), "the worker never did the film")
                before = machine.run(listed)
            if "sed -i" in text:
                machine.stop()
            machine.run(text)
        assert "rushes-restored" in settings_of(machine)["RUSHES_STORE"]
        assert machine.run(listed) == before
        assert "film.mp4" in machine.run(listed.replace("jobs ls", "ls"))
    finally:
        machine.stop()
        aws.stop()


def test_the_commands_of_the_bucket_guide_and_its_runbook_do_what_they_say(
    tmp_path: Path, seaweed_s3: BucketLocation, film: bytes
) -> None:
    s3 = buckets(seaweed_s3, film, "my-films", "new-films", key="archive/videos/meeting.mp4")
    here = {"S3_ENDPOINT": seaweed_s3.endpoint, "S3_KEY": seaweed_s3.key, "S3_SECRET": seaweed_s3.secret}
    lines = "".join(f"\nRUSHES_{name}={value}" for name, value in here.items())
    names = {"AWS_REGION=eu-central-1": f"AWS_REGION=eu-central-1{lines}"}
    names |= {f" {name}": f" {tmp_path}/{name}" for name in ("ckpt.sqlite", "lock.json")}
    env = {"RUSHES_MODELS": str(models_folder(load().settings)), "MACHINE_AWS": seaweed_s3.endpoint}
    env |= {"AWS_DEFAULT_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": seaweed_s3.secret}
    env |= {f"RUSHES_{name}": value for name, value in here.items()} | {"RUSHES_HOME": "s3://my-films/archive"}
    machine = Machine(tmp_path / "machine", names, env | {"RUSHES_RECIPE": "subtitles"})
    try:
        for _, text in blocks("run-on-a-bucket.md"):
            s3.put_object(Bucket="my-films", Key="archive/videos/second.mp4", Body=film + b"second")
            machine.run(text)
        done = lambda: '.transcript"' in machine.log("rushes-worker.service")  # noqa: E731
        wait_for(done, "the worker never did the second film")
    finally:
        machine.stop()
    (inspect, unlock, move) = (text for _, text in blocks("../runbooks/bucket.md"))
    assert machine.run(inspect).splitlines()[-1] == "done||"
    lock = "archive/checkpoints/archive/videos/meeting.mp4/lock.json"
    s3.put_object(Bucket="my-films", Key=lock, Body=b'{"worker_id": "one that hangs"}')
    assert "one that hangs" in machine.run(unlock)
    assert lock not in keys(s3, "my-films")
    made = [key for key in keys(s3, "my-films") if "/blobs/" in key]
    assert "second.mp4" in machine.run(move)
    assert [key for key in keys(s3, "new-films") if "/blobs/" in key] == made
    for key in keys(s3, "my-films"):
        s3.delete_object(Bucket="my-films", Key=key)
    assert "no damage" in machine.run("rushes --home s3://new-films/archive verify")


def keys(s3: Any, bucket: str) -> list[str]:
    return [
        found["Key"]
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        for found in page.get("Contents", ())
    ]


def aws_client(server: Running) -> dict[str, str]:
    keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
    return {"endpoint_url": server.url, "region_name": "eu-central-1", **keys}
