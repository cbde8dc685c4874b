"""A slot: a long-lived spawned child that runs one task at a time. It never opens the ledger.

Blobs first, then the manifest; the parent writes the ledger. A manifest that is there already is verified and adopted.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from rushes.blobs.documents import read_document
from rushes.blobs.manifests import parse_manifest, read_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import (
    DamagedBlob,
    Drained,
    LeaseLost,
    NeverWorks,
    NoRoom,
    OverBudget,
    RushesError,
    StoreAway,
    is_final,
)
from rushes.domain.keys import JSON, digest, manifest_key
from rushes.domain.redaction import redact
from rushes.domain.result import Manifest, Provenance, Result, result_of
from rushes.domain.span import Span
from rushes.domain.task import parse_spec
from rushes.domain.text import clean_text
from rushes.domain.video import Fingerprint, Footage
from rushes.engines.port import Engine
from rushes.files import DISK_FULL
from rushes.stages.port import Input, OutputDraft, Stage, Work
from rushes.worker.child_output import BEGIN, END
from rushes.worker.scratch import scratch

PR_SET_PDEATHSIG = 1
Doc = Mapping[str, JSON]
OnProgress = Callable[[float], None]
_NEEDED = ("version", "source", "span", "options", "models", "inputs", "profile", "config_hash")


@dataclass(frozen=True, slots=True)
class SlotDeps:
    """What a slot works with: stages by name, the blob store, the engine, and where files are."""

    stages: Mapping[str, Stage]
    blobs: Blobs
    engine: Engine
    scratch: Path
    original: Callable[[Fingerprint], Footage]
    version: str


def serve(deps: SlotDeps, connection: Connection) -> None:
    """Run tasks as they come until the parent closes the connection."""
    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        _mark(BEGIN)
        answer = _answer(deps, request, connection)
        _mark(END)
        connection.send_bytes(json.dumps(answer).encode())


def _mark(what: bytes) -> None:
    """Print a marker line, after everything that was printed before."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a stage may have closed or replaced them
        sys.stdout.flush()
        sys.stderr.flush()
    with contextlib.suppress(OSError):
        os.write(2, b"\n" + what + b"\n")


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends, and check that it has not ended already."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.environ.get("RUSHES_WORKER_PID", str(os.getppid())) != str(os.getppid()):
        os._exit(1)


def _answer(deps: SlotDeps, request: Doc, connection: Connection) -> JSON:
    begun, loading = time.monotonic(), deps.engine.loading
    try:
        results = run_task(deps, request, _progress_sender(connection))
        seconds = time.monotonic() - begun - (deps.engine.loading - loading)
        return {"type": "finished", "results": [r._asdict() for r in results], "seconds": seconds}
    except RushesError as e:
        return _failure(e, type(e).__name__, str(e), e.advice, e.verdict)
    except MemoryError as e:
        return _failure(e, "OutOfMemory", "not enough memory for this chunk", "Run fewer slots.", "may work next time")
    except Exception as e:  # noqa: BLE001 - anything else is a bug in a stage: reported, retried, counted
        if isinstance(e, OSError) and e.errno in DISK_FULL:
            return _failure(NoRoom("the disk is full"), "NoRoom", "the disk is full", NoRoom.hint, NoRoom.verdict)
        print(traceback.format_exc(), file=sys.stderr, flush=True)
        hint = "This looks like a bug in the stage; its log has the traceback."
        return _failure(e, type(e).__name__, f"{e}" or "no message", hint, "may work next time")


def _failure(error: BaseException, kind: str, message: str, hint: str, verdict: str) -> JSON:
    return {
        "type": "failed",
        "kind": kind,
        "message": redact(clean_text(message[:2000])),
        "hint": hint,
        "verdict": verdict,
        "replace": isinstance(error, OverBudget),
        "final": is_final(error),
        "counts": is_final(error) or not isinstance(error, Drained | LeaseLost | StoreAway),
    }


def _progress_sender(connection: Connection) -> OnProgress:
    """Sends progress to the parent, at most five times a second."""
    last = [-1.0]

    def send(fraction: float) -> None:
        now = time.monotonic()
        if now - last[0] >= 0.2:
            last[0] = now
            connection.send_bytes(json.dumps({"type": "progress", "fraction": fraction}).encode())

    return send


def run_task(deps: SlotDeps, request: Doc, on_progress: OnProgress) -> list[Result]:
    """Make the results of a task that do not exist yet; return all of them."""
    spec = parse_spec(request["spec"], _NEEDED)
    keys: dict[str, str] = spec["results"]
    results = {output: found for output, key in keys.items() if (found := _adopt(deps.blobs, spec["owner"], key))}
    wanted = frozenset(keys) - frozenset(results)
    if wanted:
        stage = _stage(deps, request["stage"], spec["version"])
        with scratch(deps.scratch) as folder:
            work = _work(deps, request, spec, wanted, folder, on_progress)
            stage.run(work)
            if missing := wanted - work.saved.keys():
                names = ", ".join(sorted(missing))
                raise NeverWorks(f"stage {request['stage']} did not save: {names}", "Fix the stage.")
            results |= {output: _commit(deps, request, spec, output, work.saved[output]) for output in sorted(wanted)}
    return [results[output] for output in keys]


def _stage(deps: SlotDeps, name: str, version: int) -> Stage:
    stage = deps.stages.get(name)
    if stage is None:
        raise NeverWorks(f"no stage {name!r} on this machine", "Install the package that brings it, then retry.")
    if stage.spec.version != version:
        differs = f"stage {name} is version {stage.spec.version} here, the plan asks for {version}"
        raise NeverWorks(differs, "Submit the video again to plan it with this version.")
    return stage


def _work(
    deps: SlotDeps, request: Doc, spec: Doc, wanted: frozenset[str], folder: Path, on_progress: OnProgress
) -> Work:
    owner = spec["owner"]
    source = Fingerprint.from_json(spec["source"]) if spec["source"] else None
    return Work(
        owner=owner,
        stage=request["stage"],
        chunk=request["chunk"],
        span=Span.from_json(spec["span"]) if spec["span"] else None,
        options=spec["options"],
        models=spec["models"],
        wanted=wanted,
        inputs_by_name={
            name: tuple(Input(read_manifest(deps.blobs, owner, key), owner, deps.blobs) for key in keys)
            for name, keys in spec["inputs"].items()
        },
        source=deps.original(source) if source else None,
        fingerprint=source,
        scratch=folder,
        blobs=deps.blobs,
        engine=deps.engine,
        seed=int(digest(spec["results"])[:8], 16),
        on_progress=on_progress,
        on_log=lambda text: print(text, file=sys.stderr, flush=True),
    )


def _adopt(blobs: Blobs, owner: str, key: str) -> Result | None:
    """The result that was committed before, if all of it is sound; a damaged one is removed."""
    name = manifest_key(owner, key)
    try:
        data = read_document(blobs, name)
    except DamagedBlob:  # in a bucket, where the bytes cannot be read to compare them
        blobs.delete(name)
        return None
    if data is None:
        return None
    try:
        manifest = parse_manifest(data, key)
    except DamagedBlob:
        blobs.delete(name, was=data)
        return None
    bad = [a.sha256 for a in manifest.artifacts if not blobs.verify(owner, a.sha256)]
    if not bad:
        return result_of(manifest, hashlib.sha256(data).hexdigest())
    repaired = [blobs.verify(owner, sha256, quarantine=True) for sha256 in bad]
    if all(repaired):
        return _adopt(blobs, owner, key)  # others repaired it meanwhile
    blobs.delete(name, was=data)
    return None


def _commit(deps: SlotDeps, request: Doc, spec: Doc, output: str, saved: OutputDraft) -> Result:
    key = spec["results"][output]
    origin = Provenance(
        run_id=request["job"],
        stage=request["stage"],
        producer=f"rushes.{request['stage']}",
        producer_version=f"{deps.version}/{spec['version']}",
        model_profile=spec["profile"],
        config_hash=spec["config_hash"],
        input_hash=digest([spec["inputs"], spec["source"], spec["span"]])[:16],
        attempt=request["fence"],
        models=tuple(m for m in spec["models"].values() if m),
    )
    manifest = Manifest(key, output, tuple(saved.artifacts), origin, count=saved.count, facts=saved.facts)
    data = manifest.to_bytes()
    if deps.blobs.create(manifest_key(spec["owner"], key), data):
        return result_of(manifest, hashlib.sha256(data).hexdigest())
    first = _adopt(deps.blobs, spec["owner"], key)  # the first writer wins
    if first is None:
        raise DamagedBlob(f"the manifest of {key} was damaged; making it again")
    return first
