"""A server that operators watch: what it answers while a store or its hints are away, or its own version is old."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rushes.domain.errors import Refused
from rushes.library import Library
from rushes.library.maintenance import Maintenance
from rushes.servers import postgres, valkey
from rushes.servers.process import Running
from rushes.surfaces.server import app
from tests.api.kit import Serving, serving, wait_for
from tests.log_lines import logged

PARTS = {"ledger", "schema", "records", "blobs", "index", "hints"}
SHM = Path("/dev/shm")


@pytest.fixture(scope="module")
def server_of_rows() -> Iterator[Running]:
    with tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None) as folder:
        running = postgres.start(Path(folder))
        yield running
        running.stop()


@pytest.fixture
def database(server_of_rows: Running) -> Running:
    """An empty one: a store belongs to the results of one home."""
    with psycopg.connect(server_of_rows.url, autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS rushes, rushes_index CASCADE")
    return server_of_rows


@pytest.fixture
def fleet(home: Path, database: Running) -> Iterator[Serving]:
    with serving(home, store=database.url, shared=True) as running:
        yield running


def figures(server: Serving) -> dict[str, float]:
    """The samples of /metrics, by name and labels."""
    answer = server.http.get("/metrics")
    assert answer.status_code == 200, answer.text
    samples = [line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in samples}


def test_probes_and_figures_are_answered_while_the_store_is_away(home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None) as folder:
        database = postgres.start(Path(folder))
        with serving(home, store=database.url, shared=True) as server:
            ready = server.get("/readyz")
            assert (ready["status"], set(ready["parts"])) == ("ready", PARTS)
            assert server.http.get("/").status_code == 200
            database.process.kill()
            database.process.wait()
            wait_for(lambda: server.http.get("/api/v1/jobs").status_code == 503, "the store was never missed")
            assert server.get("/healthz") == {"status": "ok"}
            away = server.get("/readyz", 503)
            assert (away["status"], set(away["parts"])) == ("not ready", PARTS)
            assert away["parts"]["blobs"] == "ok"
            assert away["parts"]["ledger"] != "ok"
            told = figures(server)
            assert (told['rushes_up{part="ledger"}'], told['rushes_up{part="blobs"}']) == (0, 1)
            assert told['rushes_http_requests_total{method="GET",status="503"}'] >= 1
            assert "rushes_workers" not in str(told)
            back = start_again(Path(folder), database)
            wait_for(lambda: server.http.get("/readyz").status_code == 200, "the store was never found again")
            assert figures(server)['rushes_up{part="ledger"}'] == 1
        back.stop()


def start_again(folder: Path, was: Running) -> Running:
    """Children of the one that was killed hold on to the files for a moment."""
    started: list[Running] = []

    def starts() -> bool:
        try:
            started.append(postgres.start(folder, port=was.port, secret=was.secret))
        except Refused:
            return False
        return True

    wait_for(starts, "it never came back")
    return started[0]


def test_without_hints_it_is_degraded_but_ready_and_says_so_once(home: Path, tmp_path: Path, database: Running) -> None:
    server_of_hints = valkey.start(tmp_path)
    with serving(home, store=database.url, shared=True, hints=server_of_hints.url) as server, logged() as lines:
        assert server.get("/readyz")["status"] == "ready"
        server_of_hints.stop()
        degraded = server.get("/readyz")
        assert (degraded["status"], set(degraded["parts"])) == ("degraded", PARTS)
        assert degraded["parts"]["hints"] != "ok"
        assert figures(server)['rushes_up{part="hints"}'] == 0
        transport = server.library.home.transport
        for _ in range(3):
            wait_for(lambda: transport._breaker.rest() <= 0, "it was never tried again")  # type: ignore[attr-defined]
            transport.announce("cpu", ["job_a.probe"])
        assert len(lines.having("hints are unavailable")) == 1
        back = valkey.start(tmp_path, port=server_of_hints.port, secret=server_of_hints.secret)
        wait_for(lambda: transport._breaker.rest() <= 0, "it was never tried again")  # type: ignore[attr-defined]
        transport.announce("cpu", ["job_a.probe"])
        assert [line["message"][:4] for line in lines.having("hints are unavailable")] == ["hint", "over"]
        assert server.get("/readyz")["status"] == "ready"
        back.stop()


def test_a_running_server_notices_a_newer_schema_and_says_so_once(
    home: Path, database: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "SCHEMA_SECONDS", 0.01)
    looks: list[int] = []
    check = Maintenance.check_schema

    def counted(room: Maintenance) -> None:
        looks.append(1)
        check(room)

    monkeypatch.setattr(Maintenance, "check_schema", counted)
    with serving(home, store=database.url, shared=True) as fleet, logged() as lines:
        assert fleet.get("/readyz")["parts"]["schema"] == "ok"
        with psycopg.connect(database.url, autocommit=True) as db:
            db.execute("UPDATE rushes.part SET needed = 100 WHERE name = 'ledger'")
            try:
                newer = fleet.get("/readyz", 503)
                assert newer["parts"]["schema"] == "a newer rushes has changed this database"
                assert newer["parts"]["ledger"] == "ok"
                wait_for(lambda: bool(lines.having("older than its store")), "nobody said so")
                before = len(looks)
                wait_for(lambda: len(looks) > before + 2, "nobody looks again")
                assert len(lines.having("older than its store")) == 1
            finally:
                db.execute("UPDATE rushes.part SET needed = 0 WHERE name = 'ledger'")
        wait_for(lambda: fleet.http.get("/readyz").status_code == 200, "it was never well again")


def test_a_home_of_one_machine_notices_a_newer_schema_too(server: Serving) -> None:
    with server.ledger._store.file.write("test") as db:  # type: ignore[attr-defined]
        db.execute("UPDATE home SET value = '999' WHERE name = 'needed'")
    assert "written by a newer rushes" in server.get("/readyz", 503)["parts"]["schema"]


def test_each_process_has_its_own_name_in_the_database(fleet: Serving, home: Path, database: Running) -> None:
    options = {"store": (database.url, "test"), "shared": (True, "test")}
    with Library(home, options=options, process="worker") as beside, psycopg.connect(database.url) as db:
        beside.jobs.workers()
        fleet.get("/api/v1/jobs")
        found = db.execute("SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'rushes %'")
        names = {name.rpartition(" ")[0] for (name,) in found}
    assert {"rushes worker", "rushes library"} <= names


def test_every_answer_is_logged_with_its_request_and_without_secrets(server: Serving) -> None:
    with logged() as lines:
        answer = server.http.get("/api/v1/videos?limit=1&token=secret", headers={"X-Request-Id": "from-a-proxy.1"})
        assert answer.headers["X-Request-Id"] == "from-a-proxy.1"
        (line,) = [line for line in lines.all() if line.get("request") == "from-a-proxy.1"]
        assert {"time", "level", "service", "ms", "address"} <= line.keys()
        assert (line["method"], line["path"], line["status"], line["user"]) == ("GET", "/api/v1/videos", 200, "local")
        assert "secret" not in str(line)
        given = [server.http.get("/healthz", headers={"X-Request-Id": bad}) for bad in ("a b", "x" * 65, "a;b")]
        own = {answer.headers["X-Request-Id"] for answer in given}
        assert len(own) == 3
        assert all(id.isalnum() for id in own)


def test_what_a_request_logs_carries_its_id(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_library: Library) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Library, "summary", broken)
    with logged() as lines:
        answer = server.http.get("/api/v1/stats", headers={"X-Request-Id": "this-one"})
        assert answer.status_code == 500
        bugs = [line for line in lines.all() if "traceback" in line]
        assert {line["request"] for line in bugs} == {"this-one"}
