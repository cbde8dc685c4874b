"""Care of a large home: gc and verify over 1,000,000 manifests on SQLite and a folder, with their memory.

The home is written straight to disk, because to work for it would take weeks: jobs of 50 results each, every manifest a
file of its own, a blob for each ten; the clips of every twentieth job are past their days. Memory must stay flat.
"""

import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rushes.domain.keys import blob_key, manifest_key, result_key
from rushes.domain.result import Artifact, Manifest, Provenance
from rushes.library import Library

PER_JOB, PER_BLOB, OLD_JOBS = 50, 10, 20
FLAT_MB = (
    128  # more for 20 times as much: SQLite fills its caches (64 MB for the ledger, 16 for the work file) and stops
)
MINUTES = 60
YEAR_MILLIS = 365 * 86_400_000
COMMANDS = (["gc"], ["gc"], ["verify", "--sample", "1%"], ["verify"])
_JOB = """
INSERT INTO job (number, id, owner, state, priority, opened, total, done, last_event, finished, changed, created)
VALUES (?, ?, 'me', 'completed', 0, 1, ?, ?, 1, ?, ?, ?)"""
_TASK = """INSERT INTO task (key, id, stage, chunk, lane, place, rank, state, parked, unmet, fence, outcome, adopted,
failures, losses, progress, created, finished)
VALUES (?, ?, ?, ?, 'cpu', ?, 0, 'done', 0, 0, 1, 'done', 0, 0, 0, 1, ?, ?)"""


@dataclass(frozen=True, slots=True)
class Ran:
    """One command: seconds, megabytes at most, and its last line."""

    seconds: float
    megabytes: float
    line: str


def make_home(folder: Path, count: int) -> None:
    """A home with so many results."""
    with Library(folder) as library:
        library.jobs.page(limit=1)
    db = sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("BEGIN")
    for number in range(1, count // PER_JOB + 1):
        _add_job(db, folder / "files", number)
    db.execute("COMMIT")
    db.close()


def _add_job(db: sqlite3.Connection, files: Path, number: int) -> None:
    job, old = f"job_{number:012d}", number % OLD_JOBS == 0
    now = time.time_ns() // 1_000_000 - (YEAR_MILLIS if old else 3_600_000)
    db.execute(_JOB, (number, job, PER_JOB, PER_JOB, now, number, now))
    db.execute("INSERT INTO job_text VALUES (?, '', ?, 'film.mp4', 'clip', '{}', '')", (number, job))
    db.execute("INSERT INTO event VALUES (?, 1, 'finished', ?, NULL, '{}')", (number, now))
    stage = "clip" if old else "transcript"
    for place, (key, manifest) in enumerate(_results(files, number, job, stage)):
        spec = json.dumps({"results": {stage: key}, "inputs": {}, "needs": []})
        task = f"{job}.{stage}.{place:05d}"
        db.execute(_TASK, (number << 20 | place, task, stage, place, place, now, now))
        db.execute("INSERT INTO task_spec VALUES (?, ?)", (number << 20 | place, spec))
        sha256 = hashlib.sha256(manifest).hexdigest()
        db.execute("INSERT INTO result VALUES ('me', ?, ?, ?, 9, 0, 1, 0)", (key, stage, sha256))


def _results(files: Path, number: int, job: str, stage: str) -> Iterator[tuple[str, bytes]]:
    origin = Provenance(job, stage, "bench", "1", "balanced", "c", "i", 1)
    for place in range(PER_JOB):
        data = f"{number} {place // PER_BLOB}".encode()
        sha256, key = hashlib.sha256(data).hexdigest(), result_key(job, place)
        if place % PER_BLOB == 0:
            _write(files / blob_key("me", sha256), data)
        manifest = Manifest(key, stage, (Artifact("it.bin", sha256, len(data), "text/plain"),), origin).to_bytes()
        _write(files / manifest_key("me", key), manifest)
        yield key, manifest


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (0, 0))


def run(home: Path, command: list[str]) -> Ran:
    """One command on that home, in a process of its own."""
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "rushes", "--home", str(home), *command], stdout=subprocess.PIPE, text=True
    ) as process:
        lines = (process.stdout.read() if process.stdout else "").splitlines()
        _, code, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Ran(time.monotonic() - began, usage.ru_maxrss / 1024, lines[-1] if lines else "")


def measure(folder: Path, count: int) -> list[Ran]:
    """Every command on a home with so many results."""
    home = folder / str(count)
    began = time.monotonic()
    make_home(home, count)
    print(f"{count:,} manifests, written in {time.monotonic() - began:.0f} s", flush=True)
    done = []
    for command in COMMANDS:
        one = run(home, command)
        done.append(one)
        print(f"  {' '.join(command):<20} {one.seconds:7.1f} s  {one.megabytes:6.0f} MB  {one.line}", flush=True)
    shutil.rmtree(home)
    return done


def main() -> int:
    """Measure a twentieth and all; 1 if memory grows or it takes hours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=None, help="where the homes are written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        some = measure(Path(folder), options.count // 20)
        everything = measure(Path(folder), options.count)
    growth = max(b.megabytes - a.megabytes for a, b in zip(some, everything, strict=True))
    longest = max(one.seconds for one in everything) / 60
    print(f"memory: at most {growth:.0f} MB more for 20 times as much; the longest took {longest:.1f} min")
    return int(growth > FLAT_MB or longest > MINUTES)


if __name__ == "__main__":
    sys.exit(main())
