"""How many no-op tasks a second the ledger takes through its own verbs, against SQLite queues and a raw loop.

Every store commits with synchronous=FULL. Ours: jobs of 40 tasks and a join, claim 1,000, complete 1,000 with a
result each (fence, count-down, event, counters). Rounds are interleaved; medians of tasks per wall second and, because
machines are shared, per CPU second of the processes that drain.
"""

import argparse
import contextlib
import gc
import json
import multiprocessing
import os
import queue
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

from rushes.domain.job import NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.result import Result
from rushes.domain.task import RENEW_SECONDS, Draft, Finish, Lease, Need, Verdict
from rushes.domain.worker import Incarnation
from rushes.ledger.sqlite import SqliteLedger

CHUNKS = 40
BATCH = 1000
SPEC = json.dumps({"stage": "noop", "options": {"every_ms": 100}, "span": [0, 60], "note": "x" * 40})
SHA = "ab" * 32
KEY = "-" + "0" * 20  # makes a result key as long as ours are
OURS = ("rushes", "raw sqlite3", "raw, with such rows")  # the others are peers
_result: Callable[[Iterable[Any]], Result] = partial(tuple.__new__, Result)
_finish: Callable[[Iterable[Any]], Finish] = partial(tuple.__new__, Finish)
BARS = {"peers": 12.0, "raw": 0.30, "growth": 0.90}


@dataclass(frozen=True, slots=True)
class Spent:
    """Tasks done, and the seconds they took by the wall and by the CPU."""

    tasks: int
    wall: float
    cpu: float


# Ours
def fill(path: Path, jobs: int, name: str = "") -> None:
    """Submit jobs and open their plans; this is not timed, so no disk is waited for."""
    ledger = SqliteLedger(path)
    ledger._store.file.db.execute("PRAGMA synchronous = OFF")  # noqa: SLF001 - the product has no such setting
    for begin in range(0, jobs, 100):
        ledger.renew(_worker("filler"), {}, {})
        for n in range(begin, min(begin + 100, jobs)):
            _submit(ledger, f"{name}{n}")
        leases = ledger.claim("filler", ["first"], 100)
        for lease in leases:
            ledger.draft(lease.job, lease.task, lease.fence, _plan(lease.job), "{}")
        ledger.complete("filler", [Finish(lease.task, lease.fence) for lease in leases])
    ledger.close()


def _submit(ledger: SqliteLedger, name: str) -> None:
    job = job_id("bench", name)
    probe = Draft(task_id(job, "probe", None), job, "probe", None, SPEC, "first")
    ledger.submit(NewJob(job, "bench", name, name, "bench", "{}"), probe)


def _plan(job: str) -> list[Draft]:
    parts = [Draft(task_id(job, "noop", n), job, "noop", n, SPEC, "cpu", n + 1) for n in range(CHUNKS)]
    needs = tuple(Need(part.id) for part in parts)
    return [*parts, Draft(task_id(job, "join", None), job, "join", None, SPEC, "cpu", CHUNKS + 1, needs)]


def drain_ours(path: Path, limit: int) -> int:
    """Claim and complete until nothing is left (or the limit is reached)."""
    ledger = SqliteLedger(path)
    me = _worker(f"drainer-{os.getpid()}-{time.monotonic_ns()}")
    done, renewed = 0, -RENEW_SECONDS
    while done < limit:
        if time.monotonic() - renewed >= RENEW_SECONDS:
            ledger.renew(me, {}, {})
            renewed = time.monotonic()
        leases = ledger.claim(me.id, ["cpu"], BATCH)
        completed = ledger.complete(me.id, finishes(leases))
        done += completed.verdicts.count(Verdict.OK)
        if not leases:
            break
    ledger.close()
    return done


def finishes(leases: Sequence[Lease]) -> list[Finish]:
    """What a worker says of tasks that made one result each; by columns, since the ledger is what is measured."""
    if not leases:
        return []
    tasks, fences, *_ = zip(*leases, strict=True)
    keys = [task[4:] + KEY for task in tasks]
    results = zip(map(_result, zip(keys, *map(repeat, ("noop", SHA, 100, 1, 1, False)), strict=False)))
    return [*map(_finish, zip(tasks, fences, results, *map(repeat, (False, 0.01)), strict=False))]


def _worker(id: str) -> Incarnation:
    return Incarnation(id, "bench", "bench", os.getpid(), "")


# The raw loop: no fence, no history
def fill_raw(path: Path, tasks: int) -> None:
    with contextlib.closing(_raw(path)) as db:
        db.execute("CREATE TABLE task (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, payload TEXT NOT NULL)")
        db.execute("CREATE INDEX task_free ON task (id) WHERE state = 0")
        db.execute("BEGIN")
        db.executemany("INSERT INTO task VALUES (?, 0, ?)", ((n, SPEC) for n in range(tasks)))
        db.execute("COMMIT")


def drain_raw(path: Path, limit: int) -> int:
    done = 0
    with contextlib.closing(_raw(path)) as db:
        while done < limit:
            db.execute("BEGIN IMMEDIATE")
            rows = db.execute(
                "UPDATE task SET state = 1 WHERE id IN (SELECT id FROM task WHERE state = 0 ORDER BY id LIMIT ?)"
                " RETURNING id, payload",
                (BATCH,),
            ).fetchall()
            ids = json.dumps([row[0] for row in rows])
            db.execute("UPDATE task SET state = 2 WHERE id IN (SELECT value FROM json_each(?))", (ids,))
            db.execute("COMMIT")
            done += len(rows)
            if not rows:
                break
    return done


# The raw loop with the rows that a ledger must leave: two commits, results, needs, events, counters; no fence, no ids
def fill_rows(path: Path, tasks: int) -> None:
    fill_raw(path, tasks)
    with contextlib.closing(_raw(path)) as db:
        db.execute(
            "CREATE TABLE result (owner TEXT, key TEXT, sha TEXT, n INTEGER, PRIMARY KEY (owner, key)) WITHOUT ROWID"
        )
        db.execute("CREATE TABLE need (ref INTEGER, task INTEGER, met INTEGER, PRIMARY KEY (ref, task)) WITHOUT ROWID")
        db.execute("CREATE TABLE event (job INTEGER, seq INTEGER, body TEXT, PRIMARY KEY (job, seq)) WITHOUT ROWID")
        db.execute("CREATE TABLE job (id INTEGER PRIMARY KEY, done INTEGER NOT NULL, seq INTEGER NOT NULL)")
        db.execute("BEGIN")
        db.executemany("INSERT INTO need VALUES (?, ?, 0)", ((n, n // CHUNKS) for n in range(tasks)))
        db.executemany("INSERT INTO job VALUES (?, 0, 0)", ((n,) for n in range(tasks // CHUNKS + 1)))
        db.execute("COMMIT")


def drain_rows(path: Path, limit: int) -> int:
    done = 0
    with contextlib.closing(_raw(path)) as db:
        while done < limit and (rows := _claim_rows(db)):
            _finish_rows(db, [row[0] for row in rows])
            done += len(rows)
    return done


def _claim_rows(db: sqlite3.Connection) -> list[Any]:
    db.execute("BEGIN IMMEDIATE")
    rows = db.execute(
        "UPDATE task SET state = 1 WHERE id IN (SELECT id FROM task WHERE state = 0 ORDER BY id LIMIT ?)"
        " RETURNING id, payload",
        (BATCH,),
    ).fetchall()
    db.execute("COMMIT")
    return rows


def _finish_rows(db: sqlite3.Connection, ids: list[int]) -> None:
    text = json.dumps(ids)
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE task SET state = 2 WHERE id IN (SELECT value FROM json_each(?))", (text,))
    results = [("bench", f"{hash(n // CHUNKS) * 2654435761 % 2**48:012x}-{n:040d}", SHA, 1) for n in ids]
    db.executemany("INSERT INTO result VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", results)
    db.execute("UPDATE need SET met = 1 WHERE ref IN (SELECT value FROM json_each(?)) AND NOT met", (text,))
    for job in dict.fromkeys(n // CHUNKS for n in ids):
        mine = [n for n in ids if n // CHUNKS == job]
        db.execute("UPDATE job SET done = done + ?, seq = seq + ? WHERE id = ?", (len(mine), len(mine), job))
        (seq,) = db.execute("SELECT seq FROM job WHERE id = ?", (job,)).fetchone()
        db.execute("INSERT INTO event VALUES (?, ?, ?)", (job, seq, json.dumps(mine)))
    db.execute("COMMIT")


def _raw(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30, isolation_level=None)
    for setting in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536", "wal_autocheckpoint = 4000"):
        db.execute(f"PRAGMA {setting}")
    return db


# Peers
def fill_huey(path: Path, tasks: int) -> None:
    _, noop = _huey(path)
    for _ in range(tasks):
        noop()


def drain_huey(path: Path, limit: int) -> int:
    huey, _ = _huey(path)
    done = 0
    while done < limit and (task := huey.dequeue()) is not None:
        huey.execute(task)
        done += 1
    return done


def _huey(path: Path) -> tuple[Any, Any]:
    from huey import SqliteHuey  # noqa: PLC0415 - a peer is imported where it is measured

    huey = SqliteHuey("bench", filename=str(path), fsync=True, timeout=30)

    def noop() -> None:
        return None

    noop.__module__ = "bench"  # the same name in every process
    return huey, huey.task()(noop)


def fill_litequeue(path: Path, tasks: int) -> None:
    lite = _litequeue(path)
    with lite.transaction():
        for _ in range(tasks):
            lite.put(SPEC)


def drain_litequeue(path: Path, limit: int) -> int:
    lite = _litequeue(path)
    done = 0
    while done < limit and (message := lite.pop()) is not None:
        lite.done(message.message_id)
        done += 1
    return done


def _litequeue(path: Path) -> Any:
    from litequeue import LiteQueue  # noqa: PLC0415 - as above

    lite = LiteQueue(str(path), timeout=30)
    lite.conn.execute("PRAGMA synchronous = FULL")
    return lite


def fill_persist(path: Path, tasks: int) -> None:
    kept = _persist(path)
    for _ in range(tasks):
        kept.put(SPEC)


def drain_persist(path: Path, limit: int) -> int:
    from persistqueue import Empty  # noqa: PLC0415 - as above

    kept, done = _persist(path), 0
    with contextlib.suppress(Empty):
        while done < limit:
            kept.ack(kept.get(block=False))
            done += 1
    return done


def _persist(path: Path) -> Any:
    from persistqueue import SQLiteAckQueue  # noqa: PLC0415 - as above

    path.mkdir(exist_ok=True)
    kept = SQLiteAckQueue(str(path))
    putter: Any = kept._putter  # noqa: SLF001 - it has no setting for this
    putter.execute("PRAGMA synchronous = FULL")
    return kept


Fill = Callable[[Path, int], None]
Drain = Callable[[Path, int], int]
STORES: dict[str, tuple[Fill, Drain, bool]] = {  # and whether several processes may drain it
    "rushes": (lambda path, tasks: fill(path, tasks // (CHUNKS + 1)), drain_ours, True),
    "raw sqlite3": (fill_raw, drain_raw, True),
    "raw, with such rows": (fill_rows, drain_rows, True),
    "huey": (fill_huey, drain_huey, True),
    "litequeue": (fill_litequeue, drain_litequeue, True),
    "persist-queue": (fill_persist, drain_persist, False),
}


# Measuring
def measure(name: str, path: Path, processes: int, limit: int) -> Spent:
    """Drain a store from fresh processes that begin together."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=_drain, args=(name, path, limit // processes, barrier, answers))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    spent = [_answer(answers, workers) for _ in workers]
    for worker in workers:
        worker.join()
    begin, end = min(s[1] for s in spent), max(s[2] for s in spent)
    return Spent(sum(s[0] for s in spent), end - begin, sum(s[3] for s in spent))


def _answer(answers: Any, workers: list[Any]) -> Any:
    while True:
        with contextlib.suppress(queue.Empty):
            return answers.get(timeout=1)
        if any(worker.exitcode for worker in workers):
            raise SystemExit("a process that drains has failed")


def _drain(name: str, path: Path, limit: int, barrier: Any, answers: Any) -> None:
    warnings.simplefilter("ignore")
    gc.disable()  # nothing here makes cycles, and what was imported need not be looked through again
    barrier.wait(timeout=60)
    begin, cpu = time.monotonic(), time.process_time()
    done = STORES[name][1](path, limit)
    answers.put((done, begin, time.monotonic(), time.process_time() - cpu))


def rounds(folder: Path, sizes: dict[str, int], count: int, processes: int) -> dict[str, list[Spent]]:
    """Interleaved rounds over all stores, each on a fresh file."""
    spent: dict[str, list[Spent]] = {name: [] for name in sizes}
    for n in range(count):
        for name, tasks in sizes.items():
            path = folder / f"{name.replace(' ', '')}-{processes}-{n}"
            STORES[name][0](path, tasks)
            spent[name].append(measure(name, path, processes, 10**9))
            _forget(path)
            print(".", end="", file=sys.stderr, flush=True)
    return spent


def growth(folder: Path, count: int, tasks: int, queued: int, finished: int) -> dict[str, list[Spent]]:
    """The same drain in an empty ledger, in one with many queued and in one with many done."""
    spent: dict[str, list[Spent]] = {"empty": [], f"{queued:,} queued": [], f"{finished:,} done": []}
    many, old = folder / "queued", folder / "done"
    fill(many, (queued + count * tasks) // (CHUNKS + 1))
    fill(old, finished // (CHUNKS + 1))
    drain_ours(old, 10**9)
    for n in range(count):
        empty = folder / f"empty-{n}"
        for path in (empty, old):
            fill(path, tasks // (CHUNKS + 1), f"round {n} ")
        for name, path in zip(spent, (empty, many, old), strict=True):
            spent[name].append(measure("rushes", path, 1, tasks if path == many else 10**9))
            print(".", end="", file=sys.stderr, flush=True)
        _forget(empty)
    _forget(many)
    _forget(old)
    return spent


def rate(spent: list[Spent], clock: str) -> float:
    """The median of tasks per second."""
    return statistics.median(s.tasks / (s.wall if clock == "wall" else s.cpu) for s in spent)


def table(title: str, spent: dict[str, list[Spent]], base: str, names: tuple[str, str]) -> None:
    """Rates and ratios: how many times the base each line is, or the base is each line."""
    print(f"\n{title:<24}{'tasks/s':>10}{'per CPU s':>12}   {names[0]:>10} {names[1]:>10}")
    for name, runs in spent.items():
        ratios = [f"{rate(spent[base], clock) / rate(runs, clock):10.2f}" for clock in ("wall", "cpu")]
        print(f"{name:<24}{rate(runs, 'wall'):>10,.0f}{rate(runs, 'cpu'):>12,.0f}   {ratios[0]} {ratios[1]}")


def judge(what: str, value: float, bar: float) -> bool:
    """One line per bar."""
    print(f"{'holds' if value >= bar else 'FAILS'}  {what}: {value:.2f} (at least {bar})")
    return value >= bar


def _forget(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    for file in path.parent.glob(path.name + "*"):
        file.unlink()


def compare(folder: Path, quick: bool, processes: int, count: int) -> bool:
    """Ours against peers and the raw loop."""
    few, many = (400, 8_200) if quick else (3_000, 61_500)
    sizes = {name: many if name in OURS else few for name in STORES}
    sizes = {name: n for name, n in sizes.items() if processes == 1 or STORES[name][2]}
    spent = rounds(folder, sizes, count, processes)
    table(f"{processes} process(es)", spent, "rushes", ("ours/wall", "ours/CPU"))
    ok = True
    for clock in ("wall", "cpu"):
        ours = rate(spent["rushes"], clock)
        best = max(rate(runs, clock) for name, runs in spent.items() if name not in OURS)
        ok &= judge(f"best peer, {clock}", ours / best, BARS["peers"])
        ok &= judge(f"raw loop, {clock}", ours / rate(spent["raw sqlite3"], clock), BARS["raw"])
    return ok


def main() -> int:
    """Print the tables; 1 if a bar does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small run: the figures mean little")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--part", choices=["one", "two", "growth", "all"], default="all")
    asked = parser.parse_args()
    count, ok = asked.rounds or (1 if asked.quick else 5), True
    with tempfile.TemporaryDirectory() as name:
        for processes, part in ((1, "one"), (2, "two")):
            if asked.part in (part, "all"):
                ok &= compare(Path(name), asked.quick, processes, count)
        if asked.part in ("growth", "all"):
            sizes = (8_200, 20_500, 41_000) if asked.quick else (41_000, 500_000, 1_000_000)
            spent = growth(Path(name), count, *sizes)
            table("growth", spent, "empty", ("empty/wall", "empty/CPU"))
            for label in list(spent)[1:]:
                ok &= judge(label, rate(spent[label], "cpu") / rate(spent["empty"], "cpu"), BARS["growth"])
    return 0 if ok or asked.quick else 1


if __name__ == "__main__":
    sys.exit(main())
