"""What only PostgreSQL can do wrong: schemas, sessions, locks, snapshots, limits."""

import contextlib
import gc
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import postgres_kit
import psycopg
import pytest
from ledger_kit import BROKEN, OWNER, claim, done, film, first_of, new_job, opened, result, worker

from rushes.domain.errors import RushesError, StoreAway, WrongHome
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, JobState
from rushes.domain.keys import task_id
from rushes.domain.task import Draft, Need, TaskState
from rushes.index.changes import CursorMove
from rushes.index.postgres import PostgresIndex
from rushes.ledger.postgres import SQL, PostgresLedger, claims
from rushes.postgres import store
from rushes.postgres.store import Postgres
from rushes.postgres.transaction import Transaction
from rushes.records.postgres import PostgresRecords

LONG = 120.0  # seconds in which something must end; nothing here takes so long
NEW = new_job()
_fresh = itertools.count()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Postgres]:
    with contextlib.closing(postgres_kit.database(18, tmp_path)) as db:
        yield db


@pytest.fixture
def ledger(db: Postgres) -> PostgresLedger:
    return PostgresLedger(db)


@pytest.fixture
def new_database(db: Postgres) -> Iterator[str]:
    """The URL of a database that nobody has used."""
    name = f"fresh{os.getpid()}_{next(_fresh)}"
    with psycopg.connect(db.url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        yield db.url.rpartition("/")[0] + f"/{name}"
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def connected(db: Postgres) -> Iterator[psycopg.Connection]:
    with psycopg.connect(db.url, autocommit=True) as connection:
        yield connection


def test_what_a_late_thread_opens_after_the_end_is_closed_with_the_store(new_database: str) -> None:
    db = Postgres(new_database)
    db.close()
    assert db.ask("SELECT 1", {}) == [(1,)]
    (connection,) = db._open
    del db
    gc.collect()
    assert connection.closed


# Schemas
def test_many_who_open_a_new_database_at_once_all_get_in(new_database: str) -> None:
    errors: list[RushesError] = []
    gate = threading.Barrier(6)

    def enter() -> None:
        with contextlib.closing(Postgres(new_database)) as db:
            gate.wait()
            try:
                PostgresLedger(db)
                PostgresRecords(db)
                PostgresIndex(db)
            except RushesError as e:
                errors.append(e)

    _together([enter] * 6)
    assert errors == []


@pytest.mark.parametrize("part", ["ledger", "records", "index"])
def test_a_newer_schema_is_refused_and_left_alone(new_database: str, part: str) -> None:
    make = {"ledger": PostgresLedger, "records": PostgresRecords, "index": PostgresIndex}[part]
    with contextlib.closing(Postgres(new_database)) as db:
        make(db)
        with connected(db) as someone:
            table = "rushes_index.version SET number" if part == "index" else "rushes.part SET needed"
            someone.execute(f"UPDATE {table} = 99999999")
        with pytest.raises(WrongHome, match="newer rushes"):
            make(db)


@pytest.mark.parametrize(
    "before", ["UPDATE rushes.part SET version = 1 WHERE name = 'ledger'", "ALTER TABLE rushes.part DROP needed"]
)
def test_a_ledger_from_before_the_first_release_is_refused_with_what_to_do(new_database: str, before: str) -> None:
    with contextlib.closing(Postgres(new_database)) as db:
        PostgresLedger(db)
        with connected(db) as someone:
            someone.execute(before)
        with pytest.raises(WrongHome, match="before the first release") as refused:
            PostgresLedger(db)
        assert "new database" in refused.value.advice


def test_a_worker_that_runs_while_the_schema_grows_is_told_so(new_database: str) -> None:
    with contextlib.closing(Postgres(new_database)) as db:
        ledger = PostgresLedger(db)
        worker(ledger)
        with connected(db) as someone:
            someone.execute("UPDATE rushes.part SET version = version + 1, needed = version + 1")
        with pytest.raises(WrongHome, match="newer rushes"):
            worker(ledger)


def test_an_older_index_is_made_anew(new_database: str) -> None:
    with contextlib.closing(Postgres(new_database)) as db:
        PostgresIndex(db).apply(CursorMove("ledger", "7"))
        with connected(db) as someone:
            someone.execute("UPDATE rushes_index.version SET number = 1")
        assert PostgresIndex(db).cursor("ledger") == ""


# Sessions
def test_everything_goes_without_prepared_statements_and_leaves_no_trace_in_a_session(ledger: PostgresLedger) -> None:
    with contextlib.closing(Postgres(ledger._db.url, size=1, pooled=True)) as db:
        behind = PostgresLedger(db)
        opened(behind, NEW, film(NEW))
        worker(behind)
        while leases := claim(behind, n=5):
            behind.complete("w1", [done(lease) for lease in leases])
        assert behind.job(NEW.id).state is JobState.COMPLETED
        (limits,) = db.ask("SELECT count(*) FROM pg_settings WHERE source = 'session'", {})[0]
        (prepared,) = db.ask("SELECT count(*) FROM pg_prepared_statements", {})[0]
        assert (limits, prepared) == (0, 0)


def test_an_idle_claim_and_an_idle_sweep_write_nothing(ledger: PostgresLedger) -> None:
    worker(ledger)
    with connected(ledger._db) as someone:

        def wrote() -> bool:
            last = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
            before = someone.execute(last).fetchall()
            assert claim(ledger) == ()
            ledger.sweep()
            return someone.execute(last).fetchall() != before

        assert any(not wrote() for _ in range(100))  # the server's own vacuum writes now and then


def test_a_worker_with_nothing_to_do_costs_few_statements(
    ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    execute = psycopg.Connection.execute

    def counted(db: psycopg.Connection, query: str, *args: Any, **more: Any) -> Any:
        said.append(query)
        return execute(db, query, *args, **more)

    worker(ledger)
    monkeypatch.setattr(psycopg.Connection, "execute", counted)
    for verb, most in ((lambda: worker(ledger), 5), (ledger.sweep, 2), (lambda: claim(ledger), 2)):
        said.clear()
        verb()
        assert len(said) <= most, said


def test_every_writing_verb_has_a_crash_point(ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[str] = []

    @contextlib.contextmanager
    def note(name: str) -> Iterator[None]:
        met.append(name)
        yield

    monkeypatch.setattr(store, "effect", note)
    opened(ledger, NEW, film(NEW))
    worker(ledger)
    (lease,) = claim(ledger)
    ledger.fail("w1", lease.task, lease.fence, BROKEN, None)
    ledger.give_back("w1", [], "drain")
    ledger.arrived("k", "e")
    ledger.revive(NEW.id)
    ledger.set_aside(OWNER, ["x"], "gc")
    ledger.log(lease.task, 1, 1, ["line"])
    ledger.control("w1", JobCommand.LEAVE)
    ledger.sweep()
    expected = {"submit", "draft", "arrived", "claim", "renew", "complete", "fail", "give_back", "control", "revive"}
    assert {f"ledger.{verb}" for verb in expected | {"set_aside", "log", "sweep"}} <= set(met)


# What changed
def test_a_transaction_that_ends_late_is_not_passed_over(ledger: PostgresLedger) -> None:
    early, late = new_job("early"), new_job("late")
    for new in (early, late):
        ledger.submit(new, first_of(new))
    _, cursor = ledger.changed()
    with psycopg.connect(ledger._db.url) as slow:
        slow.execute(
            "UPDATE rushes.job_change SET changed = pg_current_xact_id() FROM rushes.job"
            " WHERE job = number AND id = %s",
            (late.id,),
        )
        ledger.control(early.id, JobCommand.PAUSE)  # begins later, ends sooner
        jobs, cursor = ledger.changed(cursor)
        assert jobs == (early.id,)
        assert ledger.changed(cursor) == ((), cursor)
    jobs, cursor = ledger.changed(cursor)
    assert jobs == (late.id,)
    assert ledger.changed(cursor) == ((), cursor)


def test_a_restored_dump_is_followed_from_the_beginning(ledger: PostgresLedger) -> None:
    ledger.submit(NEW, first_of(NEW))
    with connected(ledger._db) as someone:
        someone.execute("UPDATE rushes.job_change SET changed = '9000000000'")  # as from a cluster that has seen more
    assert PostgresLedger(ledger._db).changed("9000000000.1")[0] == (NEW.id,)


# Locks
def test_two_jobs_that_need_each_other_s_tasks_never_wait_for_each_other(db: Postgres) -> None:
    one, two = PostgresLedger(db), PostgresLedger(Postgres(db.url))
    jobs = [new_job("one"), new_job("two")]
    for new in jobs:
        opened(one, new, film(new, 20))
    last = new_job("last")
    needs = tuple(Need(d.id) for new in jobs for d in film(new, 20)[:20])
    opened(one, last, [Draft(task_id(last.id, "copy", None), last.id, "copy", None, "{}", needs=needs)])
    ready: list[str] = []

    def work(name: str, ledger: PostgresLedger) -> None:
        worker(ledger, name)
        while leases := claim(ledger, name, 3):
            ready.extend(ledger.complete(name, [done(lease) for lease in reversed(leases)]).ready)

    _together([lambda: work("w1", one), lambda: work("w2", two), lambda: work("w3", one), lambda: work("w4", two)])
    two.close()
    assert sorted(ready) == sorted([*(film(new, 20)[20].id for new in jobs), task_id(last.id, "copy", None)])
    assert {one.job(new.id).state for new in (*jobs, last)} == {JobState.COMPLETED}


def test_a_plan_and_the_completion_of_what_it_needs_never_miss_each_other(db: Postgres) -> None:
    ledgers = PostgresLedger(db), PostgresLedger(Postgres(db.url))
    for n in range(10):
        old, young = new_job(f"old{n}"), new_job(f"young{n}")
        opened(ledgers[0], old, film(old, 1))
        part, join = film(old, 1)
        copy = Draft(
            task_id(young.id, "copy", None), young.id, "copy", None, "{}", needs=(Need(part.id), Need(join.id))
        )
        ledgers[1].submit(young, first_of(young))
        for name, ledger in zip("ab", ledgers, strict=True):
            worker(ledger, name)
        (lease,) = claim(ledgers[0], "a", hinted=[part.id])
        (probe,) = claim(ledgers[1], "b", hinted=[first_of(young).id])
        ledgers[1].draft(young.id, probe.task, probe.fence, [copy], "")
        _together([
            lambda lease=lease: ledgers[0].complete("a", [done(lease)]),
            lambda probe=probe: ledgers[1].complete("b", [done(probe)]),
        ])  # fmt: skip
        assert ledgers[0].tasks(ids=[copy.id]).rows[0].unmet == 1
        (last,) = claim(ledgers[0], "a", hinted=[join.id])
        assert ledgers[0].complete("a", [done(last)]).ready == (copy.id,)
    ledgers[1].close()


def test_a_key_that_arrives_while_a_job_that_needs_it_is_submitted_is_never_missed(db: Postgres) -> None:
    ledgers = PostgresLedger(db), PostgresLedger(Postgres(db.url))
    for n in range(10):
        new = new_job(f"n{n}")
        first = first_of(new, [Need(f"key{n}", is_key=True)])
        _together([
            lambda new=new, first=first: ledgers[0].submit(new, first),
            lambda n=n: ledgers[1].arrived(f"key{n}", "e"),
        ])  # fmt: skip
        assert ledgers[0].tasks(new.id).rows[0].unmet == 0
    ledgers[1].close()


def test_many_who_submit_one_job_make_one(db: Postgres) -> None:
    ledgers = [PostgresLedger(Postgres(db.url)) for _ in range(4)]
    made: list[bool] = []
    _together([lambda g=g: made.append(g.submit(NEW, first_of(NEW)).created) for g in ledgers])
    for ledger in ledgers:
        ledger.close()
    assert sorted(made) == [False, False, False, True]
    assert [e.type for e in PostgresLedger(db).events(NEW.id)] == [EventType.SUBMITTED]


def test_the_reaper_passes_over_a_job_that_somebody_holds_and_comes_back(db: Postgres) -> None:
    held, free = new_job("held"), new_job("free")
    gone: set[str] = set()
    ledger = PostgresLedger(db, is_gone=lambda worker: worker.id in gone)
    for new in (held, free):
        opened(ledger, new, film(new, 1))
    worker(ledger)
    assert len(claim(ledger, n=5)) == 2
    gone.add("w1")
    with psycopg.connect(db.url) as frozen:
        frozen.execute("SELECT FROM rushes.job WHERE id = %s FOR UPDATE", (held.id,))
        assert ledger.sweep().released == 1
    assert ledger.sweep().released == 1
    assert ledger.sweep().released == 0


def test_a_worker_frozen_inside_a_transaction_is_let_go_and_commits_nothing(db: Postgres) -> None:
    ledger = PostgresLedger(db)
    opened(ledger, NEW, film(NEW))
    worker(ledger)
    one, two = claim(ledger, n=2)
    frozen, thaw, told = threading.Event(), threading.Event(), []

    def freeze() -> None:
        def body(tx: Transaction) -> None:
            tx.all("job_row", id=NEW.id)
            frozen.set()
            thaw.wait(LONG)

        with contextlib.closing(Postgres(db.url, idle=0.2)) as its:
            try:
                its.write("ledger.complete", SQL, body)
            except StoreAway as e:
                told.append(e)

    thread = threading.Thread(target=freeze)
    thread.start()
    frozen.wait(LONG)
    assert ledger.complete("w1", [done(one), done(two)]).ready == ()  # waits until the server has let go
    thaw.set()
    thread.join(LONG)
    assert len(told) == 1


# Limits
def test_a_server_that_says_nothing_is_away_in_bounded_time(ledger: PostgresLedger) -> None:
    ledger.submit(NEW, first_of(NEW))
    with contextlib.closing(Postgres(ledger._db.url, size=1, deadline=LONG)) as db:
        slow = PostgresLedger(db)
        (pid,) = db.ask("SELECT pg_backend_pid()", {})[0]
        db._free[False][0].deadline = 0.5
        os.kill(pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            with pytest.raises(StoreAway, match="does not respond"):
                slow.job(NEW.id)
            assert time.monotonic() - begun < LONG
        finally:
            os.kill(pid, signal.SIGCONT)
        assert slow.job(NEW.id).id == NEW.id  # on a new connection


def test_who_finds_every_connection_in_use_is_told_in_bounded_time(db: Postgres) -> None:
    with contextlib.closing(Postgres(db.url, size=1, deadline=LONG)) as small, small.alone(1, 0.0) as mine:
        assert mine
        small._deadline = 0.2
        with pytest.raises(StoreAway, match="in use"):
            small.ask("SELECT 1", {})


def test_a_server_that_is_not_there_is_away() -> None:
    with pytest.raises(StoreAway):
        PostgresLedger(Postgres("postgresql://postgres@127.0.0.1:1/postgres"))


def test_a_bug_is_not_taken_for_a_store_that_is_away(db: Postgres) -> None:
    with pytest.raises(RushesError) as told:
        db.ask("SELECT nonsense", {})
    assert not isinstance(told.value, StoreAway)
    assert db.ask("SELECT 1", {}) == [(1,)]


def test_text_that_postgresql_cannot_carry_is_kept_legible(ledger: PostgresLedger) -> None:
    odd = replace(NEW, name="a\0b\udcff.mp4")
    opened(ledger, odd, film(NEW))
    ledger.log(film(NEW)[0].id, 1, 1, ["nul \0 and \udcff"])
    assert ledger.job(NEW.id).name == "a\ufffdb?.mp4"
    (line,) = ledger.events(NEW.id, types={EventType.LOG}, task=film(NEW)[0].id)
    assert line.data["line"] == "nul \ufffd and ?"


# Claims
def test_all_who_want_a_task_at_once_get_one(db: Postgres) -> None:
    ledgers = [PostgresLedger(Postgres(db.url)) for _ in range(8)]
    opened(ledgers[0], NEW, film(NEW, 64))
    for n, ledger in enumerate(ledgers):
        worker(ledger, f"w{n}")
    gate = threading.Barrier(len(ledgers))
    got: list[tuple[str, ...]] = []

    def work(n: int) -> None:
        for _ in range(4):
            gate.wait(LONG)
            got.append(tuple(lease.task for lease in claim(ledgers[n], f"w{n}", 2)))

    _together([lambda n=n: work(n) for n in range(len(ledgers))])
    for ledger in ledgers:
        ledger.close()
    assert [len(tasks) for tasks in got] == [2] * 32
    assert len({task for tasks in got for task in tasks}) == 64


@pytest.mark.parametrize(("hinted", "doubt"), [(False, 30.0), (True, 30.0), (False, 0.0)])
def test_a_claim_whose_answer_was_lost_is_answered_by_the_next_ones(
    ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch, hinted: bool, doubt: float
) -> None:
    """Also if the server is away for longer than it could be at that claim."""
    monkeypatch.setattr(claims, "DOUBT_SECONDS", doubt)
    opened(ledger, NEW, film(NEW, 8))
    worker(ledger)
    (known,) = claim(ledger)
    write = ledger._db.write

    def lost(*values: Any) -> None:
        write(*values)
        raise StoreAway("after some were leased")

    with monkeypatch.context() as away:
        away.setattr(ledger._db, "write", lost)
        with pytest.raises(StoreAway):
            claim(ledger, n=5, hinted=[d.id for d in film(NEW, 8)] if hinted else ())
    again = [lease for n in (2, 9) for lease in claim(ledger, n=n)]
    assert [(lease.chunk, lease.fence) for lease in again] == [(n, 1) for n in range(1, 6)]
    assert [lease.chunk for lease in claim(ledger, n=9)] == [6, 7]
    assert known.task not in {lease.task for lease in again}


def test_a_task_that_is_leased_while_what_it_needs_is_done_again_is_not_lost(db: Postgres) -> None:
    ledger = PostgresLedger(db)
    opened(ledger, NEW, film(NEW, 2))
    worker(ledger)
    worker(ledger, "w2")
    parts = claim(ledger, n=2)
    ledger.complete("w1", [done(lease) for lease in parts])
    with psycopg.connect(db.url) as other, ThreadPoolExecutor(1) as pool:
        asked = {"worker": "w2", "at": None, "now": None, "lanes": ["cpu"], "n": 1, "claim": 7}
        asked |= {"ids": [], "every": True}
        other.execute(SQL["claim"], asked)
        reviving = pool.submit(ledger.revive, NEW.id, [parts[0].task], "", True)
        _until(lambda: ledger._db.ask("SELECT FROM pg_locks WHERE NOT granted", {}))
        other.commit()
        reviving.result(LONG)
    assert [t.state.value for t in ledger.tasks(NEW.id).rows] == ["done", "ready", "done", "leased"]
    ledger.control("w2", JobCommand.LEAVE)
    assert ledger.sweep().released == 1


def test_a_job_that_is_steered_while_its_tasks_are_claimed_keeps_every_task_in_step(db: Postgres) -> None:
    ledgers = [PostgresLedger(Postgres(db.url)) for _ in range(4)]
    opened(ledgers[0], NEW, film(NEW, 400))
    stop = threading.Event()

    def work(n: int) -> None:
        worker(ledgers[n], f"w{n}")
        while not stop.is_set():
            leases = claim(ledgers[n], f"w{n}", 3)
            mine = [lease for lease in leases[:2] if lease.stage == "develop"]  # the join ends the job: it comes last
            ledgers[n].complete(f"w{n}", [done(lease) for lease in mine])
            left = [(lease.task, lease.fence) for lease in leases if lease not in mine]
            ledgers[n].give_back(f"w{n}", left, "for another")

    def steer() -> None:
        try:
            for n in range(1, 21):
                steer_once(n)
        finally:
            stop.set()

    def steer_once(n: int) -> None:
        ledger = ledgers[3]
        ledger.control(NEW.id, JobCommand.PRIORITY, n)
        assert db.ask("SELECT DISTINCT rank FROM rushes.task", {}) == [(-n,)]
        ledger.control(NEW.id, JobCommand.PAUSE)
        before = {t.id: t.fence for t in ledger.tasks(NEW.id).rows if t.state is not TaskState.LEASED}
        rows = ledger.tasks(NEW.id, TaskState.READY).rows
        assert all(t.parked and t.fence == before.get(t.id, t.fence) for t in rows)
        ledger.control(NEW.id, JobCommand.RESUME)

    _together([*(lambda n=n: work(n) for n in range(3)), steer])
    worker(ledgers[0], "last")
    while leases := claim(ledgers[0], "last", 50):
        ledgers[0].complete("last", [done(lease) for lease in leases])
    assert ledgers[0].job(NEW.id).state is JobState.COMPLETED
    assert ledgers[0].job(NEW.id).counts.done == 402
    for ledger in ledgers:
        ledger.close()


def test_of_many_that_are_leased_together_each_task_ends_by_itself(ledger: PostgresLedger) -> None:
    opened(ledger, NEW, film(NEW, 10))
    me = worker(ledger)
    leases = claim(ledger, n=8)
    assert ledger.workers()[-1].held == tuple(lease.task for lease in leases)
    ledger.renew(me, {lease.task: lease.fence for lease in leases}, {leases[0].task: 0.5})
    ledger.fail("w1", leases[1].task, leases[1].fence, BROKEN, 60.0)
    ledger.give_back("w1", [(leases[2].task, leases[2].fence)], "drain")
    ledger.complete("w1", [done(leases[3]), done(leases[4])])
    rows = ledger.tasks(NEW.id).rows[1:]
    assert [t.state.value for t in rows[:6]] == ["leased", "ready", "ready", "done", "done", "leased"]
    assert [t.progress for t in rows[:2]] == [0.5, 0.0]
    assert [t.state.value for t in rows[8:]] == ["ready", "ready", "waiting"]
    assert set(ledger.workers()[-1].held) == {leases[n].task for n in (0, 5, 6, 7)}


def _until(seen: Callable[[], object]) -> None:
    end = time.monotonic() + LONG
    while not seen() and time.monotonic() < end:
        threading.Event().wait(0.01)


def _together(works: list[object]) -> None:
    """Run these at once, and let what they raise be seen."""
    raised: list[BaseException] = []

    def run(work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as e:  # noqa: BLE001 - told below
            raised.append(e)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert raised == []


def test_of_one_batch_every_result_is_its_owners_and_none_is_of_a_lost_lease(ledger: PostgresLedger) -> None:
    owners = ("ann", "bob", "eve")
    for owner in owners:
        new = new_job(owner=owner)
        ledger.submit(new, first_of(new))
    worker(ledger)
    ann, bob, eve = claim(ledger, n=3)
    ledger.give_back("w1", [(eve.task, eve.fence)], "for a test")
    said = ledger.complete("w1", [done(lease, result("same")) for lease in (ann, bob, eve)]).verdicts
    assert said[:2] == ("ok", "ok")
    assert [len(ledger.known(owner, ["same-key"])) for owner in owners] == [1, 1, 0]


def test_claims_are_in_order_wherever_their_rows_lie(ledger: PostgresLedger) -> None:
    opened(ledger, NEW, film(NEW, chunks=4))
    worker(ledger)
    leases = claim(ledger, n=4)
    for lease in reversed(leases):
        ledger.give_back("w1", [(lease.task, lease.fence)], "for a test")
    assert [lease.task for lease in claim(ledger, n=4)] == [lease.task for lease in leases]


def test_a_statement_that_fails_spoils_no_connection_for_those_after_it(db: Postgres) -> None:
    sql = {"fail": "SELECT 1 / 0", "after": "SELECT %(n)s::integer", "too": "SELECT %(n)s::integer + 1"}

    def body(tx: Transaction, *, fails: bool) -> list[int]:
        sent = [tx.send(name, **({} if name == "fail" else {"n": 1})) for name in sql if fails or name != "fail"]
        return [row[0] for answer in sent for row in answer()]

    assert db.write("test", sql, lambda t: body(t, fails=False)) == [1, 2]
    for _ in range(3):  # often enough for each to be taken for prepared
        with pytest.raises(RushesError, match="division by zero"):
            db.write("test", sql, lambda t: body(t, fails=True))
    assert db.write("test", sql, lambda t: body(t, fails=False)) == [1, 2]


def test_what_is_broken_off_before_its_commit_leaves_no_trace(db: Postgres) -> None:
    def broken_off(tx: Transaction) -> None:
        tx.run("add")
        raise KeyError

    with connected(db) as beside:
        beside.execute("CREATE TABLE whole (n integer)")
        with pytest.raises(KeyError):
            db.write("test", {"add": "INSERT INTO whole VALUES (1)"}, broken_off)
        assert beside.execute("SELECT count(*) FROM whole").fetchall() == [(0,)]
        beside.execute("DROP TABLE whole")


def test_a_commit_that_the_database_refuses_is_told(new_database: str) -> None:
    with psycopg.connect(new_database, autocommit=True) as admin:
        admin.execute("CREATE TABLE late (n integer UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    with contextlib.closing(Postgres(new_database)) as db:
        for _ in range(10):  # psycopg tells it in one of two ways, as the answer comes in one piece or two
            with pytest.raises(RushesError):
                db.write("test", {"twice": "INSERT INTO late VALUES (1), (1)"}, lambda tx: tx.run("twice"))
        assert db.ask("SELECT count(*) FROM late", {}) == [(0,)]
