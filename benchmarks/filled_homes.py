"""Homes filled with jobs of no-op tasks: 40 chunks and a join each."""

import itertools
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import redis
from proof.setups import Servers

from rushes.domain.job import NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.task import Draft, Finish, Need
from rushes.domain.worker import Incarnation
from rushes.home import Home
from rushes.wiring import open_home

CHUNKS = 40  # of a job, and a join
OWNER, LANE = "bench", "cpu"
SPEC = '{"stage": "noop", "options": {"every_ms": 100}, "span": [0, 60], "note": "%s"}' % ("x" * 40)


@dataclass
class FilledHomes:
    """Homes that are filled once for each kind of store and copied for each run: filling takes longer than draining."""

    servers: Servers
    folder: Path
    filled: dict[str, tuple[str, ...]] = field(default_factory=dict)  # and what is ready there, in its order
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextmanager
    def home(self, setup: str, tasks: int) -> Iterator[Path]:
        """A home of sqlite, postgres or postgres+valkey with so many tasks, for as long as it is used."""
        kind, name = setup.partition("+")[0], f"copy-{next(self.numbers)}"
        original = self._filled(kind, tasks)
        home = Path(shutil.copytree(self.folder / original, self.folder / name))
        if kind == "postgres":
            self._ask(f'create database "{name}" template "{original}"')
            self._ask("checkpoint")  # what was copied is on disk before anything is timed
            (home / "rushes.toml").write_text(self._settings(setup, name))
        announce(home, self.filled[original])
        yield home
        if kind == "postgres":
            self._ask(f'drop database "{name}" with (force)')
        shutil.rmtree(home)

    def _filled(self, kind: str, tasks: int) -> str:
        """The name of the folder and the database that copies are made of."""
        name = f"filled-{kind}-{tasks}"
        if name not in self.filled:
            home = self.folder / name
            home.mkdir(parents=True)
            (home / "rushes.toml").write_text(self.servers.settings(kind, name))
            opened = open_home(home)
            self.filled[name] = fill(opened, tasks)
            opened.close()
        return name

    def _settings(self, setup: str, database: str) -> str:
        store = f'store = "{self.servers.postgres.url.rpartition("/")[0]}/{database}"\nshared = true\n'
        if "valkey" not in setup:
            return store
        with redis.Redis.from_url(self.servers.valkey.url) as server:
            server.flushall()
        return f'{store}hints = "{self.servers.valkey.url}"\n'

    def _ask(self, order: str) -> None:
        with psycopg.connect(self.servers.postgres.url, autocommit=True) as db:
            db.execute(order.encode())


def fill(home: Home, tasks: int) -> tuple[str, ...]:
    """Put in so many tasks, rounded down to whole jobs; those that are ready, as a worker would announce them."""
    ready: list[str] = []
    jobs, filler = tasks // (CHUNKS + 1), worker()
    for begin in range(0, jobs, 100):
        home.ledger.renew(filler, {}, {})
        for _ in range(begin, min(begin + 100, jobs)):
            _submit(home)
        leases = home.ledger.claim(filler.id, ["first"], 100)
        for lease in leases:
            home.ledger.draft(lease.job, lease.task, lease.fence, _plan(lease.job), "{}")
        ready += home.ledger.complete(filler.id, [Finish(lease.task, lease.fence) for lease in leases]).ready
    return tuple(ready)


def _submit(home: Home) -> None:
    job = job_id(OWNER, secrets.token_hex(8))
    probe = Draft(task_id(job, "probe", None), job, "probe", None, SPEC, "first")
    home.ledger.submit(NewJob(job, OWNER, job, "film.mp4", "bench", "{}"), probe)


def _plan(job: str) -> list[Draft]:
    parts = [Draft(task_id(job, "noop", n), job, "noop", n, SPEC, LANE, n + 1) for n in range(CHUNKS)]
    needs = tuple(Need(part.id) for part in parts)
    return [*parts, Draft(task_id(job, "join", None), job, "join", None, SPEC, LANE, CHUNKS + 1, needs)]


def announce(home: Path, tasks: Sequence[str]) -> None:
    """Put hints of these where hints queue."""
    opened = open_home(home, create=False)
    for begin in range(0, len(tasks) if opened.transport.queues else 0, 500):
        opened.transport.announce(LANE, tasks[begin : begin + 500])
    opened.close()


def worker() -> Incarnation:
    """A worker of this process."""
    return Incarnation(f"bench-{os.getpid()}-{time.monotonic_ns()}", "bench", "bench", os.getpid(), "")
