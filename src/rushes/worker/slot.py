"""A slot: a long-lived spawned child that runs one task at a time. It opens no store and no original.

What it reads is passed by its worker, which also stores what it makes (`broker/`).
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from rushes.domain.errors import NeverWorks, RushesError
from rushes.domain.keys import JSON, digest
from rushes.domain.result import Manifest
from rushes.domain.span import Span
from rushes.domain.video import Fingerprint, RemoteOriginal
from rushes.engines.port import Engine
from rushes.stages.port import Input, OutputDraft, Stage, TaskBlobs, Work
from rushes.worker.broker.client import BorrowedBlobs, BorrowedOriginal, BrokerClient
from rushes.worker.broker.failures import failure_of
from rushes.worker.child_output import BEGIN, END
from rushes.worker.sandbox.processes import has_children

LOCAL = "local"
Task = Mapping[str, JSON]
OnProgress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class SlotDeps:
    """What a slot works with: stages and engines by name, and a folder for files of the moment."""

    stages: Mapping[str, Stage]
    engines: Mapping[str, Callable[[], Engine]]
    scratch: Path


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The files of one task: its blobs and its original."""

    blobs: TaskBlobs
    original: Path | RemoteOriginal | None
    taken_in: Fingerprint | None


def serve(deps: SlotDeps, connection: Connection, client: BrokerClient) -> None:
    """Run tasks as they come until the parent closes the connection."""
    while True:
        try:
            task = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        _mark(BEGIN)
        answer = _answer(deps, task, client, _progress_sender(connection))
        if has_children():  # only the end of this process surely ends them
            answer["replace"] = True
        _mark(END)
        connection.send_bytes(json.dumps(answer).encode())


def _mark(what: bytes) -> None:
    """Print a marker line, after everything that was printed before."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a stage may have closed or replaced them
        sys.stdout.flush()
        sys.stderr.flush()
    with contextlib.suppress(OSError):
        os.write(2, b"\n" + what + b"\n")


def _answer(deps: SlotDeps, task: Task, client: BrokerClient, on_progress: OnProgress) -> JSON:
    begun = time.monotonic()
    try:
        with _folder(deps.scratch) as folder:
            engine = _engine(deps, task["engine"])
            loading = engine.loading
            made = run_stage(deps, task, _borrowed(client, task, folder), folder, on_progress)
            client.ask("commit", outputs={output: asdict(draft) for output, draft in made.items()})
        return {"type": "finished", "seconds": time.monotonic() - begun - (engine.loading - loading)}
    except Exception as e:  # noqa: BLE001 - anything unknown is a bug in a stage: reported, retried, counted
        if not isinstance(e, RushesError | MemoryError):
            print(traceback.format_exc(), file=sys.stderr, flush=True)
        return failure_of(e)


@contextlib.contextmanager
def _folder(scratch: Path) -> Iterator[Path]:
    """A new folder for one task, gone when it is over."""
    folder = tempfile.mkdtemp(dir=scratch)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _borrowed(client: BrokerClient, task: Task, scratch: Path) -> TaskFiles:
    blobs, about = BorrowedBlobs(client, scratch), task["original"]
    if about is None:
        return TaskFiles(blobs, None, None)
    found = Fingerprint.from_json(about["taken_in"])
    asked = Fingerprint.from_json(about["asked"])
    return TaskFiles(blobs, BorrowedOriginal(about["name"], found, about["block_size"], client), asked)


def _progress_sender(connection: Connection) -> OnProgress:
    """Sends progress to the parent, at most five times a second."""
    last = [-1.0]

    def send(fraction: float) -> None:
        now = time.monotonic()
        if now - last[0] >= 0.2:
            last[0] = now
            connection.send_bytes(json.dumps({"type": "progress", "fraction": fraction}).encode())

    return send


def run_stage(
    deps: SlotDeps, task: Task, files: TaskFiles, scratch: Path, on_progress: OnProgress
) -> Mapping[str, OutputDraft]:
    """Run the stage of a task; what it saved, to be committed."""
    stage = _stage(deps, task["stage"], task["version"])
    work = Work(
        owner=task["owner"],
        job=task["job"],
        stage=task["stage"],
        chunk=task["chunk"],
        chunks=task["chunks"],
        span=Span.from_json(task["span"]) if task["span"] else None,
        options=task["options"],
        models=task["models"],
        wanted=frozenset(task["wanted"]),
        inputs_by_name={
            name: tuple(Input(Manifest.from_json(doc), task["owner"], files.blobs) for doc in manifests)
            for name, manifests in task["inputs"].items()
        },
        source=files.original,
        fingerprint=files.taken_in,
        scratch=scratch,
        blobs=files.blobs,
        engine=_engine(deps, task["engine"]),
        seed=int(digest(task["results"])[:8], 16),
        on_progress=on_progress,
        on_log=lambda text: print(text, file=sys.stderr, flush=True),
    )
    stage.run(work)
    return work.saved


def _engine(deps: SlotDeps, name: str) -> Engine:
    """The engine that the worker chose; a stage that asks none is given the local one, which loads nothing."""
    return deps.engines[name or LOCAL]()


def _stage(deps: SlotDeps, name: str, version: int) -> Stage:
    stage = deps.stages.get(name)
    if stage is None:
        raise NeverWorks(f"no stage {name!r} on this machine", "Install the package that brings it, then retry.")
    if stage.spec.version != version:
        differs = f"stage {name} is version {stage.spec.version} here, the plan asks for {version}"
        raise NeverWorks(differs, "Submit the video again to plan it with this version.")
    return stage
