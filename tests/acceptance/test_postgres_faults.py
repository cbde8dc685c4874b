"""A fleet on PostgreSQL while its server dies, hangs up or loses answers: callers wait, nothing is lost or doubled."""

import contextlib
import os
import random
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest

from rushes.domain.errors import Refused, StoreAway
from rushes.domain.event import EventType
from rushes.domain.job import JobState, NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.result import Result
from rushes.domain.task import Draft, Finish, Need
from rushes.domain.worker import Incarnation
from rushes.ledger.port import Ledger
from rushes.ledger.postgres import PostgresLedger
from rushes.postgres.store import Postgres
from rushes.servers import postgres
from rushes.servers.process import Running

T = TypeVar("T")
LONG = 120.0  # seconds in which everything must be over; nothing here takes so long
CHUNKS = 30
SHM = Path("/dev/shm")  # no power cut is tried here
JOBS = [NewJob(job_id("ann", str(n)), "ann", str(n), f"{n}.mp4", "r", "{}") for n in range(4)]


@pytest.fixture(scope="module")
def one_server() -> Iterator["Server"]:
    with tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None) as folder:
        server = Server(Path(folder))
        yield server
        server.running.stop()


@pytest.fixture
def server(one_server: "Server") -> "Server":
    """A server with nothing in it."""
    with psycopg.connect(one_server.running.url, autocommit=True) as admin:
        admin.execute("DROP SCHEMA IF EXISTS rushes CASCADE")
    return one_server


class Server:
    """A PostgreSQL that can be killed and comes back at the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running = postgres.start(folder)

    def die(self) -> None:
        self.running.process.kill()
        self.running.process.wait()

    def come_back(self) -> None:
        """Its children hold on to the files for a moment after it was killed."""
        port, secret = self.running.port, self.running.secret
        self.running = _patiently(lambda: postgres.start(self.folder, port=port, secret=secret), Refused)


class Cutter:
    """Stands between clients and the server, and now and then hangs up instead of passing on that a commit is there."""

    def __init__(self, server: Running, seed: int, share: float) -> None:
        self._to, self._chance, self._share = server.port, random.Random(seed), share
        self._door = socket.create_server(("127.0.0.1", 0))
        self._lines: list[socket.socket] = []
        self.cut = 0
        self.url = server.url.replace(f":{server.port}/", f":{self._door.getsockname()[1]}/")
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._share = 0.0
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        for line in self._lines:
            line.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._door.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._lines += [client, server]
                threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if answers and b"COMMIT\0" in data and self._chance.random() < self._share:
                    self.cut += 1
                    break
                other.sendall(data)
        for line in (one, other):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)


def _patiently(verb: Callable[[], T], error: type[Exception] = StoreAway) -> T:
    """Again and again until the store is back; anything else is raised."""
    end = time.monotonic() + LONG
    while True:
        try:
            return verb()
        except error:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def _plan(job: str) -> list[Draft]:
    parts = [Draft(task_id(job, "part", n), job, "part", n, "{}", order=n + 1) for n in range(CHUNKS)]
    return [
        *parts,
        Draft(task_id(job, "join", None), job, "join", None, "{}", order=999, needs=tuple(Need(p.id) for p in parts)),
    ]


def _submit(ledger: Ledger) -> None:
    for new in JOBS:
        first = Draft(task_id(new.id, "probe", None), new.id, "probe", None, "{}")
        _patiently(partial(ledger.submit, new, first))


def _work(ledger: Ledger, name: str, ready: list[str]) -> None:
    """Claim and complete until every job is over, whatever the store does."""
    me = Incarnation(name, "host", "boot", os.getpid(), "1")
    while not all(_patiently(partial(ledger.job, new.id)).state is JobState.COMPLETED for new in JOBS):
        _patiently(lambda: ledger.renew(me, {}, {}))  # a store may be away for longer than a lease
        leases = _patiently(lambda: ledger.claim(name, ["cpu"], 4))
        for lease in leases:
            if lease.stage == "probe":
                _patiently(partial(ledger.draft, lease.job, lease.task, lease.fence, _plan(lease.job), "{}"))
        finishes = [Finish(x.task, x.fence, (Result(f"{x.task}-key", "out", "ab" * 32),)) for x in leases]
        completed = _patiently(partial(ledger.complete, name, finishes))
        assert {said.value for said in completed.verdicts} <= {"ok"}
        ready += completed.ready


@contextlib.contextmanager
def load(url: str, workers: int = 3) -> Iterator[list[str]]:
    """Workers that work until everything is done; in the end all of it was done once."""
    with contextlib.closing(_patiently(lambda: PostgresLedger(Postgres(url, size=workers + 1)))) as ledger:
        _submit(ledger)
        ready: list[str] = []
        raised: list[BaseException] = []

        def work(name: str) -> None:
            try:
                _work(ledger, name, ready)
            except BaseException as e:  # noqa: BLE001 - told below
                raised.append(e)

        threads = [threading.Thread(target=work, args=(f"w{n}",), daemon=True) for n in range(workers)]
        for thread in threads:
            thread.start()
        yield ready
        for thread in threads:
            thread.join(LONG)
        assert raised == []
        assert not any(thread.is_alive() for thread in threads)


def _events(url: str, job: str) -> Counter[tuple[EventType, str | None]]:
    with contextlib.closing(PostgresLedger(Postgres(url))) as ledger:
        told = ledger.events(job, limit=10_000)
    assert [event.number for event in told] == list(range(1, len(told) + 1))
    return Counter((event.type, event.task) for event in told)


def everything_was_done_once(url: str) -> None:
    for new in JOBS:
        told = _events(url, new.id)
        tasks = [task_id(new.id, "probe", None), *(draft.id for draft in _plan(new.id))]
        assert {what: n for what, n in told.items() if what[1]} == {(EventType.DONE, task): 1 for task in tasks}
        assert told[EventType.PLANNED, None] == told[EventType.FINISHED, None] == 1


def test_a_server_that_is_killed_and_comes_back_under_load(server: Server) -> None:
    with load(server.running.url) as ready:
        for _ in range(3):
            before = len(ready)
            server.die()
            server.come_back()
            _until(partial(_moved, ready, before, server.running))
    everything_was_done_once(server.running.url)


def test_connections_that_are_terminated_under_load(server: Server) -> None:
    with load(server.running.url), psycopg.connect(server.running.url, autocommit=True) as admin:
        for _ in range(20):
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                          " AND backend_type = 'client backend'")  # fmt: skip
            time.sleep(0.05)  # between two faults; nothing waits for it
    everything_was_done_once(server.running.url)


@pytest.mark.parametrize("seed", [1])
def test_answers_to_commits_that_are_lost_double_nothing(server: Server, seed: int) -> None:
    cutter = Cutter(server.running, seed, share=0.3)
    try:
        with load(cutter.url):
            pass
    finally:
        cutter.close()
    assert cutter.cut > 5  # of about 32: which ones is chance
    everything_was_done_once(server.running.url)


def test_a_server_that_freezes_under_load_is_waited_for(server: Server) -> None:
    url = server.running.url
    with contextlib.closing(Postgres(url, size=1)) as admin, load(url):
        pids = [
            pid for (pid,) in admin.ask("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'", {})
        ]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        time.sleep(0.5)  # the length of the fault
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    everything_was_done_once(url)


def _moved(ready: list[str], before: int, running: Running) -> bool:
    return len(ready) > before or _over(running)


def _over(running: Running) -> bool:
    with contextlib.suppress(StoreAway), contextlib.closing(PostgresLedger(Postgres(running.url))) as ledger:
        return all(ledger.job(new.id).state is JobState.COMPLETED for new in JOBS)
    return False


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
