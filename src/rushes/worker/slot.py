"""A slot: a long-lived spawned child that runs one task at a time. It never opens the ledger.

Blobs first, then the manifest; the parent writes the ledger. A manifest that is there already is verified and adopted.
"""

import contextlib
import ctypes
import errno
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

from rushes.blobs.manifests import parse_manifest, read_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob, Drained, LeaseLost, NeverWorks, NoRoom, RushesError, StoreAway
from rushes.domain.keys import JSON, digest, manifest_key
from rushes.domain.result import Manifest, Provenance, Result, result_of
from rushes.domain.span import Span
from rushes.domain.video import Fingerprint, Footage
from rushes.engines.port import Engine
from rushes.stages.port import Input, OutputDraft, Stage, Work
from rushes.worker.child_output import BEGIN, END
from rushes.worker.scratch import scratch

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Parts:
    """What a slot works with: stages by name, the blob store, the engine, and where things lie."""

    stages: Mapping[str, Stage]
    blobs: Blobs
    engine: Engine
    scratch: Path
    original: Callable[[Fingerprint], Footage]
    version: str


def serve(parts: Parts, line: Connection) -> None:
    """Run tasks as they come until the parent hangs up."""
    while True:
        try:
            ask = json.loads(line.recv_bytes())
        except (EOFError, OSError):
            return
        _mark(BEGIN)
        answer = _answer(parts, ask, line)
        _mark(END)
        line.send_bytes(json.dumps(answer).encode())


def _mark(what: bytes) -> None:
    """A line of its own among what is printed: whatever was printed before stands before it."""
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


def _answer(parts: Parts, ask: Mapping[str, JSON], line: Connection) -> JSON:
    begun, loading = time.monotonic(), parts.engine.loading
    try:
        results = run_task(parts, ask, _teller(line))
        seconds = time.monotonic() - begun - (parts.engine.loading - loading)
        return {"say": "made", "results": [r._asdict() for r in results], "seconds": seconds}
    except RushesError as e:
        return _failure(e, type(e).__name__, str(e), e.advice, e.verdict)
    except OSError as e:
        if e.errno in (errno.ENOSPC, errno.EDQUOT):
            return _failure(NoRoom("the disk is full"), "NoRoom", "the disk is full", NoRoom.hint, NoRoom.verdict)
        return _bug(e)
    except MemoryError as e:
        return _failure(e, "OutOfMemory", "not enough memory for this chunk", "Run fewer slots.", "may work next time")
    except Exception as e:  # noqa: BLE001 - anything else is a bug in a stage: reported, retried, counted
        return _bug(e)


def _bug(error: Exception) -> JSON:
    print(traceback.format_exc(), file=sys.stderr, flush=True)
    hint = "This looks like a bug in the stage; its log has the traceback."
    return _failure(error, type(error).__name__, f"{error}" or "no message", hint, "may work next time")


def _failure(error: BaseException, kind: str, message: str, hint: str, verdict: str) -> JSON:
    return {
        "say": "broke",
        "kind": kind,
        "message": message[:2000],
        "hint": hint,
        "verdict": verdict,
        "final": isinstance(error, NeverWorks),
        "counts": not isinstance(error, Drained | LeaseLost | StoreAway),
    }


def _teller(line: Connection) -> Callable[[float], None]:
    """Progress goes to the parent five times a second at most."""
    last = [-1.0]

    def tell(fraction: float) -> None:
        now = time.monotonic()
        if now - last[0] >= 0.2:
            last[0] = now
            line.send_bytes(json.dumps({"say": "progress", "fraction": fraction}).encode())

    return tell


def run_task(parts: Parts, ask: Mapping[str, JSON], tell: Callable[[float], None]) -> list[Result]:
    """Make the results of a task that are not there yet; answers all of them."""
    spec = json.loads(ask["spec"])
    keys: dict[str, str] = spec["results"]
    there = {output: found for output, key in keys.items() if (found := _adopt(parts.blobs, spec["owner"], key))}
    wanted = frozenset(keys) - frozenset(there)
    if wanted:
        with scratch(parts.scratch) as folder:
            there |= _make(parts, ask, spec, wanted, folder, tell)
    return [there[output] for output in keys]


def _make(
    parts: Parts,
    ask: Mapping[str, JSON],
    spec: Mapping[str, JSON],
    wanted: frozenset[str],
    folder: Path,
    tell: Callable[[float], None],
) -> dict[str, Result]:
    stage = _stage(parts, ask["stage"], spec["version"])
    work = _work(parts, ask, spec, wanted, folder, tell)
    stage.run(work)
    missing = wanted - work.saved.keys()
    if missing:
        raise NeverWorks(f"stage {ask['stage']} did not save: {', '.join(sorted(missing))}", "Mend the stage.")
    return {output: _commit(parts, ask, spec, output, work.saved[output]) for output in sorted(wanted)}


def _stage(parts: Parts, name: str, version: int) -> Stage:
    stage = parts.stages.get(name)
    if stage is None:
        raise NeverWorks(f"no stage {name!r} on this machine", "Install the package that brings it, then retry.")
    if stage.spec.version != version:
        raise NeverWorks(
            f"stage {name} is version {stage.spec.version} here, the plan asks for {version}",
            "Submit the video again to plan it with this version.",
        )
    return stage


def _work(
    parts: Parts,
    ask: Mapping[str, JSON],
    spec: Mapping[str, JSON],
    wanted: frozenset[str],
    folder: Path,
    tell: Callable[[float], None],
) -> Work:
    owner = spec["owner"]
    source = Fingerprint.from_json(spec["source"]) if spec["source"] else None
    return Work(
        owner=owner,
        stage=ask["stage"],
        chunk=ask["chunk"],
        span=Span.from_json(spec["span"]) if spec["span"] else None,
        options=spec["options"],
        models=spec["models"],
        wanted=wanted,
        inputs_by_name={
            name: tuple(Input(read_manifest(parts.blobs, owner, key), owner, parts.blobs) for key in keys)
            for name, keys in spec["inputs"].items()
        },
        source=parts.original(source) if source else None,
        fingerprint=source,
        scratch=folder,
        blobs=parts.blobs,
        engine=parts.engine,
        seed=int(digest(spec["results"])[:8], 16),
        on_progress=tell,
        on_log=lambda text: print(text, file=sys.stderr, flush=True),
    )


def _adopt(blobs: Blobs, owner: str, key: str) -> Result | None:
    """The result that somebody else committed before, if all of it is sound; a damaged one is set out of the way."""
    name = manifest_key(owner, key)
    try:
        data = blobs.read(name)
    except DamagedBlob:  # a bucket's, whose bytes cannot be had to compare them
        blobs.remove(name)
        return None
    if data is None:
        return None
    try:
        manifest = parse_manifest(data, key)
    except DamagedBlob:
        blobs.remove(name, was=data)
        return None
    bad = [a.sha256 for a in manifest.artifacts if not blobs.sound(owner, a.sha256)]
    if not bad:
        return result_of(manifest, hashlib.sha256(data).hexdigest())
    for sha256 in bad:
        blobs.quarantine(owner, sha256)
    if all(blobs.sound(owner, sha256) for sha256 in bad):
        return _adopt(blobs, owner, key)  # others mended it while this slot slept
    blobs.remove(name, was=data)
    return None


def _commit(parts: Parts, ask: Mapping[str, JSON], spec: Mapping[str, JSON], output: str, saved: OutputDraft) -> Result:
    key = spec["results"][output]
    origin = Provenance(
        run_id=ask["job"],
        stage=ask["stage"],
        producer=f"rushes.{ask['stage']}",
        producer_version=f"{parts.version}/{spec['version']}",
        model_profile=spec["profile"],
        config_hash=spec["config_hash"],
        input_hash=digest([spec["inputs"], spec["source"], spec["span"]])[:16],
        attempt=ask["fence"],
        models=tuple(m for m in spec["models"].values() if m),
    )
    manifest = Manifest(key, output, tuple(saved.artifacts), origin, count=saved.count, facts=saved.facts)
    data = manifest.to_bytes()
    if parts.blobs.create(manifest_key(spec["owner"], key), data):
        return result_of(manifest, hashlib.sha256(data).hexdigest())
    first = _adopt(parts.blobs, spec["owner"], key)  # somebody was faster: the first writer wins
    if first is None:
        raise DamagedBlob(f"the manifest of {key} was damaged; it is made again")
    return first
