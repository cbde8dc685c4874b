"""PostgreSQL for tests: one server of each version per process, started when first asked for, emptied for each test."""

import atexit
import functools
import itertools
import os
import shutil
import tempfile
from pathlib import Path

import psutil
import psycopg

from rushes.postgres.store import Postgres
from rushes.servers import postgres
from rushes.servers.process import Running

VERSIONS = (18, 16)
GIVEN = os.environ.get("RUSHES_TEST_POSTGRES", "")  # a server that is there already, in place of every version
POOLED = os.environ.get("RUSHES_TEST_PGBOUNCER", "")  # pgBouncer in front of it
SHM = Path("/dev/shm")  # no power cut is tried here, so that no disk need be waited for
_emptied = itertools.count(1)


@functools.cache
def server(version: int) -> Running:
    """A server that lives as long as this process."""
    for left in SHM.glob("rushes-postgres-*"):  # by a process that was killed
        if not psutil.pid_exists(int(left.name.split("-")[2])):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"rushes-postgres-{os.getpid()}-", dir=SHM if SHM.is_dir() else None))
    # A vacuum that comes by itself is a transaction under way, which whoever asks what has changed may just see.
    running = postgres.start(folder, version, settings={"autovacuum": "off"})
    atexit.register(_end, running, folder)
    return running


def _end(running: Running, folder: Path) -> None:
    running.stop()
    shutil.rmtree(folder)


def database(version: int, folder: Path) -> Postgres:
    """Connections to a database that is empty when a folder asks for the first time."""
    url, mark = direct(version), folder / f"postgres-{version}"
    if not mark.exists():
        empty(url)
        mark.touch()
    return Postgres(POOLED or url, pooled=bool(POOLED))


def direct(version: int) -> str:
    """The address of the server itself."""
    return GIVEN or server(version).url


def empty(url: str) -> None:
    """Take every row out."""
    with psycopg.connect(url, autocommit=True) as db:
        tables = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname LIKE 'rushes%'"
        names = [
            name for (name,) in db.execute(tables).fetchall() if name not in ("rushes.part", "rushes_index.version")
        ]
        if names:
            db.execute("; ".join(f"DELETE FROM {name}" for name in names))
            if next(_emptied) % 50 == 0:
                db.execute(f"VACUUM {', '.join(names)}")
