"""The doctor looks at every part of a set-up, by using it."""

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import httpx
import psycopg
import pytest
from click.testing import CliRunner

from rushes.aws.client import Service
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import Refused, RushesError
from rushes.jobs.maintenance.reports import Check
from rushes.library import Library
from rushes.library.maintenance.doctor import _hints
from rushes.servers import postgres, valkey
from rushes.servers.process import Running
from rushes.surfaces.cli.main import main
from rushes.transport.redis import RedisHints
from tests.servers_aws import KEY, SECRET, make_bucket


def checks(home: Path) -> dict[str, Check]:
    with Library(home) as library:
        return {c.name: c for c in library.maintenance.doctor()}


def check(home: Path, name: str) -> Check:
    return checks(home)[name]


def masked(url: str) -> str:
    """An address with a password, as people may see it."""
    assert re.search(r":\w+@", url)
    return re.sub(r":\w+@", ":***@", url)


def test_a_laptop_needs_no_server(tmp_path: Path) -> None:
    for name, detail in {"store": "SQLite in the home (empty)", "results": "a folder in the home"}.items():
        assert check(tmp_path, name) == Check(name, ok=True, detail=detail)
    assert check(tmp_path, "hints").ok
    assert not list((tmp_path / "files").rglob("doctor/*")), "nothing is left behind"


def test_a_folder_that_cannot_be_written_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Library(tmp_path) as library:
        monkeypatch.setattr(library.home.blobs, "read", lambda _key: None)
        (found,) = [c for c in library.maintenance.doctor() if c.name == "results"]
    assert not found.ok
    assert found.hint


def test_hints_are_tried_and_a_server_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = valkey.start(tmp_path / "valkey")
    monkeypatch.setenv("RUSHES_HINTS", server.url)
    with Library(tmp_path / "home") as library:
        library.home.__dict__["transport"] = RedisHints(server.url)  # as a fleet's home has it
        assert _hints(library.home) == Check("hints", ok=True, detail=masked(server.url))
        server.stop()
        gone = _hints(library.home)
    assert not gone.ok
    assert f"127.0.0.1:{server.port}" in gone.detail
    assert server.secret not in gone.detail
    assert "refused" in gone.detail


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    running = postgres.start(tmp_path_factory.mktemp("postgres"))
    yield running.url
    running.stop()


@pytest.fixture
def fleet(tmp_path: Path) -> Callable[..., Path]:
    """A home with these settings."""

    def made(**settings: str) -> Path:
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        (home / "rushes.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in settings.items()))
        return home

    return made


def on_aws(server: Running, **more: str) -> dict[str, str]:
    reach = {"aws_endpoint": server.url, "s3_endpoint": server.url, "s3_key": KEY, "s3_secret": SECRET}
    return {"store": f"dynamodb://t{secrets.token_hex(4)}", "blobs": "s3://rushes/doctor", **reach, **more}


def test_every_part_of_a_fleet_on_postgres_is_tried(database: str, fleet: Callable[..., Path]) -> None:
    home = fleet(store=database, listen=database, shared="yes")
    found = checks(home)
    assert found["store"] == Check("store", ok=True, detail=f"{masked(database)} (empty)")
    assert found["hints"] == Check("hints", ok=True, detail="LISTEN/NOTIFY")
    assert found["clock"] == Check("clock", ok=True, detail="same as the store's")


def test_a_listener_that_hears_nothing_is_a_finding(database: str, fleet: Callable[..., Path]) -> None:
    found = check(fleet(store=database, listen="postgres://127.0.0.1:9/postgres", shared="yes"), "hints")
    assert not found.ok
    assert "refused" in found.detail
    with psycopg.connect(database, autocommit=True) as db:
        db.execute("CREATE DATABASE elsewhere")
    deaf = check(fleet(store=database, listen=f"{database.rpartition('/')[0]}/elsewhere", shared="yes"), "hints")
    assert not deaf.ok
    assert "Set listen" in deaf.hint


def test_a_clock_that_is_wrong_is_a_finding(
    database: str, aws_server: Running, fleet: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        import_module("rushes.library.maintenance.doctor"), "time", SimpleNamespace(time=lambda: time.time() + 60)
    )
    for settings in ({"store": database, "shared": "yes"}, on_aws(aws_server)):
        found = check(fleet(**settings), "clock")
        assert not found.ok
        assert 30 <= int(found.detail.split()[0]) <= 60  # the longer the answer takes, the less it says
        assert "NTP" in found.hint


@pytest.mark.parametrize(
    ("wrong", "told", "hint"),
    [("nowhere", "does not exist", "Create the database"), ("postgres?user=nobody", "denies access", "Check user")],
)
def test_a_database_that_lets_nobody_in_says_what_to_do(
    database: str, fleet: Callable[..., Path], wrong: str, told: str, hint: str
) -> None:
    found = check(fleet(store=f"{database.rpartition('/')[0]}/{wrong}", shared="yes"), "store")
    assert not found.ok
    assert told in found.detail
    assert hint in found.hint


def test_every_part_of_a_fleet_on_aws_is_tried(aws_server: Running, fleet: Callable[..., Path]) -> None:
    sqs = Service("sqs", aws_server.url, "us-east-1", KEY, SECRET)
    sqs.ask("create_queue", QueueName="doctor-events")
    make_bucket(aws_server.url, "rushes")
    found = checks(fleet(**on_aws(aws_server, storage_events="doctor-events")))
    for name, detail in {
        "results": "s3://rushes/doctor",
        "hints": "SQS, messages waiting: cpu 0, gpu 0, now 0",
        "events": "doctor-events, 0 waiting",
        "clock": "same as the store's",
    }.items():
        assert found[name] == Check(name, ok=True, detail=detail)
    assert found["store"].ok
    sqs.close()


def test_a_table_is_made_protected_and_the_doctor_says_what_is_off(
    aws_server: Running, fleet: Callable[..., Path]
) -> None:
    settings = on_aws(aws_server)
    db, table = Service("dynamodb", aws_server.url, "us-east-1", KEY, SECRET), settings["store"].partition("://")[2]
    with Library(fleet(**settings)) as library:
        found = {check.name: check for check in library.maintenance.doctor()}
        on = "point-in-time recovery and deletion protection"
        assert found["protection"] == Check("protection", ok=True, detail=on)
        with pytest.raises(RushesError, match="protected against deletion"):
            db.ask("delete_table", TableName=table)
        db.ask("update_table", TableName=table, DeletionProtectionEnabled=False)
        off = {"PointInTimeRecoveryEnabled": False}
        db.ask("update_continuous_backups", TableName=table, PointInTimeRecoverySpecification=off)
        found = {check.name: check for check in library.maintenance.doctor()}
        assert not found["protection"].ok
        assert found["protection"].detail == "off: deletion protection, point-in-time recovery"
        assert "run-on-aws.md" in found["protection"].hint
    db.close()


@pytest.mark.parametrize("name", ["", "ab", "a.b.c", "a b", "tab/le", "ü" * 5, "x" * 51])
def test_a_name_that_no_table_or_queue_can_have_is_refused_before_anything_is_made(
    aws_server: Running, fleet: Callable[..., Path], name: str
) -> None:
    db, sqs = (Service(service, aws_server.url, "us-east-1", KEY, SECRET) for service in ("dynamodb", "sqs"))
    before = db.ask("list_tables")["TableNames"], sqs.ask("list_queues").get("QueueUrls", ())
    with pytest.raises(Refused, match="is not a valid table name") as no:
        Library(fleet(**on_aws(aws_server, store=f"dynamodb://{name}")))
    assert "3 to 50" in no.value.advice
    assert (db.ask("list_tables")["TableNames"], sqs.ask("list_queues").get("QueueUrls", ())) == before
    db.close()
    sqs.close()


def test_a_queue_or_bucket_that_is_not_there_is_named(aws_server: Running, fleet: Callable[..., Path]) -> None:
    found = checks(fleet(**on_aws(aws_server, storage_events="no-such-queue", blobs="s3://nosuch/home")))
    events, results = found["events"], found["results"]
    assert (events.ok, results.ok) == (False, False)
    assert events.detail.startswith("no-such-queue: ")
    assert "create the queue of storage events" in events.hint
    assert results.detail.startswith("s3://nosuch/home: ")
    assert "\n" not in results.detail
    assert results.hint.startswith("Create it")


def test_queues_that_vanished_are_a_finding(aws_server: Running, fleet: Callable[..., Path]) -> None:
    settings = on_aws(aws_server)
    sqs = Service("sqs", aws_server.url, "us-east-1", KEY, SECRET)
    with Library(fleet(**settings)) as library:
        assert _hints(library.home).ok
        name = f"rushes-{settings['store'].removeprefix('dynamodb://')}-gpu"
        sqs.ask("delete_queue", QueueUrl=sqs.ask("get_queue_url", QueueName=name)["QueueUrl"])
        (found,) = [c for c in library.maintenance.doctor() if c.name == "hints"]
    assert not found.ok
    sqs.close()


def test_valkey_may_be_named_by_its_own_name(database: str, fleet: Callable[..., Path], valkey_server: Running) -> None:
    named = valkey_server.url.replace("redis://", "valkey://")
    home = fleet(store=database, hints=named, shared="yes")
    assert check(home, "hints") == Check("hints", ok=True, detail=masked(named))


@pytest.mark.parametrize("hints", ["kafka://host", "valkey", "redis://host:port"])
def test_other_hints_are_refused_in_plain_words(database: str, fleet: Callable[..., Path], hints: str) -> None:
    found = check(fleet(store=database, hints=hints, shared="yes"), "hints")
    assert not found.ok
    assert "valkey://host:port" in found.hint


@pytest.mark.parametrize("server", ["ministack_s3", "seaweed_s3"])
def test_pages_that_the_bucket_shuts_out_are_a_finding_that_is_put_right(
    server: str, request: pytest.FixtureRequest, fleet: Callable[..., Path]
) -> None:
    place: BucketLocation = request.getfixturevalue(server)
    s3, bucket = Service("s3", place.endpoint, "us-east-1", place.key, place.secret), f"pages-{secrets.token_hex(4)}"
    s3.ask("create_bucket", Bucket=bucket)
    theirs = {"ID": "theirs", "AllowedOrigins": ["https://*.example.net"], "AllowedMethods": ["GET"]}
    s3.ask("put_bucket_cors", Bucket=bucket, CORSConfiguration={"CORSRules": [theirs]})
    named = {"s3_endpoint": place.endpoint, "s3_key": place.key, "s3_secret": place.secret}
    home = fleet(blobs=f"s3://{bucket}/home", hosts="rushes.example.org", cors="https://a.example.net", **named)
    found = check(home, "uploads")
    assert (found.ok, found.hint) == (False, "rushes doctor --fix")
    assert "https://rushes.example.org, https://a.example.net" in found.detail
    assert "the bucket allows" in CliRunner().invoke(main, ["--home", str(home), "doctor", "--fix"]).output
    with Library(home, options={"hosts": ("other.example.org", "the test")}) as library:
        library.maintenance.fix()
        rules = s3.ask("get_bucket_cors", Bucket=bucket)["CORSRules"]
        assert [(rule["ID"], len(rule["AllowedOrigins"])) for rule in rules] == [("theirs", 1), ("rushes", 3)]
        assert library.home.multipart
        url = library.home.multipart.sign_put("input/a.mp4", 60)
    asked = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "content-type"}
    for origin in ("https://rushes.example.org", "https://evil.example.com"):
        said = httpx.options(url, headers={**asked, "Origin": origin}).headers.get("access-control-allow-origin", "")
        if server == "seaweed_s3":  # the other one lets everybody in
            assert (said == origin) is ("evil" not in origin)


class _Service(BaseHTTPRequestHandler):
    """Says how it is to everybody, and the rest to who has the token."""

    def do_GET(self) -> None:
        known = self.path == "/health" or self.headers["Authorization"] == "Bearer right"
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(b'{"status": "healthy", "models_loaded": ["a", "b"]}')

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def inference() -> Iterator[str]:
    """The address of an inference service."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_inference_services_are_asked_how_they_are(
    inference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "inference" not in checks(tmp_path)
    monkeypatch.setenv("RUSHES_INFERENCE", inference)
    monkeypatch.setenv("RUSHES_INFERENCE_TOKEN", "right")
    assert check(tmp_path, "inference") == Check("inference", ok=True, detail=f"{inference} healthy, 2 models")
    monkeypatch.setenv("RUSHES_STAGE_INFERENCE", "transcribe=http://127.0.0.1:1")
    found = check(tmp_path, "inference")
    assert not found.ok
    assert f"{inference} healthy, 2 models; http://127.0.0.1:1 no response: " in found.detail
    assert "rushes ml" in found.hint
    monkeypatch.setenv("RUSHES_STAGE_INFERENCE", "")
    monkeypatch.setenv("RUSHES_INFERENCE_TOKEN", "wrong")
    found = check(tmp_path, "inference")
    assert (found.ok, found.detail) == (False, f"{inference} refuses the token")
    assert "RUSHES_INFERENCE_TOKEN" in found.hint
