"""Intake on SQL: submit a job with its first task, write plan pages, mark arrived keys."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

from rushes.domain.event import EventType
from rushes.domain.job import Counts, Job, JobState, NewJob
from rushes.domain.keys import JSON, parse_task_id
from rushes.domain.task import Draft, Need, Verdict
from rushes.ledger.clock import iso
from rushes.ledger.port import Arrival
from rushes.ledger.rules import LOCK_SECONDS, check_plan_size
from rushes.ledger.sql.job_row import PLACE_BITS, JobRow, JobRows, held_tasks
from rushes.ledger.sql.transaction import Row, Transaction, encode, legible

_FACTS = ""  # the id of the draft row that carries the facts


class Known(NamedTuple):
    """What a new plan may rest on: keys of tasks, which of them are done, and blob keys that have arrived."""

    keys: Mapping[str, int]
    done: frozenset[str]
    arrived: frozenset[str]


def submit(tx: Transaction, new: NewJob, first: Draft) -> Callable[[], list[Row]]:
    """A job with its first task: answers when it was made, nothing if it was there already."""
    known = _known(tx, JobRows(tx), [_checked(first)], fresh=True)
    unmet = _unmet(first, known)
    made = tx.send(
        "submit", id=new.id, owner=new.owner, priority=new.priority, team=new.team, request_id=new.request_id,
        name=legible(new.name), recipe=new.recipe, payload=new.payload, at=tx.at, task=first.id, stage=first.stage,
        chunk=first.chunk, lane=first.lane, place=first.order, state="waiting" if unmet else "ready", unmet=unmet,
        live=int(not unmet), spec=first.spec, queue=new.queue, body=encode({"name": new.name, "recipe": new.recipe}),
    )  # fmt: skip
    if not first.needs and not first.adopted:
        return made
    rows = made()
    if rows:
        job = JobRows(tx).find(new.id)
        _insert_needs(tx, [first], known._replace(keys={**known.keys, first.id: job.keys["first"]}))
    if rows and first.adopted:
        _adopt_first(tx, new.id, first)
    return lambda: rows


def submitted(new: NewJob, at: int) -> Job:
    """A job that was just made, and waits for nothing."""
    text = new.team, new.request_id, legible(new.name), new.recipe, new.payload, ""
    return Job(
        new.id,
        new.owner,
        *text,
        JobState.CREATED,
        paused=False,
        priority=new.priority,
        counts=Counts(1, live=1),
        last_event=1,
        created_at=iso(at),
        queue=new.queue,
    )


def draft(tx: Transaction, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:
    """Keep a page of the plan for the attempt that holds `task`."""
    status = held_tasks(tx, JobRows(tx), (task,)).get(task)
    if status is None or not status.holds(fence):
        return Verdict.LOST if status is None else status.verdict(fence, "done")
    page = {d.id: encode(asdict(_checked(d))) for d in tasks} | {_FACTS: facts}
    job = status.key >> PLACE_BITS
    tx.run("replace_drafts", job=job, fence=fence, ids=list(page))
    tx.insert("draft", [{"job": job, "fence": fence, "id": id, "body": body} for id, body in page.items()])
    check_plan_size(tx.column("count_drafts", job=job)[0] - 1)
    return Verdict.OK


def arrived(tx: Transaction, key: str, etag: str) -> Arrival:
    """Meet every need of a blob key, or name the jobs that began with other content of it."""
    tx.run("hold_keys", keys=[key])
    tx.run("drop_arrivals", before=tx.wall - 1000 * LOCK_SECONDS)
    new = tx.one("add_arrival", key=key, etag=etag, at=tx.wall)
    again = () if tx.column("first_arrival", key=key) == [etag] else tuple(tx.column("jobs_begun_by", key=key))
    return Arrival(_meet_key(tx, key) if new else (), again)


def _meet_key(tx: Transaction, key: str) -> tuple[str, ...]:
    """The tasks that became ready."""
    jobs = JobRows(tx)
    jobs.load(tx.column("jobs_awaiting", key=key))
    met = tx.column("meet_key", key=key)
    ready = make_ready(tx, jobs, tx.all("count_down_key", keys=met))
    jobs.save()
    return ready


def open_plan(tx: Transaction, jobs: JobRows, job: JobRow, bodies: dict[str, str]) -> tuple[str, ...]:
    """The drafts of an attempt, by their ids, become tasks; those that can be claimed at once."""
    job.opened = True
    if _FACTS in bodies:
        tx.run("keep_facts", job=job.number, facts=bodies.pop(_FACTS))
    drafts = [_draft(json.loads(body)) for body in bodies.values()]
    return _insert_tasks(tx, jobs, job, drafts) if drafts else ()


def cancel_stages(tx: Transaction, job: JobRow) -> None:
    """What is not finished of the stages that are not wanted is cancelled."""
    rows = tx.all("to_cancel", **job.keys, stages=job.cancelled_stages)
    job.total, job.live = job.total - len(rows), job.live - sum(state != "waiting" for _, state in rows)
    tx.run("cancel_tasks", keys=[key for key, _ in rows], at=job.at)


def make_ready(tx: Transaction, jobs: JobRows, counted: Iterable[Row]) -> tuple[str, ...]:
    """Tasks (key, id, state) whose count of unmet needs went down: those that can be claimed now."""
    ready = sorted((key, id) for key, id, state in counted if state == "ready")
    jobs.load({key >> PLACE_BITS for key, _ in ready})
    for key, _ in ready:
        jobs.of(key).live += 1
    parked = {key for key, _ in ready if jobs.of(key).stopped}
    if parked:
        tx.run("park_tasks", keys=list(parked))
    return tuple(id for key, id in ready if key not in parked)


def _insert_tasks(tx: Transaction, jobs: JobRows, job: JobRow, drafts: Sequence[Draft]) -> tuple[str, ...]:
    """Drafts become tasks, numbered in plan order after the first one; those that can be claimed at once."""
    known = _known(tx, jobs, drafts)
    new = sorted((d for d in drafts if d.id not in known.keys), key=lambda d: (d.order, d.id))
    keys = {**known.keys, **{d.id: key for key, d in enumerate(new, job.keys["first"] + 1)}}
    known = Known(keys, known.done | {d.id for d in new if d.adopted}, known.arrived)
    rows = [_task(job, d, known) for d in new]
    tx.insert("task", rows)
    tx.insert("task_spec", [{"task": keys[d.id], "spec": d.spec} for d in new])
    _insert_needs(tx, new, known)
    _count(job, new, [row["state"] for row in rows])
    if job.cancelled_stages:
        cancel_stages(tx, job)
    ready = [row for row in rows if row["state"] == "ready" and row["stage"] not in job.cancelled_stages]
    return () if job.stopped else tuple(str(row["id"]) for row in ready)


def _known(tx: Transaction, jobs: JobRows, drafts: Sequence[Draft], *, fresh: bool = False) -> Known:
    """Look up what a plan needs; jobs and blob keys that it needs are held, so that nothing is met unseen.

    A `fresh` job has no task yet.
    """
    own, refs = {d.id for d in drafts}, {ref for d in drafts for ref in _refs(d, is_key=False)}
    blobs = sorted({ref for d in drafts for ref in _refs(d, is_key=True)})
    if refs - own:
        jobs.load_of(refs - own)
    asked = list(refs - own if fresh else refs | own)
    rows = tx.all("tasks_by_id", ids=asked) if asked else []
    if blobs:
        tx.run("hold_keys", keys=blobs)
    there = tx.column("arrived_keys", keys=blobs) if blobs else []
    done = frozenset(id for id, _, state in rows if state == "done")
    return Known({id: key for id, key, _ in rows}, done, frozenset(there))


def _task(job: JobRow, d: Draft, known: Known) -> dict[str, object]:
    unmet = _unmet(d, known)
    state = "done" if d.adopted else "waiting" if unmet else "ready"
    return {
        "key": known.keys[d.id], "id": d.id, "stage": d.stage, "chunk": d.chunk, "lane": d.lane, "place": d.order,
        "rank": -job.priority, "state": state, "parked": state == "ready" and job.stopped,
        "unmet": 0 if d.adopted else unmet, "fence": 0, "failures": 0, "losses": 0, "progress": 0.0,
        "adopted": d.adopted, "outcome": "done" if d.adopted else None, "created": job.at,
        "finished": job.at if d.adopted else None,
    }  # fmt: skip


def _unmet(d: Draft, known: Known) -> int:
    return len(_refs(d, is_key=False) - known.done) + len(_refs(d, is_key=True) - known.arrived)


def _insert_needs(tx: Transaction, drafts: Sequence[Draft], known: Known) -> None:
    tx.insert("need", [row for d in drafts for row in _needs(d, known.keys)])
    tx.insert("need_key", [row for d in drafts for row in _key_needs(d, known)])


def _adopt_first(tx: Transaction, id: str, first: Draft) -> None:
    """The first task is done from the start, and with it the job."""
    jobs = JobRows(tx)
    job = jobs.find(id)
    tx.run("adopt_first", key=job.keys["first"], at=job.at)
    job.opened, job.total, job.live = True, 0, 0
    _count(job, [first], [])
    jobs.save()


def _needs(d: Draft, keys: Mapping[str, int]) -> Iterable[dict[str, object]]:
    """A row for each task that a task needs; one that nobody knows has a number below zero and is never met."""
    for n, ref in enumerate(sorted(_refs(d, is_key=False)), 1):
        yield {"ref": keys.get(ref, -n), "task": keys[d.id]}


def _key_needs(d: Draft, known: Known) -> Iterable[dict[str, object]]:
    for ref in _refs(d, is_key=True) if not d.adopted else ():
        yield {"key": ref, "task": known.keys[d.id], "met": ref in known.arrived}


def _count(job: JobRow, new: Sequence[Draft], states: Sequence[object]) -> None:
    """What a job gains by new tasks."""
    planned = job.total > 0
    adopted = [d for d in new if d.adopted]
    job.total, job.done, job.live = job.total + len(new), job.done + len(adopted), job.live + states.count("ready")
    if planned:
        job.record(EventType.PLANNED, {"tasks": len(new), "adopted": len(adopted)})
    for d in adopted:
        data = {"stage": d.stage, "chunk": d.chunk, "fence": 0, "worker": None, "seconds": 0.0}
        job.record(EventType.ADOPTED, data, d.id)


def _refs(d: Draft, *, is_key: bool) -> set[str]:
    return {need.ref for need in d.needs if need.is_key is is_key}


def _checked(d: Draft) -> Draft:
    if parse_task_id(d.id) != (d.job, d.stage, d.chunk):
        raise ValueError(f"the id {d.id!r} is not that of {d.job!r}, {d.stage!r}, {d.chunk!r}")
    return d


def _draft(doc: JSON) -> Draft:
    return Draft(**{**doc, "needs": tuple(Need(**need) for need in doc["needs"])})
