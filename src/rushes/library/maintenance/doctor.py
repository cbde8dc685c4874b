"""The doctor: checks every part of a home and machine, and says what to do."""

import os
import secrets
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from rushes.blobs.documents import read_document
from rushes.domain.errors import EngineAway, NotAllowed, RushesError, SandboxMissing, StoreAway
from rushes.domain.job import JobState
from rushes.domain.redaction import redact, redact_address
from rushes.engines.http import ask_health
from rushes.home import Home
from rushes.index.port import find_video
from rushes.jobs.dead_letters import DeadLetters
from rushes.jobs.intake import JobRequest, missing_models
from rushes.jobs.maintenance.published_names import find_missing_names
from rushes.jobs.maintenance.reports import Check
from rushes.model_settings import service_urls
from rushes.settings import foreign_variables, shown
from rushes.worker.sandbox import REQUIRE
from rushes.worker.sandbox.report import described, layers_of, missing_layers

HINTS = "hints"  # the part without which work goes on, only slower
SQLITE = (3, 35)  # RETURNING
CLOCK_SECONDS = 5.0
NEWEST = 20  # jobs whose published files are looked for: 14 requests each in a bucket; verify looks at all
_WHERE = {"store": "store", "results": "blobs", "hints": "hints", "events": "storage_events"}  # check -> setting


def doctor(home: Home) -> tuple[Check, ...]:
    """Check everything that this home has; a check that breaks is itself a finding."""
    checks = (
        _python,
        _media,
        _sandbox,
        _home,
        _store,
        _protection,
        _results,
        _hints,
        _events,
        _uploads,
        _clock,
        _disk,
        _models,
        _inference,
        _workers,
        _work,
        _published,
        _variables,
    )
    found = (_safely(check, home) for check in checks)
    return tuple(check for check in found if check)


def _safely(check: Callable[[Home], Check | None], home: Home) -> Check | None:
    name = check.__name__.removeprefix("_")
    try:
        return check(home)
    except RushesError as e:
        where = shown(home.settings, _WHERE[name]) if name in _WHERE else ""
        return Check(name, ok=False, detail=f"{where}: {e}" if where else str(e), hint=e.advice)
    except OSError as e:
        return Check(name, ok=False, detail=redact(str(e)), hint="Check permissions and the disk.")


def _python(_house: Home) -> Check:
    ok = sys.version_info >= (3, 11) and sqlite3.sqlite_version_info >= SQLITE
    detail = f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"
    return Check("python", ok, detail, "" if ok else "Use Python 3.11 or newer with SQLite 3.35 or newer.")


def _media(_house: Home) -> Check:
    from importlib import metadata  # noqa: PLC0415 - it takes longer to load than a home to open

    try:
        found = ", ".join(f"{p} {metadata.version(p)}" for p in ("av", "faster-whisper", "simplejpeg", "numpy"))
    except metadata.PackageNotFoundError as e:
        return Check("media", ok=False, detail=f"{e} is not installed", hint="Install rushes again with pip.")
    return Check("media", ok=True, detail=found)


def _sandbox(home: Home) -> Check:
    """Which layers confine a slot; what the kernel does not allow is off, which is fine unless it is required."""
    mode = home.settings.sandbox
    ok = mode != REQUIRE or not missing_layers()
    detail = described(mode, (str(home.models.folder),))
    return Check("sandbox", ok, detail, "" if ok else SandboxMissing.hint)


def _home(home: Home) -> Check:
    ok = os.access(home.folder, os.W_OK)
    hint = "" if ok else "Give this user write permission, or choose another --home."
    return Check("home", ok, str(home.folder), hint)


def _store(home: Home) -> Check:
    jobs = home.ledger.jobs(home.owner, limit=1).rows
    where = shown(home.settings, "store") or "SQLite in the home"
    return Check("store", ok=True, detail=where if jobs else f"{where} (empty)")


def _protection(home: Home) -> Check | None:
    """Whether the store can be restored and is not deleted by mistake, where it is asked of us."""
    try:
        off = home.stores.unprotected()
    except NotAllowed:
        return Check("protection", ok=True, detail="unknown: this role lacks the permission")
    if off is None:
        return None
    if off:
        hint = "Turn it on with the commands in docs/guides/run-on-aws.md, Back up and restore."
        return Check("protection", ok=False, detail=f"off: {', '.join(off)}", hint=hint)
    return Check("protection", ok=True, detail="point-in-time recovery and deletion protection")


def _results(home: Home) -> Check:
    """Whether they can be written and read, by a small document that is removed again."""
    key = f"doctor/{secrets.token_hex(8)}"
    home.blobs.create(key, b"well")
    ok = read_document(home.blobs, key) == b"well"
    home.blobs.delete(key)
    where = shown(home.settings, "blobs") or "a folder in the home"
    return Check(
        "results", ok, where, "" if ok else "Written data cannot be read: check the bucket and its permissions."
    )


def _hints(home: Home) -> Check:
    """Whether a hint comes through; if not, work goes on, only slower."""
    server = shown(home.settings, "hints")
    try:
        how = home.transport.check(home.hinted_lanes)
    except StoreAway as e:
        hint = f"{e.advice} Until then workers poll every few seconds."
        return Check("hints", ok=False, detail=f"{server}: {e}" if server else str(e), hint=hint)
    return Check("hints", ok=True, detail=server if server and home.transport.queues else how)


def _events(home: Home) -> Check | None:
    """Whether the queue that buckets tell can be read, if one is named."""
    if not home.settings.storage_events:
        return None
    waiting = home.storage_events.waiting() if home.storage_events else 0
    return Check("events", ok=True, detail=f"{shown(home.settings, 'storage_events')}, {waiting} waiting")


def _uploads(home: Home) -> Check | None:
    """Whether the bucket lets our pages in, where it is known what they are called."""
    origins, bucket = _origins(home), home.multipart
    if not origins or bucket is None:
        return None
    try:
        out = bucket.shut_out(origins)
    except NotAllowed:
        return Check("uploads", ok=True, detail="unknown: this role lacks the permission")
    detail = f"the bucket does not allow {', '.join(out)} (CORS)" if out else f"the bucket allows {', '.join(origins)}"
    return Check("uploads", not out, detail, "rushes doctor --fix" if out else "")


def fix(home: Home) -> None:
    """Put right what can be put right without a question: pages may send films to the bucket.

    Raises:
        NotAllowed: this role may not.
    """
    if home.multipart and (out := home.multipart.shut_out(_origins(home))):
        home.multipart.let_in(out)


def _origins(home: Home) -> list[str]:
    """Where our pages come from, as far as the settings say."""
    hosts, pages = home.settings.hosts.split(","), home.settings.cors.split(",")
    names = [*(f"https://{host.strip()}" for host in hosts if host.strip()), *(page.strip() for page in pages)]
    return [name for name in names if name]


def _clock(home: Home) -> Check | None:
    """This machine's clock against the store's; the time that the question took counts for neither."""
    before = time.time()
    there = home.stores.clock()
    if there is None:
        return None
    away = max(before - there, there - time.time(), 0.0)
    ok = away <= CLOCK_SECONDS
    hint = "" if ok else "Set this machine's clock (NTP): leases do not depend on it, but displayed times do."
    return Check("clock", ok, f"{away:.0f} s off the store's clock" if away >= 1 else "same as the store's", hint)


def _disk(home: Home) -> Check:
    free = shutil.disk_usage(home.folder).free
    ok = free >= home.settings.reserve_mb * 2**20
    return Check("disk", ok, f"{free / 2**30:.1f} GB free", "" if ok else "Free some space: rushes gc helps.")


def _models(home: Home) -> Check:
    """What the default recipe's stages need, whatever they are."""
    wanted = {capability for spec in home.specs.values() for capability in spec.models}
    missing = missing_models(home, JobRequest())
    here = [kept.model.id for kept in home.models.ls() if kept.present and kept.model.capability in wanted]
    detail = f"missing: {', '.join(missing)}" if missing else ", ".join(here) or "none needed"
    return Check("models", not missing, detail, f"rushes models pull {' '.join(missing)}" if missing else "")


def _inference(home: Home) -> Check | None:
    """Whether the inference services respond, if any are named; all are asked at once."""
    urls, token = service_urls(home.settings), home.settings.inference_token
    if not urls:
        return None
    with ThreadPoolExecutor(len(urls)) as threads:
        said = list(threads.map(partial(_service_health, token), urls))
    hint = next((hint for _, hint in said if hint), "")
    return Check("inference", not hint, "; ".join(told for told, _ in said), hint)


def _service_health(token: str, url: str) -> tuple[str, str]:
    """What is told of a service, and what to do."""
    name = redact_address(url)
    try:
        found = ask_health(url, token)
    except EngineAway as e:
        return f"{name} {e}", e.advice
    models = f"{len(found.models)} models"
    return f"{name} {found.status}, {models}", "" if found.status == "healthy" else "See the log of the service."


def _workers(home: Home) -> Check:
    workers = [worker for worker in home.ledger.workers() if worker.takes_tasks]
    alive = sum(w.alive for w in workers)
    return Check("workers", ok=True, detail=f"{alive} alive" if workers else "none running")


def _work(home: Home) -> Check:
    dead = sum(len(group.tasks) for group in DeadLetters(home).groups())
    detail = f"{dead} failed task{'s' if dead > 1 else ''}" if dead else "no failed tasks"
    return Check("work", not dead, detail, "rushes failed ls" if dead else "")


def _published(home: Home) -> Check:
    """Whether the files that players and people open are there, for the newest jobs."""
    missing = find_missing_names(home, home.ledger.jobs(home.owner, JobState.COMPLETED, limit=NEWEST).rows)
    first = f" (first: {min(missing)})" if missing else ""
    detail = (
        f"{len(missing)} published file{'s' if len(missing) > 1 else ''} missing{first}" if missing else "all there"
    )
    return Check("published", not missing, detail, "rushes verify --repair" if missing else "")


def health(home: Home) -> dict[str, str]:
    """Each part, and "ok" or what it says instead; all are asked at once, for probes of a server are impatient."""
    parts: dict[str, Callable[[], object]] = {
        "ledger": lambda: home.ledger.workers(),  # noqa: PLW0108 - to open it may fail
        "schema": lambda: home.stores.check_schema(home.ledger),
        "records": lambda: home.records.get("ready", home.owner, "ready"),
        "blobs": lambda: home.blobs.read("results/ready"),
        "index": lambda: find_video(home.index, home.owner, "ready"),
        HINTS: lambda: home.transport.check(home.hinted_lanes),
    }
    with ThreadPoolExecutor(len(parts)) as threads:
        return dict(zip(parts, threads.map(_answer, parts.values()), strict=True))


def confinement(home: Home) -> dict[str, str]:
    """Each layer of the sandbox of this machine's slots, and "on" or why it is not."""
    return dict(layers_of(home.settings.sandbox, (str(home.models.folder),)))


def _variables(_house: Home) -> Check | None:
    """Variables that other programs of this kind read, and this one does not."""
    found = foreign_variables(os.environ)
    if not found:
        return None
    hint = "; ".join(f"{name}: set {instead}" for name, instead in found.items())
    return Check("variables", ok=False, detail=f"no effect: {', '.join(found)}", hint=hint)


def _answer(ask: Callable[[], object]) -> str:
    try:
        ask()
    except RushesError as e:
        return str(e)
    return "ok"
