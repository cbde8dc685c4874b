"""Nobody but the user who started a server gets anything from it, and no secret lies about."""

import itertools
import os
import pwd
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
from obstore.store import S3Store

from rushes.servers import postgres, seaweed, valkey
from rushes.servers.process import Running, start
from tests.servers_aws import ministack
from tests.unit.servers.strangers import PREFACE, as_stranger, over_tls, raw, status

SECRET = "of-the-bucket-and-only-of-it"
WRITES = [("POST", "/evil.txt"), ("PUT", "/evil.txt"), ("DELETE", "/buckets/rushes?recursive=true"),
          ("PUT", "/rushes/evil.txt"), ("POST", "/submit"), ("GET", "/dir/assign"), ("GET", "/vol/grow?count=1"),
          ("GET", "/col/delete?collection=rushes"), ("POST", "/1,01637037d6"),
          ("GET", "/buckets/rushes/.alive")]  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = postgres.start(tmp_path_factory.mktemp("postgres"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def hints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = valkey.start(tmp_path_factory.mktemp("valkey"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("longer-than-the-path-of-a-socket-may-be-" * 3)


@pytest.fixture(scope="module")
def bucket(folder: Path) -> Iterator[Running]:
    running = seaweed.start(folder, "rushes", "rushes", SECRET)
    yield running
    running.stop()


def ports(running: Running) -> set[int]:
    """Every port that a server listens on; all of them on loopback."""
    listening = [c.laddr for c in psutil.Process(running.process.pid).net_connections("tcp") if c.status == "LISTEN"]
    assert {address.ip for address in listening} == {"127.0.0.1"}
    return {address.port for address in listening}


@pytest.mark.parametrize("user", ["postgres", "rushes", "nobody"])
@pytest.mark.parametrize("password", ["", "postgres"])
def test_postgresql_lets_no_stranger_in(database: Running, user: str, password: str) -> None:
    (port,) = ports(database)

    def connect() -> str:
        try:
            psycopg.connect(host="127.0.0.1", port=port, user=user, password=password, dbname="postgres").close()
        except psycopg.OperationalError as e:
            return str(e)
        return ""

    assert re.search(r"no password supplied|password authentication failed", as_stranger(connect))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's PostgreSQL runs as another user")
def test_roots_postgresql_runs_as_a_user_that_nothing_else_runs_as(database: Running) -> None:
    """As nobody it would be open to everything that runs as nobody: by its folder, its socket, its environment."""
    process = Path(f"/proc/{database.process.pid}")

    def connect() -> str:
        try:
            psycopg.connect(host=f"{process}/cwd", port=database.port, user="postgres", dbname="postgres").close()
        except psycopg.OperationalError as e:
            return str(e)
        return ""

    nobody = pwd.getpwnam("nobody").pw_uid
    assert "Permission denied" in as_stranger(connect, nobody)
    assert not as_stranger(partial(readable, process / "environ"), nobody)


def test_a_server_inherits_no_secrets_of_whoever_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-somebody")
    argv = ["/bin/sh", "-c", "env > part; mv part heard; exec sleep 60"]
    running = start(argv, "", tmp_path / "log", (tmp_path / "heard").exists)
    running.stop()
    assert "of-somebody" not in (tmp_path / "heard").read_text()


def test_the_products_own_role_runs_no_programs_and_reads_no_files(database: Running) -> None:
    with psycopg.connect(database.url, autocommit=True) as db:
        for statement in ("COPY (SELECT 1) TO PROGRAM 'true'", "SELECT pg_read_file('/etc/passwd')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(statement.encode())


@pytest.mark.parametrize("command", ["PING", "FLUSHALL", "SHUTDOWN NOSAVE", "CONFIG SET dir /tmp", "KEYS *"])
def test_valkey_obeys_no_stranger(hints: Running, command: str) -> None:
    (port,) = ports(hints)
    with redis.Redis.from_url(hints.url) as ours:
        ours.set("kept", 1)
        assert as_stranger(lambda: raw(port, f"{command}\r\n".encode())).startswith(b"-NOAUTH")
        assert as_stranger(lambda: status(port, "POST", f"/{command.replace(' ', '%20')}")) == 0
        assert ours.get("kept") == b"1"


def test_seaweedfs_takes_nothing_from_a_stranger_or_a_foreign_page(bucket: Running) -> None:
    found = ports(bucket)
    assert len(found) == 8  # S3, master, volume and filer, each with gRPC
    answers = as_stranger(lambda: {(p, *ask): status(p, *ask) for p, ask in itertools.product(found, WRITES)})
    assert not {ask: code for ask, code in answers.items() if 200 <= code < 400}


def test_what_seaweedfs_says_to_itself_needs_its_own_certificate(bucket: Running, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=rushes"]
    subprocess.run([*argv, "-keyout", foreign, "-out", tmp_path / "c.pem"], check=True, capture_output=True)
    foreign.write_text(foreign.read_text() + (tmp_path / "c.pem").read_text())
    inside = ports(bucket) - {bucket.port}
    heard = as_stranger(lambda: {raw(p, PREFACE)[:12] for p in inside})
    assert heard <= {b"", b"HTTP/1.0 400"}
    for port in inside:
        assert (over_tls(port), over_tls(port, foreign)) == (b"", b"")


def test_the_bucket_opens_with_its_key_alone(bucket: Running) -> None:
    ours = S3Store("rushes", endpoint=bucket.url, access_key_id="rushes", secret_access_key=SECRET, region="us-east-1",
                   client_options={"allow_http": True})  # fmt: skip
    ours.put("kept", b"1")
    asked = as_stranger(lambda: [status(bucket.port, method, "/rushes/kept") for method in ("GET", "PUT", "DELETE")])
    assert asked == [403, 403, 403]


def test_no_secret_is_on_a_command_line_or_in_a_file_that_others_can_read(
    database: Running, hints: Running, bucket: Running, folder: Path
) -> None:
    secrets = [database.secret, hints.secret, SECRET]
    assert all(secrets)
    lines = [Path(p, "cmdline").read_bytes() for p in Path("/proc").glob("[0-9]*") if Path(p, "cmdline").exists()]
    assert not [line for line in lines if any(secret.encode() in line for secret in secrets)]
    for place in (folder, *(folder.parent.glob("*valkey*")), *(folder.parent.glob("*postgres*"))):
        assert place.stat().st_mode & 0o077 == 0
        for file in (f for f in place.rglob("*") if f.is_file()):
            data = file.read_bytes()
            if b"PRIVATE KEY" in data or any(secret.encode() in data for secret in secrets):
                assert file.stat().st_mode & 0o077 == 0, file
    for server in (database, hints, bucket):
        assert as_stranger(partial(readable, Path(f"/proc/{server.process.pid}/environ"))) is (os.geteuid() != 0)


def readable(path: Path) -> bool:
    try:
        path.read_bytes()
    except PermissionError:
        return False
    return True


def test_the_emulator_of_aws_listens_on_loopback_alone(tmp_path: Path) -> None:
    """It checks no signatures and no origins: nothing but what tests make is in it, and it forgets that."""
    running = ministack(tmp_path)
    try:
        assert len(ports(running)) == 1
    finally:
        running.stop()
