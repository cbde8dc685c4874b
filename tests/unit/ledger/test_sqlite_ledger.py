"""What is SQLite's own: its file, its settings, its refusals, its clock, its views, its crash points."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import pytest

from rushes.domain.errors import NoRoom, RushesError, StoreAway, WrongHome
from rushes.domain.job import JobCommand, NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.result import Result
from rushes.domain.task import Draft, Failure, Finish, Need, TaskState, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger import process
from rushes.ledger.clock import boot_id, boot_seconds, iso
from rushes.ledger.sqlite import SqliteLedger, store
from rushes.ledger.sqlite.filesystem import network_file_system
from rushes.sqlite import file

NEW = NewJob(job_id("ann", "film"), "ann", "film", "film.mp4", "searchable", "{}")
PROBE = Draft(task_id(NEW.id, "probe", None), NEW.id, "probe", None, "{}")
PARTS = [Draft(task_id(NEW.id, "part", n), NEW.id, "part", n, "{}", order=n, needs=(Need(PROBE.id),)) for n in range(3)]
FAILURE = Failure("BadMedia", "no picture", "play it", "will not work without a change")


def here(id: str = "w1") -> Incarnation:
    """A worker in this process."""
    start = process.process_start()
    assert start is not None
    return Incarnation(id, process.host_id(), boot_id(), os.getpid(), start)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with contextlib.closing(SqliteLedger(tmp_path / "ledger.sqlite")) as ledger:
        yield ledger


def opened(ledger: SqliteLedger) -> None:
    ledger.renew(here(), {}, {})
    ledger.submit(NEW, PROBE)
    (lease,) = ledger.claim("w1", ["cpu"], 1)
    ledger.draft(NEW.id, lease.task, lease.fence, PARTS, "{}")
    ledger.complete("w1", [Finish(lease.task, lease.fence)])


def look(path: Path, sql: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def test_it_is_noted_for_ninety_days_why_a_result_was_set_aside(tmp_path: Path) -> None:
    now = 1_700_000_000_000
    with contextlib.closing(SqliteLedger(tmp_path / "ledger.sqlite", wall=lambda: now)) as ledger:
        ledger.renew(here(), {}, {})
        for n, later in enumerate((0, 89, 1)):
            now += later * 86_400_000
            new = replace(NEW, id=job_id("ann", f"film {n}"))
            first = Draft(task_id(new.id, "probe", None), new.id, "probe", None, "{}")
            ledger.submit(new, first)
            (lease,) = ledger.claim("w1", ["cpu"], 1)
            made = Result(f"key {n}", "facts", "ab" * 32, 7, 3, 1, False)
            ledger.complete("w1", [Finish(lease.task, lease.fence, (made,))])
            ledger.set_aside("ann", [made.key], "damaged")
        kept = look(tmp_path / "ledger.sqlite", "SELECT key, reason FROM aside ORDER BY at")
    assert kept == [("key 1", "damaged"), ("key 2", "damaged")]


def test_a_worker_is_alive_until_the_very_end_of_its_lease(tmp_path: Path) -> None:
    seconds = 1000.0
    with contextlib.closing(SqliteLedger(tmp_path / "ledger.sqlite", clock=lambda: seconds)) as ledger:
        ledger.renew(here(), {}, {})
        left = ledger.workers()[0].lease_left
        for later, alive in ((left - 0.5, True), (0.5, False)):
            seconds += later
            assert ledger.workers()[0].alive is alive


# Settings and schema
def test_every_commit_is_durable(ledger: SqliteLedger) -> None:
    db = ledger._store.file.db
    pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "cache_size", "wal_autocheckpoint")
    assert [db.execute(f"PRAGMA {p}").fetchone()[0] for p in pragmas] == ["wal", 2, 1, 5000, -65536, 4000]


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    SqliteLedger(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")
        db.execute("UPDATE home SET value = '998' WHERE name = 'needed'")
        db.commit()
    with pytest.raises(WrongHome, match="newer rushes"):
        SqliteLedger(path)
    assert look(path, "PRAGMA user_version") == [(999,)]


def test_a_newer_schema_that_only_adds_is_opened_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    SqliteLedger(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")
    SqliteLedger(path).close()
    assert look(path, "PRAGMA user_version") == [(999,)]


def test_a_worker_leaves_a_ledger_that_has_become_too_new_for_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = SqliteLedger(path)
    who = Incarnation("w1", "host", "boot", 4711, "1")
    ledger.renew(who, {}, {})
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE home SET value = '999' WHERE name = 'needed'")
    with pytest.raises(WrongHome, match="newer rushes"):
        ledger.renew(who, {}, {})
    ledger.close()


def test_a_ledger_without_a_name_of_its_history_gets_one_when_it_is_opened(tmp_path: Path) -> None:
    SqliteLedger(tmp_path / "ledger.sqlite").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as db, db:
        db.execute("DELETE FROM home WHERE name = 'history'")
    with contextlib.closing(SqliteLedger(tmp_path / "ledger.sqlite")) as again:
        assert again.changed("")[1].startswith("ledger-")


def test_a_cursor_of_another_ledger_or_of_a_later_time_is_like_none(tmp_path: Path, ledger: SqliteLedger) -> None:
    opened(ledger)
    changed, cursor = ledger.changed()
    assert (changed, ledger.changed(cursor)) == ((NEW.id,), ((), cursor))
    history, _, number = cursor.partition("@")
    with contextlib.closing(SqliteLedger(tmp_path / "another.sqlite")) as another:
        assert another.changed(cursor)[0] == ()
        another.submit(NEW, PROBE)
        assert another.changed(cursor)[0] == (NEW.id,)
    assert ledger.changed(f"{history}@{int(number) + 1}")[0] == (NEW.id,)
    assert ledger.changed(number)[0] == (NEW.id,), "a cursor that does not say whose it is"


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"this is not a database, not at all" * 100)
    with pytest.raises(WrongHome, match="damaged"):
        SqliteLedger(path)


def test_many_who_open_a_new_home_at_once_all_get_in(tmp_path: Path) -> None:
    path, errors = tmp_path / "ledger.sqlite", []
    gate = threading.Barrier(8)

    def enter() -> None:
        gate.wait()
        try:
            SqliteLedger(path).close()
        except RushesError as e:
            errors.append(e)

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_an_id_that_is_not_its_own_is_refused(ledger: SqliteLedger) -> None:
    with pytest.raises(ValueError, match="is not that of"):
        ledger.submit(NEW, replace(PROBE, stage="other"))


# Where a home may lie, and whose it is
def test_a_network_file_system_is_refused(tmp_path: Path) -> None:
    table = f"22 1 0:1 / / rw - ext4 /dev/a rw\n23 22 0:2 / {tmp_path} rw - nfs4 server:/x rw\n"
    with pytest.raises(WrongHome, match="nfs4"):
        SqliteLedger(tmp_path / "ledger.sqlite", mounts=lambda: table)
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("kind", "remote"),
    [("ext4", False), ("tmpfs", False), ("fuse.sshfs", True), ("cifs", True), ("9p", True), ("fuseblk", False)],
)
def test_the_deepest_mount_says_what_a_place_is(tmp_path: Path, kind: str, remote: bool) -> None:
    inner = tmp_path / "a b"
    escaped = str(inner).replace(" ", "\\040")
    table = f"1 0 0:1 / / rw - nfs x rw\n2 1 0:2 / {tmp_path} rw - xfs x rw\n3 2 0:3 / {escaped} rw - {kind} x rw\n"
    assert network_file_system(inner / "c", table) == (kind if remote else None)
    assert network_file_system(tmp_path, table) is None


def test_a_second_machine_is_refused_while_workers_of_the_first_may_run(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with contextlib.closing(SqliteLedger(path, host="one", boot="b1")) as ledger:
        ledger.renew(Incarnation("w1", "one", "b1", 1, ""), {}, {})
    with pytest.raises(WrongHome, match="another machine") as refused:
        SqliteLedger(path, host="two", boot="b2")
    assert "--take-over" in refused.value.advice
    with contextlib.closing(SqliteLedger(path, host="two", boot="b2", take_over=True)) as ledger:
        assert not ledger.workers()[0].alive
    SqliteLedger(path, host="two", boot="b2").close()


def test_a_machine_that_left_nothing_behind_is_succeeded_without_asking(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with contextlib.closing(SqliteLedger(path, host="one", boot="b1")) as ledger:
        ledger.renew(Incarnation("w1", "one", "b1", 1, ""), {}, {})
        ledger.control("w1", JobCommand.LEAVE)
    SqliteLedger(path, host="two", boot="b2").close()


def test_the_same_boot_is_the_same_machine_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with contextlib.closing(SqliteLedger(path, host="container-1", boot="b1")) as ledger:
        ledger.renew(Incarnation("w1", "container-1", "b1", 1, ""), {}, {})
    SqliteLedger(path, host="container-2", boot="b1").close()


# Time
def test_after_another_boot_every_lease_is_over_and_every_wait_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with contextlib.closing(SqliteLedger(path, clock=lambda: 50_000.0, boot="b1")) as ledger:
        opened(ledger)
        one, two = ledger.claim("w1", ["cpu"], 2)
        ledger.fail("w1", one.task, one.fence, FAILURE, 900.0)
    with contextlib.closing(SqliteLedger(path, clock=lambda: 10.0, boot="b2")) as ledger:
        assert [w.alive for w in ledger.workers()] == [False]
        swept = ledger.sweep()
        assert swept.released == 1
        assert {one.task, two.task} <= set(swept.ready)


def test_a_shifted_clock_sees_leases_of_others_expire(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with contextlib.closing(SqliteLedger(path)) as now, contextlib.closing(SqliteLedger(path, shift=31.0)) as later:
        opened(now)
        now.claim("w1", ["cpu"], 1)
        assert now.sweep().released == 0
        assert later.sweep().released == 1


def test_a_machine_that_slept_has_lost_no_lease_and_what_backs_off_is_due(tmp_path: Path) -> None:
    times = {"boot": 1000.0, "awake": 900.0}
    ledger = SqliteLedger(tmp_path / "ledger.sqlite", clock=lambda: times["boot"], awake=lambda: times["awake"])
    with contextlib.closing(ledger):
        opened(ledger)
        one, two = ledger.claim("w1", ["cpu"], 2)
        ledger.fail("w1", one.task, one.fence, FAILURE, 900.0)
        times["boot"] += 3600.0  # asleep for an hour
        swept = ledger.sweep()
        assert (swept.released, one.task in swept.ready, ledger.workers()[0].lease_left) == (0, True, 30.0)
        assert ledger.complete("w1", [Finish(two.task, two.fence)]).verdicts == (Verdict.OK,)
        times["awake"] += 30.0
        assert not ledger.workers()[0].alive


def test_boot_time_goes_on_and_the_stamp_is_iso() -> None:
    assert boot_seconds() <= boot_seconds()
    assert iso(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"


# Who is gone
def test_this_process_is_here() -> None:
    assert not process.is_gone(here())


def test_a_process_that_was_killed_is_gone_even_before_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    worker = replace(here(), pid=child.pid, pid_start=str(process.process_start(child.pid)))
    assert not process.is_gone(worker)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    assert process.is_gone(worker)
    child.communicate()
    assert process.is_gone(worker)


def test_a_pid_that_was_used_again_is_not_the_worker() -> None:
    assert process.is_gone(replace(here(), pid_start=f"1@{here().pid_start.partition('@')[2]}"))


def test_a_worker_of_another_boot_is_gone_and_one_of_another_host_or_container_is_not_judged() -> None:
    assert process.is_gone(replace(here(), boot="another"))
    assert not process.is_gone(replace(here(), host="another", pid=2**22))
    assert not process.is_gone(replace(here(), pid=2**22, pid_start="1@pid:[1]"))


def test_a_start_in_another_form_is_judged_by_its_pid_alone() -> None:
    assert not process.is_gone(replace(here(), pid_start="1699999999.123"))
    assert process.is_gone(replace(here(), pid=2**22, pid_start="1699999999.123"))


def test_what_a_killed_worker_held_is_free_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    code = textwrap.dedent(f"""
        import os, signal, sys
        sys.path[:0] = {sys.path!r}
        from pathlib import Path
        from rushes.domain.worker import Incarnation
        from rushes.ledger import process
        from rushes.ledger.clock import boot_id
        from rushes.ledger.sqlite import SqliteLedger
        ledger = SqliteLedger(Path({str(path)!r}))
        me = Incarnation("victim", process.host_id(), boot_id(), os.getpid(), process.process_start())
        ledger.renew(me, {{}}, {{}})
        assert len(ledger.claim("victim", ["cpu"], 2)) == 2
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    with contextlib.closing(SqliteLedger(path)) as ledger:
        opened(ledger)
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
        assert ledger.sweep().released == 2
        assert len(ledger.claim("w1", ["cpu"], 5)) == 3


# Results and leases by number
def test_results_whose_marks_are_the_same_are_told_apart(ledger: SqliteLedger) -> None:
    seen: dict[int, str] = {}
    keys = (f"subject_000_-{sha256(b'%d' % n).hexdigest()[:40]}" for n in range(200_000))
    one, two = next((seen[at], key) for key in keys if seen.setdefault(at := crc32(key[12:].encode()) >> 3, key) != key)
    opened(ledger)
    first, second = ledger.claim("w1", ["cpu"], 2)
    made = {key: Result(key, "out", "ab" * 32, size) for size, key in enumerate((one, two, "subject_000_-x"))}
    ledger.complete("w1", [Finish(first.task, first.fence, (made[one],))])
    ledger.complete("w1", [Finish(second.task, second.fence, tuple(made.values()))])
    assert ledger.known("ann", [*made, "nothing"]) == made
    assert (ledger.set_aside("ann", [one], "old"), ledger.known("ann", [one, two])) == (1, {two: made[two]})


def test_a_worker_that_hands_back_some_of_a_range_holds_the_rest(ledger: SqliteLedger) -> None:
    opened(ledger)
    one, two, three = ledger.claim("w1", ["cpu"], 3)
    ledger.give_back("w1", [(two.task, two.fence)], "late")
    (again,) = ledger.claim("w1", ["cpu"], 1)
    ledger.complete("w1", [Finish(one.task, one.fence)])
    ledger.renew(here(), {}, {})
    assert ledger.workers()[0].held == (again.task, three.task)
    ledger.control("w1", JobCommand.LEAVE)
    assert (ledger.sweep().released, ledger.workers()) == (2, ())
    assert ledger.sweep().released == 0


# Crash points
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_round_the_commit_leaves_all_or_nothing(tmp_path: Path, when: str) -> None:
    path = tmp_path / "ledger.sqlite"
    code = textwrap.dedent(f"""
        import sys
        sys.path[:0] = {sys.path!r}
        from pathlib import Path
        from rushes.domain.task import Finish
        from rushes.ledger.sqlite import SqliteLedger
        ledger = SqliteLedger(Path({str(path)!r}))
        ledger.complete("w1", [Finish("{PARTS[0].id}", 1)])
    """)
    with contextlib.closing(SqliteLedger(path)) as ledger:
        opened(ledger)
        (lease,) = ledger.claim("w1", ["cpu"], 1)
        env = {**os.environ, "RUSHES_CRASH": f"ledger.complete:{when}#1", "RUSHES_CRASH_COUNT": str(tmp_path / "n")}
        assert subprocess.run([sys.executable, "-c", code], check=False, env=env).returncode == -signal.SIGKILL
        (task,) = ledger.tasks(ids=[lease.task]).rows
        assert task.state is (TaskState.LEASED if when == "before" else TaskState.DONE)
        assert len(ledger.events(NEW.id)) == ledger.job(NEW.id).last_event == (3 if when == "before" else 4)


def test_every_writing_verb_has_a_crash_point(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[str] = []

    @contextlib.contextmanager
    def note(name: str) -> Iterator[None]:
        met.append(name)
        yield

    monkeypatch.setattr(file, "effect", note)
    opened(ledger)
    (lease,) = ledger.claim("w1", ["cpu"], 1)
    ledger.fail("w1", lease.task, lease.fence, FAILURE, None)
    ledger.give_back("w1", [], "drain")
    ledger.arrived("k", "e")
    ledger.revive(NEW.id)
    ledger.set_aside("ann", ["x"], "gc")
    ledger.log(lease.task, 1, 1, ["line"])
    ledger.control("w1", JobCommand.LEAVE)
    ledger.sweep(paid=[])
    verbs = {name.removeprefix("ledger.") for name in met}
    expected = {"submit", "draft", "arrived", "claim", "renew", "complete", "fail", "give_back", "control", "revive"}
    assert expected | {"set_aside", "log"} <= verbs


def test_an_idle_claim_and_an_idle_sweep_write_nothing(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.renew(here(), {}, {})
    monkeypatch.delattr(file, "effect")  # a commit would miss it
    assert ledger.claim("w1", ["cpu"], 5) == ()
    ledger.sweep()


def test_when_work_runs_out_only_the_claim_that_finds_it_out_writes(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(ledger)
    assert len(ledger.claim("w1", ["cpu"], 5)) == 3
    assert ledger.claim("w1", ["cpu"], 5) == ()
    monkeypatch.delattr(file, "effect")  # a commit would miss it
    assert ledger.claim("w1", ["cpu"], 5) == ()


# Errors in our own words
def test_a_locked_store_is_away(ledger: SqliteLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger._store.file.db.execute("PRAGMA busy_timeout = 1")
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreAway, match="locked"):
            ledger.submit(NEW, PROBE)
        other.execute("ROLLBACK")
    assert ledger.submit(NEW, PROBE).created


def test_a_full_disk_is_no_room_and_nothing_is_half_written(ledger: SqliteLedger) -> None:
    ledger.submit(NEW, PROBE)
    db = ledger._store.file.db
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
    big = replace(NEW, id=job_id("ann", "big"), payload="x" * 1_000_000)
    first = Draft(task_id(big.id, "probe", None), big.id, "probe", None, "{}")
    with pytest.raises(NoRoom):
        ledger.submit(big, first)
    assert [job.id for job in ledger.jobs("ann").rows] == [NEW.id]
    db.execute("PRAGMA max_page_count = 1000000")
    assert ledger.submit(big, first).created


def test_a_bug_is_not_taken_for_a_store_that_is_away(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SQL", {**store.SQL, "job": "SELECT nonsense FROM nowhere"})
    with pytest.raises(RushesError) as told:
        ledger.job("x")
    assert not isinstance(told.value, StoreAway)


def test_a_backup_is_a_whole_ledger(ledger: SqliteLedger, tmp_path: Path) -> None:
    opened(ledger)
    to = tmp_path / "copy.sqlite"
    ledger.backup(to)
    assert sorted(p.name for p in tmp_path.glob("copy*")) == ["copy.sqlite"]
    ledger.control(NEW.id, JobCommand.CANCEL)
    with contextlib.closing(SqliteLedger(to)) as copy:
        assert copy.job(NEW.id).counts.total == 4
        assert copy.tasks(NEW.id).rows[1].state is TaskState.READY


# The views of the checkpoint document
def test_the_runbook_query_of_the_checkpoint_document_works(ledger: SqliteLedger, tmp_path: Path) -> None:
    opened(ledger)
    one, two, three = ledger.claim("w1", ["cpu"], 3)
    ledger.complete("w1", [Finish(one.task, one.fence)])
    ledger.fail("w1", two.task, two.fence, FAILURE, None)
    ledger.fail("w1", three.task, three.fence, FAILURE, 60.0)
    rows = look(tmp_path / "ledger.sqlite", "SELECT chunk_index, status, last_error FROM chunks WHERE status != 'done'")
    assert rows == [
        (1, "permanent_failed", "BadMedia: no picture"),
        (2, "retryable_failed", "BadMedia: no picture"),
    ]


def test_the_other_views_speak_its_words(ledger: SqliteLedger, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(ledger)
    one, two, three = ledger.claim("w1", ["cpu"], 3)
    ledger.complete("w1", [Finish(one.task, one.fence, (Result("k", "o", "ab" * 32),))])
    ledger.fail("w1", two.task, two.fence, FAILURE, None)
    assert look(path, "SELECT status FROM jobs") == [("running",)]
    assert look(path, "SELECT status, total_chunks, done_chunks, last_error FROM files") == [
        ("running", 4, 2, "BadMedia: no picture")
    ]
    leases = look(path, "SELECT scope, scope_id, worker_id, released_at IS NULL FROM leases ORDER BY scope_id")
    assert leases == [
        ("chunk", one.task, "w1", 0),
        ("chunk", two.task, "w1", 0),
        ("chunk", three.task, "w1", 1),
        ("chunk", PROBE.id, "w1", 0),
    ]
    attempts = look(path, "SELECT chunk_id, worker_id, outcome, error_message FROM attempts ORDER BY chunk_id")
    assert attempts == [
        (one.task, "w1", "success", None),
        (two.task, "w1", "permanent_failed", "BadMedia: no picture"),
        (three.task, "w1", None, None),
        (PROBE.id, "w1", "success", None),
    ]
    told = look(path, "SELECT message, level, entity_type, entity_id FROM event_log")
    assert set(told) == {
        ("submitted", "info", "job", NEW.id),
        ("done", "info", "chunk", PROBE.id),
        ("planned", "info", "job", NEW.id),
        ("done", "info", "chunk", one.task),
        ("failed", "warning", "chunk", two.task),
        ("dead", "error", "chunk", two.task),
    }


def test_a_lease_runs_once_its_worker_has_told_of_it_and_drains_with_a_reason(
    ledger: SqliteLedger, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(ledger)
    (one,) = ledger.claim("w1", ["cpu"], 1)
    status = f"SELECT status FROM chunks WHERE chunk_id = '{one.task}'"
    assert look(path, status) == [("leased",)]
    ledger.renew(here(), {one.task: one.fence}, {one.task: 0.5})
    assert look(path, status) == [("running",)]
    ledger.renew(here(), {one.task: one.fence}, {}, "draining: SIGTERM")
    shutdown = "SELECT status, shutdown_reason, shutdown_requested_at IS NULL FROM jobs"
    assert look(path, shutdown) == [("draining", "SIGTERM", 0)]
    ledger.give_back("w1", [(one.task, one.fence)], "drained: SIGTERM")
    assert look(path, shutdown) == [("running", "SIGTERM", 0)]
    assert look(path, status) == [("abandoned",)]
    assert look(path, f"SELECT outcome FROM attempts WHERE chunk_id = '{one.task}'") == [("abandoned",)]


def test_what_is_cancelled_is_failed_in_its_words(ledger: SqliteLedger, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(ledger)
    (one,) = ledger.claim("w1", ["cpu"], 1)
    ledger.control(NEW.id, JobCommand.CANCEL)
    assert look(path, "SELECT status FROM jobs") == [("failed",)]
    assert look(path, "SELECT status, last_error FROM files") == [("permanent_failed", "Cancelled: by a person")]
    assert set(look(path, "SELECT status, last_error FROM chunks WHERE status != 'done'")) == {
        ("permanent_failed", "Cancelled: by a person")
    }
    assert look(path, f"SELECT outcome FROM attempts WHERE chunk_id = '{one.task}'") == [("abandoned",)]


def test_the_views_stand_texts_that_are_no_documents(ledger: SqliteLedger, tmp_path: Path) -> None:
    odd = replace(NEW, id="job_odd", payload="not a document")
    ledger.submit(odd, replace(PROBE, id="job_odd.probe", job="job_odd", spec="neither"))
    for view in ("jobs", "files", "chunks", "attempts", "leases", "event_log"):
        look(tmp_path / "ledger.sqlite", f"SELECT * FROM {view}")
    assert look(tmp_path / "ledger.sqlite", "SELECT source_uri FROM files WHERE job_id = 'job_odd'") == [(None,)]


@pytest.mark.parametrize(
    ("path", "type", "uri"),
    [
        ("s3://bucket/a film.mp4", "s3", "s3://bucket/a film.mp4"),
        ("gs://bucket/film.mp4", "gs", "gs://bucket/film.mp4"),
        ("az://container/film.mp4", "az", "az://container/film.mp4"),
        ("/films/a film.mp4", "local", "file:///films/a%20film.mp4"),
        ("films/film.mp4", "local", "file:///home/films/film.mp4"),
    ],
)
def test_an_original_is_named_where_it_lies(tmp_path: Path, path: str, type: str, uri: str) -> None:
    kept = tmp_path / "ledger.sqlite"
    with contextlib.closing(SqliteLedger(kept, places={"originals": "/home"})) as ledger:
        ledger.submit(replace(NEW, payload=json.dumps({"source": {"path": path}})), PROBE)
    assert look(kept, "SELECT source_type, source_uri FROM files JOIN jobs USING (job_id)") == [(type, uri)]


def test_the_last_chunk_of_speech_ends_with_the_sound(ledger: SqliteLedger, tmp_path: Path) -> None:
    ledger.renew(here(), {}, {})
    ledger.submit(NEW, PROBE)
    (lease,) = ledger.claim("w1", ["cpu"], 1)
    spans = {n: json.dumps({"span": [4000 * n, 4000 * n + 4000, 1, 1000]}) for n in range(2)}
    parts = [
        Draft(task_id(NEW.id, stage, n), NEW.id, stage, n, spec, order=n)
        for stage in ("develop", "transcribe")
        for n, spec in spans.items()
    ]
    ledger.draft(NEW.id, lease.task, lease.fence, parts, json.dumps({"chunks": 2, "duration_us": 11_500_000}))
    ledger.complete("w1", [Finish(lease.task, lease.fence)])
    ends = "SELECT stage, start_seconds, end_seconds FROM chunks WHERE stage != 'probe' ORDER BY stage, chunk_index"
    assert look(tmp_path / "ledger.sqlite", ends) == [
        ("develop", 0.0, 4.0),
        ("develop", 4.0, 8.0),
        ("transcribe", 0.0, 4.0),
        ("transcribe", 4.0, 11.5),
    ]


def test_work_without_a_plan_has_true_bounds_and_no_file_of_its_own(ledger: SqliteLedger, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    options = {"start_us": 2_000_000, "end_us": 4_500_000}
    spec = json.dumps({"options": options, "plan_hash": "ab", "span": None})
    ledger.submit(replace(NEW, recipe="clip"), Draft(task_id(NEW.id, "clip", None), NEW.id, "clip", None, spec))
    bounds = look(path, "SELECT start_seconds, end_seconds, chunk_plan_hash FROM chunks")
    assert bounds == [(2.0, 4.5, "ab")]
    queued = replace(NEW, id="job_q", request_id="q", recipe="queue", payload='{"source": {"path": "queue:default"}}')
    ledger.submit(queued, Draft("job_q.work", "job_q", "work", None, "{}"))
    asked = "SELECT source_uri, chunk_plan_hash FROM files JOIN chunks USING (file_id) WHERE job_id = 'job_q'"
    assert look(path, asked) == [("queue:default", "")]


def test_a_forgotten_job_leaves_no_attempts(ledger: SqliteLedger, tmp_path: Path) -> None:
    opened(ledger)
    ledger.control(NEW.id, JobCommand.CANCEL)
    ledger.control(NEW.id, JobCommand.FORGET)
    assert look(tmp_path / "ledger.sqlite", "SELECT count(*) FROM attempt") == [(0,)]
