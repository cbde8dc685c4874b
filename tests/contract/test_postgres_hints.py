"""What only hints by PostgreSQL can do wrong: NOTIFY that nobody needs, connections that are lost."""

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import postgres_kit
import psycopg
import pytest

from rushes.domain.errors import RushesError
from rushes.domain.job import NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.task import Draft
from rushes.ledger.postgres import PostgresLedger
from rushes.library import Library
from rushes.postgres.store import Postgres
from rushes.postgres.transaction import Notification
from rushes.settings import Settings
from rushes.transport.notify import _IDLE, _LOCK, _SEND, Notify
from rushes.wiring.postgres import PostgresSetup

JOB = job_id("me", "film")
NEW = NewJob(JOB, "me", "film", "film.mp4", "searchable", "{}")
FIRST = Draft(task_id(JOB, "probe", None), JOB, "probe", None, "{}")
LONG = 120.0  # seconds in which something must come; nothing here takes so long
IDLE = f"SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = {_LOCK} AND granted"
# A worker that never looks by itself once it has found nothing: only a hint wakes it.
NEVER_LOOKS = """
import sys
from rushes.__main__ import main
from rushes.library.work import workers
from rushes.transport import notify
from rushes.worker import core, lane_group
workers.missing_models = lambda *_: ()
notify.LISTENING_SECONDS = lane_group.LISTEN_SECONDS = core.SWEEP_IDLE_SECONDS = 1e6
sys.exit(main())
"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Postgres]:
    with contextlib.closing(postgres_kit.database(18, tmp_path)) as db:
        yield db


@contextlib.contextmanager
def connected() -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_kit.direct(18), autocommit=True) as connection:
        yield connection


def test_nobody_is_told_unless_somebody_is_idle(db: Postgres) -> None:
    speaker, listener = (
        Notify(db, listen=postgres_kit.direct(18)),
        Notify(Postgres(db.url), listen=postgres_kit.direct(18)),
    )
    with connected() as ear:
        ear.execute("LISTEN rushes")
        busy = "SELECT FROM pg_locks WHERE locktype = 'advisory'"
        while ear.execute(busy).fetchone() is not None:  # the server has not yet noticed that those of before are gone
            time.sleep(0.01)
        speaker.announce("cpu", ["nobody-is-idle"])
        assert list(ear.notifies(timeout=0)) == []
        met: set[str] = set()
        end = time.monotonic() + LONG
        while not met and time.monotonic() < end:
            listener.wait(["cpu"], 0.01)
            speaker.announce("cpu", ["a"])
            met |= set(listener.wait(["cpu"], 1.0))
        assert met == {"a"}
    speaker.close()
    listener.close()


def test_a_hint_waits_for_no_disk_and_leaves_the_session_as_it_was(db: Postgres) -> None:
    with connected() as idle, psycopg.connect(db.url, autocommit=True) as speaker:
        idle.execute(_IDLE[True].encode())
        with speaker.transaction():
            speaker.execute(_SEND.encode(), {"hint": '["me","cpu",[]]'})
            assert speaker.execute("SHOW synchronous_commit").fetchall() == [("off",)]
        assert speaker.execute("SHOW synchronous_commit").fetchall() == [("on",)]


def test_whether_somebody_is_idle_is_asked_without_holding_anybody_up(db: Postgres) -> None:
    with connected() as other, psycopg.connect(db.url, autocommit=True) as speaker, speaker.transaction():
        speaker.execute(_SEND.encode(), {"hint": '["me","cpu",[]]'})
        assert other.execute(f"SELECT pg_try_advisory_lock_shared({_LOCK})").fetchall() == [(True,)]


def test_a_new_job_is_told_of_with_its_commit_and_once(db: Postgres) -> None:
    speaker, ledger = Notify(db, listen=postgres_kit.direct(18)), PostgresLedger(db)
    with connected() as ear, connected() as idle, connected() as other:
        ear.execute("LISTEN rushes")
        idle.execute(_IDLE[True].encode())
        ledger.submit(NEW, FIRST)
        (told,) = ear.notifies(timeout=LONG, stop_after=1)
        assert json.loads(told.payload)[1:] == ["cpu", [FIRST.id]]
        assert other.execute("SELECT FROM rushes.job").fetchall(), "told before it could be seen"
        speaker.announce("cpu", [FIRST.id])  # of this one others know
        speaker.announce("cpu", [FIRST.id])  # said again, it is told again
        speaker.announce("cpu", ["last"])
        told_since = [json.loads(hint.payload)[2] for hint in ear.notifies(timeout=LONG, stop_after=2)]
    assert told_since == [[FIRST.id], ["last"]]
    speaker.close()


def test_a_hint_that_fails_fails_no_job_and_counts_as_not_sent(db: Postgres, caplog: pytest.LogCaptureFixture) -> None:
    sent: list[str] = []
    ledger = PostgresLedger(db)
    db.notifier = lambda _, task: Notification("SELECT 1 / 0", {}, lambda: sent.append(task))
    assert ledger.submit(NEW, FIRST).created
    assert ledger.job(NEW.id).id == NEW.id
    assert "hints were not sent" in caplog.text
    assert sent == []
    assert not ledger.submit(NEW, FIRST).created


def test_a_job_that_fails_is_not_hidden_by_its_hint(db: Postgres) -> None:
    ledger = PostgresLedger(db)
    db.notifier = lambda _, task: Notification("SELECT 1", {}, lambda: pytest.fail(f"told of {task}"))
    with connected() as someone:
        someone.execute("ALTER TABLE rushes.job ADD CONSTRAINT none CHECK (id = '') NOT VALID")
        try:
            with pytest.raises(RushesError, match="violates check constraint"):
                ledger.submit(NEW, FIRST)
        finally:
            someone.execute("ALTER TABLE rushes.job DROP CONSTRAINT none")


def test_hints_come_again_after_the_connection_was_lost(db: Postgres) -> None:
    speaker, listener = (
        Notify(db, listen=postgres_kit.direct(18)),
        Notify(Postgres(db.url), listen=postgres_kit.direct(18)),
    )
    for n in range(3):
        met: set[str] = set()
        end = time.monotonic() + LONG
        while not met and time.monotonic() < end:
            speaker.announce("cpu", [f"a{n}"])
            met |= set(listener.wait(["cpu"], 0.2))
        assert met == {f"a{n}"}
        with connected() as someone:
            someone.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
            someone.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND query LIKE '%advisory_lock_shared%'"
            )
    speaker.close()
    listener.close()


def test_whoever_becomes_idle_looks_once_more_however_slowly_it_begins_to_wait(
    db: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(Notify(db, listen=postgres_kit.direct(18))) as hints:
        poke = hints._poke

        def slow() -> None:
            poke()
            end = time.monotonic() + 1.0
            while not hints._idle and time.monotonic() < end:
                time.sleep(0.01)

        monkeypatch.setattr(hints, "_poke", slow)
        begun = time.monotonic()
        assert hints.wait(["cpu"], LONG) == ()
        assert time.monotonic() - begun < LONG, "it slept to the end"


def test_a_server_that_froze_keeps_nobody_from_leaving(db: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    hints, froze, thaws = Notify(db, listen=postgres_kit.direct(18)), threading.Event(), threading.Event()

    def frozen(_server: psycopg.Connection) -> None:
        froze.set()
        thaws.wait()

    monkeypatch.setattr(hints, "_listen_once", frozen)
    hints.wait(["cpu"], 0.01)
    assert froze.wait(LONG)
    leaving = threading.Thread(target=hints.close, daemon=True)
    leaving.start()
    leaving.join(LONG)
    thaws.set()
    assert not leaving.is_alive(), "it waits for the server to come back"


def test_a_fleet_hears_of_work_by_naming_its_store_alone(db: Postgres, tmp_path: Path) -> None:
    settings = Settings(store=postgres_kit.direct(18))
    speaker, listener = (PostgresSetup(settings, tmp_path).transport(("cpu",)) for _ in range(2))
    met: set[str] = set()
    end = time.monotonic() + LONG
    while not met and time.monotonic() < end:
        speaker.announce("cpu", ["a"])
        met |= set(listener.wait(["cpu"], 0.2))
    speaker.close()
    listener.close()
    assert met == {"a"}


def test_a_fleet_behind_a_pooler_listens_only_where_it_is_told_to(db: Postgres, tmp_path: Path) -> None:
    for listen in ("", postgres_kit.direct(18)):
        settings = Settings(store=db.url, pgbouncer=True, listen=listen)
        with contextlib.closing(PostgresSetup(settings, tmp_path).transport(("cpu",))) as hints:
            hints.wait(["cpu"], 0.01)
            assert isinstance(hints, Notify)
            assert (hints._listener is not None) == bool(listen)


def test_a_fleet_behind_a_pooler_without_a_direct_url_only_looks(db: Postgres) -> None:
    with contextlib.closing(Notify(db, listen="")) as hints:
        hints.announce("cpu", ["a"])
        assert hints.wait(["cpu"], LONG) == ("a",)
        assert hints._listener is None


def wait_until(server: psycopg.Connection, *, idle: bool) -> None:
    """Until somebody is idle, or nobody is."""
    end = time.monotonic() + LONG
    while (server.execute(IDLE.encode()).fetchone() is not None) != idle:
        assert time.monotonic() < end, f"idle: {not idle}"
        time.sleep(0.01)


@contextlib.contextmanager
def working(home: Path) -> Iterator[None]:
    """A process that serves a home, and is ended at once."""
    whole = [sys.executable, "-c", NEVER_LOOKS, "--home", str(home), "worker", "--slots", "1"]
    process = subprocess.Popen(whole, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_an_idle_worker_begins_with_what_is_added_though_it_never_looks(db: Postgres, tmp_path: Path) -> None:
    home, film = tmp_path / "home", tmp_path / "film.mp4"
    home.mkdir()
    (home / "rushes.toml").write_text(f'store = "{postgres_kit.direct(18)}"\nshared = true\n')
    film.write_bytes(b"\0\0\0\x18ftypmp42")
    with connected() as server, Library(home) as library:
        wait_until(server, idle=False)  # those of before are gone
        with working(home):
            wait_until(server, idle=True)
            (added,) = library.add([film])
            assert added.job
            end = time.monotonic() + LONG
            while library.jobs.find(added.job.id).started_at is None:
                assert time.monotonic() < end, "nobody told the worker"
                time.sleep(0.01)
