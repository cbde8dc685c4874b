"""How many no-op tasks a second the ledger takes through its own verbs on PostgreSQL, against other queues.

Every commit is durable on both sides. In batches: jobs of 40 tasks and a join, claim and complete as many as the ledger
takes at once, with a result each (fence, count-down, event, counters), against as many as suit the others best. In
eights, as a worker with eight slots claims them, on both sides; without a bar. One at a time: submit, claim, complete.
graphile-worker is compared where Node is. Rounds are interleaved; medians of tasks per wall second and, because
machines are shared, per CPU second of clients and server together.
"""

import argparse
import contextlib
import functools
import gc
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from proof.peer_faults import Engine, environment
from proof.setups import fresh_database

from benchmarks.ledger import SPEC, Spent, finishes, judge, rate, table
from rushes.domain.job import NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.task import RENEW_SECONDS, Draft, Finish
from rushes.domain.worker import Incarnation
from rushes.ledger.postgres import PostgresLedger
from rushes.postgres.store import Postgres
from rushes.servers import postgres
from rushes.servers.process import Running
from rushes.statements import statements
from rushes.transport.notify import Notify

FILL = statements(Path(__file__).with_name("ledger_postgres.sql"))
PEER = Path(__file__).parent / "peers" / "on_postgres.py"
PGQUEUER = Engine("pgqueuer", "postgres", ("pgqueuer==1.6.0", "asyncpg==0.32.0"))
GRAPHILE, NODE_PEER = "graphile-worker@0.17.3", PEER.with_name("graphile.mjs")
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
BARS = {"pgqueuer": {1: 3.5, 2: 3.0}, "graphile-worker": {1: 1.5, 2: 1.5}}
GROWTH, ONE_AT_A_TIME, SAMPLES, ROUNDS = 0.85, 1.0, 40, 5
UNDER_WAY = {1: 3, 2: 1}  # batches in each process: the best of 1, 2, 3
PAUSE = 0.05  # seconds in which a worker becomes idle again

Ready = Callable[[], None]  # called when a drain is connected: then all begin together, as peers do
Drain = Callable[[str, Ready], int]


@dataclass(frozen=True, slots=True)
class Peer:
    """How another queue is run: its command, and the folder it is run in."""

    command: tuple[str, ...]
    folder: Path

    def fill(self, url: str, tasks: int) -> None:
        subprocess.run([*self.command, "fill", str(tasks)], cwd=self.folder, check=True, env=peer_env(url))


def peer_env(url: str) -> dict[str, str]:
    """Everybody sees command lines: a peer finds the address, with its password, in its environment."""
    return {**os.environ, "PEER_URL": url}


@dataclass(frozen=True, slots=True)
class Bench:
    """A server, an environment with the peer, and databases made one after the other."""

    running: Running
    peers: Mapping[str, Peer]

    def database(self, name: str) -> str:
        return fresh_database(self.running.url, name)

    def cpu(self) -> float:
        """Seconds that the server has spent, its ended children included, when every client has left."""
        server = psutil.Process(self.running.process.pid)
        until = time.monotonic() + 10  # what a child spent is lost between its end and its parent's knowing of it
        while any("127.0.0.1(" in _command(child) for child in server.children()) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.1)
        spent = float(sum(server.cpu_times()[:4]))
        for child in server.children():
            with contextlib.suppress(psutil.NoSuchProcess):
                spent += float(sum(child.cpu_times()[:2]))
        return spent


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


# Ours
def fill_ours(url: str, tasks: int, name: str = "") -> None:
    with contextlib.closing(Postgres(url)) as db:
        PostgresLedger(db)
    with psycopg.connect(url) as connection:
        connection.execute("SET synchronous_commit = off")
        if not tasks:
            return
        rows = connection.execute(FILL["jobs"].encode(), {"jobs": tasks // 41, "name": name}).fetchall()
        span = {"first": rows[0][0], "last": rows[-1][0], "spec": SPEC}
        for part in ("changes", "texts", "tasks", "specs", "needs"):
            connection.execute(FILL[part].encode(), span)
    _settle(url)


def drain_ours(
    url: str, ready: Ready, limit: int = 10**9, under_way: int = UNDER_WAY[1], size: int = PostgresLedger.batch
) -> int:
    """Claim and complete until nothing is left, perhaps several batches under way: one is made ready, others commit."""
    ledger = PostgresLedger(Postgres(url))
    me = Incarnation(f"drainer-{os.getpid()}-{time.monotonic_ns()}", "bench", "bench", os.getpid(), "")
    ledger.renew(me, {}, {})
    ready()
    done: list[int] = []

    def work() -> None:
        renewed = time.monotonic()
        while sum(done) < limit and (leases := ledger.claim(me.id, ["cpu"], size)):
            done.append(ledger.complete(me.id, finishes(leases)).verdicts.count("ok"))
            if time.monotonic() - renewed > RENEW_SECONDS:
                ledger.renew(me, {}, {})
                renewed = time.monotonic()

    threads = [threading.Thread(target=work) for _ in range(under_way)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work()  # joins that became ready while all looked
    ledger.close()
    return sum(done)


def one_at_a_time(url: str, ready: Ready, tasks: int) -> int:
    """Submit a job of one task, claim it, complete it; then the next."""
    ledger = PostgresLedger(Postgres(url))
    me = Incarnation("one", "bench", "bench", os.getpid(), "")
    ledger.renew(me, {}, {})
    ready()
    renewed = time.monotonic()
    for n in range(tasks):
        if time.monotonic() - renewed > RENEW_SECONDS:
            ledger.renew(me, {}, {})
            renewed = time.monotonic()
        job = job_id("bench", str(n))
        first = Draft(task_id(job, "noop", None), job, "noop", None, SPEC)
        ledger.submit(NewJob(job, "bench", str(n), "film.mp4", "bench", "{}"), first)
        ledger.complete(me.id, finishes(ledger.claim(me.id, ["cpu"], 1)))
    ledger.close()
    return tasks


def _settle(url: str) -> None:
    """What was put in is on disk and known to the planner before anything is timed."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


# Measuring
def measured(bench: Bench, drain: Drain, url: str, processes: int) -> Spent:
    """Drain from fresh processes that begin together."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(processes), context.Queue()
    workers = [context.Process(target=_drain, args=(drain, url, barrier, answers)) for _ in range(processes)]
    before = bench.cpu()
    for worker in workers:
        worker.start()
    ran = [answers.get(timeout=600) for _ in workers]
    for worker in workers:
        worker.join()
    return _spent(ran, bench.cpu() - before)


def _drain(drain: Drain, url: str, barrier: Any, answers: Any) -> None:
    gc.disable()  # as for SQLite: nothing here makes cycles
    begun: list[float] = []

    def ready() -> None:
        barrier.wait(timeout=60)
        begun.extend((time.monotonic(), time.process_time()))

    done = drain(url, ready)
    begin, cpu = begun
    answers.put((done, begin, time.monotonic(), time.process_time() - cpu))


def measured_peer(bench: Bench, name: str, what: str, url: str, tasks: int, processes: int) -> Spent:
    peer, before = bench.peers[name], bench.cpu()
    command = [*peer.command, what, str(tasks)]
    pipe, env = subprocess.PIPE, peer_env(url)
    drainers = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=peer.folder, env=env)
        for _ in range(processes)
    ]
    for one in drainers:
        if one.stdout is None or one.stdout.readline() != "ready\n":
            raise SystemExit(f"{name} does not start")
    for one in drainers:
        if one.stdin:
            one.stdin.write("\n")
            one.stdin.flush()
    ran = [json.loads(one.communicate(timeout=600)[0].splitlines()[-1]) for one in drainers]
    return _spent(ran, bench.cpu() - before)


def _spent(ran: Sequence[Sequence[float]], server: float) -> Spent:
    wall = max(r[2] for r in ran) - min(r[1] for r in ran)
    return Spent(int(sum(r[0] for r in ran)), wall, sum(r[3] for r in ran) + server)


def compare(bench: Bench, quick: bool, processes: int, count: int) -> bool:
    """Ours against other queues in batches, in turns."""
    many, few = (8_200, 4_000) if quick else (82_000, 40_000)
    spent: dict[str, list[Spent]] = {name: [] for name in ("rushes", *bench.peers)}
    for n in range(count):
        urls = {name: bench.database(f"{name}_{processes}_{n}") for name in spent}
        fill_ours(urls["rushes"], many)
        for name, peer in bench.peers.items():
            peer.fill(urls[name], few)
            _settle(urls[name])
        ours = functools.partial(drain_ours, under_way=UNDER_WAY[processes])
        spent["rushes"].append(measured(bench, ours, urls["rushes"], processes))
        for name in bench.peers:
            spent[name].append(measured_peer(bench, name, "drain", urls[name], few, processes))
        print(".", end="", file=sys.stderr, flush=True)
    table(f"{processes} process(es)", spent, "rushes", ("ours/wall", "ours/CPU"))
    verdicts = [_judged(spent, name, BARS[name][processes]) for name in bench.peers]
    return all(verdicts)


def eights(bench: Bench, quick: bool, count: int) -> bool:
    """Ours against pgqueuer in claims of eight, in turns."""
    tasks = 820 if quick else 8_200
    spent: dict[str, list[Spent]] = {"rushes": [], "pgqueuer": []}
    for n in range(count):
        url, peer = bench.database(f"eights_{n}"), bench.database(f"eights_peer_{n}")
        fill_ours(url, tasks)
        bench.peers["pgqueuer"].fill(peer, tasks)
        _settle(peer)
        spent["rushes"].append(measured(bench, functools.partial(drain_ours, under_way=1, size=8), url, 1))
        spent["pgqueuer"].append(measured_peer(bench, "pgqueuer", "eights", peer, tasks, 1))
        print(".", end="", file=sys.stderr, flush=True)
    table("claims of eight", spent, "rushes", ("ours/wall", "ours/CPU"))
    return True


def single(bench: Bench, quick: bool, count: int) -> bool:
    """Ours against pgqueuer one at a time, from enqueue to done, in turns."""
    tasks = 100 if quick else 1000
    spent: dict[str, list[Spent]] = {"rushes": [], "pgqueuer": []}
    for n in range(count):
        ours = functools.partial(one_at_a_time, tasks=tasks)
        url = bench.database(f"single_{n}")
        fill_ours(url, 0)
        spent["rushes"].append(measured(bench, ours, url, 1))
        url = bench.database(f"single_peer_{n}")
        bench.peers["pgqueuer"].fill(url, 0)
        spent["pgqueuer"].append(measured_peer(bench, "pgqueuer", "single", url, tasks, 1))
        print(".", end="", file=sys.stderr, flush=True)
    table("one at a time", spent, "rushes", ("ours/wall", "ours/CPU"))
    return _judged(spent, "pgqueuer", ONE_AT_A_TIME)


def _judged(spent: Mapping[str, list[Spent]], other: str, bar: float) -> bool:
    ratios = {clock: rate(spent["rushes"], clock) / rate(spent[other], clock) for clock in ("wall", "cpu")}
    verdicts = [judge(f"{other}, {clock}", ratio, bar) for clock, ratio in ratios.items()]
    return all(verdicts)


def growth(bench: Bench, quick: bool, count: int) -> bool:
    """The same drain in an empty ledger, with many queued, with many done, and beside an open snapshot."""
    tasks, queued, finished = (4_100, 20_500, 41_000) if quick else (41_000, 500_000, 1_000_000)
    spent: dict[str, list[Spent]] = {
        "empty": [],
        f"{queued:,} queued": [],
        f"{finished:,} done": [],
        "open snapshot": [],
    }
    names = list(spent)
    many, old = bench.database("many"), bench.database("old")
    fill_ours(many, queued + count * tasks)
    for part in range(5):
        fill_ours(old, finished // 5, f"old {part} ")
        drain_ours(old, lambda: None)
    for n in range(count):
        empty, beside = bench.database(f"empty_{n}"), bench.database(f"beside_{n}")
        for url in (empty, old, beside):
            fill_ours(url, tasks, f"round {n} ")
        spent[names[0]].append(measured(bench, drain_ours, empty, 1))
        spent[names[1]].append(measured(bench, functools.partial(drain_ours, limit=tasks), many, 1))
        spent[names[2]].append(measured(bench, drain_ours, old, 1))
        with _snapshot(beside):
            spent[names[3]].append(measured(bench, drain_ours, beside, 1))
        print(".", end="", file=sys.stderr, flush=True)
    table("growth", spent, "empty", ("empty/wall", "empty/CPU"))
    ratios = {name: rate(runs, "cpu") / rate(spent["empty"], "cpu") for name, runs in spent.items()}
    verdicts = [judge(name, ratios[name], GROWTH) for name in names[1:]]
    return all(verdicts)


@contextlib.contextmanager
def _snapshot(url: str) -> Iterator[None]:
    """Somebody reads for a long time, as a dump does: nothing that dies meanwhile can be cleared away."""
    with psycopg.connect(url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM rushes.job")
        yield


def latency(bench: Bench, quick: bool) -> bool:
    """From the submission of a job to its lease by a worker that was idle."""
    peer: list[float] = []
    ours: list[float] = []
    for n in range(1 if quick else ROUNDS):
        command, env = (
            [*bench.peers["pgqueuer"].command, "latency", str(SAMPLES)],
            peer_env(bench.database(f"peer_{n}")),
        )
        said = subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
        peer = sorted([*peer, *json.loads(said.splitlines()[-1])])
        ours = sorted([*ours, *_latencies(bench.database(f"latency_{n}"), SAMPLES)])
    for name, took in (("rushes", ours), ("pgqueuer", peer)):
        p50, p99 = statistics.median(took) * 1000, took[int(len(took) * 0.99)] * 1000
        print(f"idle latency {name:<12}p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    return judge("idle latency, p50, pgqueuer's by ours", statistics.median(peer) / statistics.median(ours), 1.0)


def _latencies(url: str, count: int) -> list[float]:
    """Submitted in this process, leased in another."""
    context = multiprocessing.get_context("spawn")
    out, into = context.Pipe(duplex=False)
    worker = context.Process(target=_wait_and_claim, args=(url, count, into))
    db = Postgres(url)
    ledger, hints = PostgresLedger(db), Notify(db, listen=url)
    worker.start()
    out.recv()
    took = []
    for n in range(count):
        time.sleep(PAUSE)
        job = job_id("bench", str(n))
        first = Draft(task_id(job, "noop", None), job, "noop", None, SPEC)
        before = time.monotonic()
        ledger.submit(NewJob(job, "bench", str(n), "film.mp4", "bench", "{}"), first)
        hints.announce("cpu", [first.id])
        took.append(out.recv() - before)
    worker.join()
    hints.close()
    return took


def _wait_and_claim(url: str, count: int, into: Any) -> None:
    db = Postgres(url)
    ledger, hints = PostgresLedger(db), Notify(db, listen=url)
    ledger.renew(Incarnation("w", "bench", "bench", os.getpid(), ""), {}, {})
    hints.wait(["cpu"], 1.0)
    into.send(0.0)
    for _ in range(count):
        while not (leases := ledger.claim("w", ["cpu"], 1)):
            hints.wait(["cpu"], 1.0)
        into.send(time.monotonic())
        ledger.complete("w", [Finish(leases[0].task, leases[0].fence)])
    hints.close()


def peers(folder: Path) -> dict[str, Peer]:
    """The other queues, each installed by itself."""
    python = environment(PGQUEUER, folder)
    found = {"pgqueuer": Peer((str(python), str(PEER)), folder)}
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        print("graphile-worker is not compared: there is no Node here")
        return found
    place = folder / "node"
    place.mkdir()
    subprocess.run([npm, "install", "--silent", "--prefix", str(place), GRAPHILE], cwd=place, check=True)
    return found | {"graphile-worker": Peer((node, str(NODE_PEER)), place)}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; 1 if a bar does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small run: the figures mean little")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--part", choices=["one", "two", "eights", "single", "growth", "latency", "all"], default="all")
    asked = parser.parse_args(argv)
    count, ok = asked.rounds or (1 if asked.quick else ROUNDS), True
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(postgres.start(Path(place), settings=SETTINGS), peers(Path(place)))
        try:
            for processes, part in ((1, "one"), (2, "two")):
                if asked.part in (part, "all"):
                    ok &= compare(bench, asked.quick, processes, count)
            if asked.part in ("eights", "all"):
                ok &= eights(bench, asked.quick, count)
            if asked.part in ("single", "all"):
                ok &= single(bench, asked.quick, count)
            if asked.part in ("growth", "all"):
                ok &= growth(bench, asked.quick, count)
            if asked.part in ("latency", "all"):
                ok &= latency(bench, asked.quick)
        finally:
            bench.running.stop()
    return 0 if ok or asked.quick else 1


if __name__ == "__main__":
    sys.exit(main())
