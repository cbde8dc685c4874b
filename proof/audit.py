"""One audit for every disturbed run: what the invariants promise, read from the home and from the witness file."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rushes.blob_identity import MARK
from rushes.blobs.documents import read_document
from rushes.domain.event import EventType
from rushes.domain.job import JobState
from rushes.domain.task import TaskState
from rushes.home import Home
from rushes.jobs.maintenance.verify import verify
from rushes.ledger.pages import all_jobs, all_tasks
from rushes.ledger.port import Ledger
from rushes.wiring import open_home

IN_BUCKET = ("checkpoints/", "records.sqlite")  # what a home in a bucket keeps beside its results
JOB = re.compile(r"\bjob_[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found; empty `bad` is what every invariant asks for."""

    bad: tuple[str, ...]
    tasks: int
    events: int
    redone: int  # attempts that the witness saw begin beyond one per task, given back ones left out
    outputs: dict[str, str]  # every blob reachable and every published name -> sha256


def audit(home: Path, witness: Path | None = None) -> Audit:
    """Check a home after its work is done."""
    opened = open_home(home, create=False)
    bad: list[str] = []
    tasks = events = given_back = 0
    for job in all_jobs(opened.ledger, opened.settings.owner):
        if job.state is not JobState.COMPLETED:
            bad.append(f"{job.id} is {job.state}")
        found = all_tasks(opened.ledger, job.id)
        tasks += len(found)
        bad += [f"lost: {t.id} is {t.state}" for t in found if t.state is not TaskState.DONE]
        types, trouble = _events(opened.ledger, job.id, {t.id for t in found})
        events, given_back = events + types.total(), given_back + types[EventType.GIVEN_BACK]
        bad += trouble
    checked = verify(opened.ledger, opened.blobs, opened.settings.owner)
    bad += [f"damaged: {d.task} {d.output}: {d.what}" for d in checked.damages]
    found_outputs = outputs(opened)
    opened.close()
    return Audit(tuple(bad), tasks, events, _redone(witness) - given_back, found_outputs)


def outputs(home: Home) -> dict[str, str]:
    """Every blob that a result names, and every published name, by hash; provenance is left out."""
    found: dict[str, str] = {}
    for key in home.blobs.keys("results/"):
        doc = json.loads(read_document(home.blobs, key) or b"{}")
        doc.pop("provenance", None)
        doc.pop("key", None)  # it is the name
        text = JOB.sub("job", json.dumps(doc, sort_keys=True))  # another set-up has another site in a job's id
        found[key] = hashlib.sha256(text.encode()).hexdigest()
    for name in home.blobs.keys(""):
        if not name.startswith(("results/", "blobs/", MARK, *IN_BUCKET)):
            found[name] = hashlib.sha256(read_document(home.blobs, name) or b"").hexdigest()
    return found


def by_content(outputs: Mapping[str, str]) -> dict[str, str]:
    """The same with results named by what they hold and jobs not at all: another set-up has another site in both."""
    return {
        f"results/{sha}" if name.startswith("results/") else JOB.sub("job", name): sha for name, sha in outputs.items()
    }


def _events(ledger: Ledger, job: str, tasks: set[str]) -> tuple[Counter[EventType], list[str]]:
    numbers: list[int] = []
    types: Counter[EventType] = Counter()
    done: Counter[str] = Counter()
    while events := ledger.events(job, numbers[-1] if numbers else 0):
        numbers += [e.number for e in events]
        types.update(e.type for e in events)
        done.update(e.task or "" for e in events if e.type in (EventType.DONE, EventType.ADOPTED))
    bad = [f"event gap in {job}: {numbers}"] if numbers != list(range(1, len(numbers) + 1)) else []
    bad += [f"done twice: {task} ({n})" for task, n in done.items() if n != 1]
    bad += [f"never done: {task}" for task in sorted(tasks - done.keys())]
    return types, bad


def _redone(witness: Path | None) -> int:
    if witness is None or not witness.exists():
        return 0
    begun = [line.split()[1:4] for line in witness.read_text().splitlines() if line.startswith("begin")]
    return len(begun) - len({tuple(task) for task in begun})
