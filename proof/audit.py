"""One audit for every disturbed run: what the invariants promise, read from the home and from the witness file."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rushes.domain.event import EventType
from rushes.domain.job import JobState
from rushes.domain.task import TaskState
from rushes.jobs.verify import all_jobs, verify
from rushes.jobs.why import all_tasks
from rushes.ledger.port import Ledger
from rushes.wiring import House, open_home


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found; empty `bad` is what every invariant asks for."""

    bad: tuple[str, ...]
    tasks: int
    events: int
    begun: int  # attempts that the witness saw begin
    twice: int  # tasks that the witness saw end more than once
    outputs: dict[str, str]  # every blob reachable and every published name -> sha256


def audit(home: Path, witness: Path | None = None) -> Audit:
    """Check a home after its work is done."""
    house = open_home(home, create=False)
    bad: list[str] = []
    tasks = events = 0
    for job in all_jobs(house.ledger, house.settings.owner):
        if job.state is not JobState.COMPLETED:
            bad.append(f"{job.id} is {job.state}")
        found = all_tasks(house.ledger, job.id)
        tasks += len(found)
        bad += [f"lost: {t.id} is {t.state}" for t in found if t.state is not TaskState.DONE]
        count, trouble = _events(house.ledger, job.id, {t.id for t in found})
        events, bad = events + count, bad + trouble
    checked = verify(house.ledger, house.blobs, house.settings.owner)
    bad += [f"damaged: {d.task} {d.output}: {d.what}" for d in checked.damages]
    begun, twice = _witnessed(witness)
    return Audit(tuple(bad), tasks, events, begun, twice, outputs(house))


def outputs(house: House) -> dict[str, str]:
    """Every blob that a result names, and every published name, by hash; provenance is left out."""
    found: dict[str, str] = {}
    for key in house.blobs.keys("results/"):
        doc = json.loads(house.blobs.read(key) or b"{}")
        doc.pop("provenance", None)
        found[key] = hashlib.sha256(json.dumps(doc, sort_keys=True).encode()).hexdigest()
    root = house.home / "files"
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root).as_posix()
        if file.is_file() and not name.startswith((".", "results/", "blobs/")):
            found[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def _events(ledger: Ledger, job: str, tasks: set[str]) -> tuple[int, list[str]]:
    numbers: list[int] = []
    done: Counter[str] = Counter()
    after = 0
    while events := ledger.events(job, after):
        numbers += [e.number for e in events]
        done.update(e.task or "" for e in events if e.type in (EventType.DONE, EventType.ADOPTED))
        after = numbers[-1]
    bad = [f"event gap in {job}: {numbers}"] if numbers != list(range(1, len(numbers) + 1)) else []
    bad += [f"done twice: {task} ({n})" for task, n in done.items() if n != 1]
    bad += [f"never done: {task}" for task in sorted(tasks - done.keys())]
    return len(numbers), bad


def _witnessed(witness: Path | None) -> tuple[int, int]:
    if witness is None or not witness.exists():
        return 0, 0
    lines = [line.split() for line in witness.read_text().splitlines()]
    ends = Counter((stage, chunk) for what, stage, chunk, _pid in lines if what == "end")
    return sum(what == "begin" for what, *_ in lines), sum(n > 1 for n in ends.values())
