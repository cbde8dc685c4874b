"""The doctor: checks every part of a home and machine, and says what to do."""

import os
import secrets
import shutil
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from rushes.domain.errors import RushesError
from rushes.library.failed import Letters
from rushes.library.intake import Wish, missing_models
from rushes.settings import shown
from rushes.wiring import House

SQLITE = (3, 35)  # RETURNING
HINT_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Check:
    """One part, whether it is well, and what to do if not."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


def doctor(house: House) -> tuple[Check, ...]:
    """Check everything; a check that breaks is itself a finding."""
    return tuple(_safely(name, check, house) for name, check in _CHECKS.items())


def _safely(name: str, check: Callable[[House], Check], house: House) -> Check:
    try:
        return check(house)
    except RushesError as e:
        return Check(name, ok=False, detail=str(e), hint=e.advice)
    except OSError as e:
        return Check(name, ok=False, detail=str(e), hint="Check permissions and the disk.")


def _python(_house: House) -> Check:
    ok = sys.version_info >= (3, 11) and sqlite3.sqlite_version_info >= SQLITE
    detail = f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"
    return Check("python", ok, detail, "" if ok else "Use Python 3.11 or newer with SQLite 3.35 or newer.")


def _media(_house: House) -> Check:
    try:
        found = ", ".join(f"{p} {version(p)}" for p in ("av", "faster-whisper", "simplejpeg", "numpy"))
    except PackageNotFoundError as e:
        return Check("media", ok=False, detail=f"{e} is not installed", hint="Install rushes again with pip.")
    return Check("media", ok=True, detail=found)


def _home(house: House) -> Check:
    ok = os.access(house.home, os.W_OK)
    hint = "" if ok else "Give this user the right to write there, or choose --home."
    return Check("home", ok, str(house.home), hint)


def _store(house: House) -> Check:
    jobs = house.ledger.jobs(house.settings.owner, limit=1).rows
    where = shown(house.settings, "store") or "SQLite in the home"
    return Check("store", ok=True, detail=where if jobs else f"{where} (empty)")


def _results(house: House) -> Check:
    """Whether they can be written and read, by a small document that is removed again."""
    key = f"doctor/{secrets.token_hex(8)}"
    house.blobs.create(key, b"well")
    ok = house.blobs.read(key) == b"well"
    house.blobs.remove(key)
    where = shown(house.settings, "blobs") or "a folder in the home"
    return Check("results", ok, where, "" if ok else "What is written cannot be read: check the bucket and its rights.")


def _hints(house: House) -> Check:
    """Whether a hint comes through; if not, work goes on, only slower."""
    server = shown(house.settings, "hints")
    if not server or not house.transport.queues:
        return Check("hints", ok=True, detail="by the store itself")
    lane = f"doctor-{secrets.token_hex(8)}"
    house.transport.announce(lane, ["well"])
    ok = house.transport.wait((lane,), HINT_SECONDS) == ("well",)
    hint = "" if ok else "Check that the server is there; until then workers look for work every few seconds."
    return Check("hints", ok, server if ok else f"{server} does not answer", hint)


def _disk(house: House) -> Check:
    free = shutil.disk_usage(house.home).free
    ok = free >= house.settings.reserve_mb * 2**20
    return Check("disk", ok, f"{free / 2**30:.1f} GB free", "" if ok else "Free some space: rushes gc helps.")


def _models(house: House) -> Check:
    """What the default recipe's stages need, whatever they are."""
    wanted = {capability for card in house.cards.values() for capability in card.models}
    missing = missing_models(house, Wish())
    here = [kept.model.id for kept in house.models.ls() if kept.present and kept.model.capability in wanted]
    detail = f"missing: {', '.join(missing)}" if missing else ", ".join(here) or "none needed"
    return Check("models", not missing, detail, f"rushes models pull {' '.join(missing)}" if missing else "")


def _workers(house: House) -> Check:
    workers = house.ledger.workers()
    alive = sum(w.alive for w in workers)
    return Check("workers", ok=True, detail=f"{alive} alive" if workers else "none running")


def _dead(house: House) -> Check:
    dead = sum(len(group.tasks) for group in Letters(house.ledger, house.records, house.settings.owner).groups())
    detail = f"{dead} dead letter{'s' if dead > 1 else ''}" if dead else "nothing failed"
    return Check("work", not dead, detail, "rushes failed ls" if dead else "")


_CHECKS: dict[str, Callable[[House], Check]] = {
    "python": _python,
    "media": _media,
    "home": _home,
    "store": _store,
    "results": _results,
    "hints": _hints,
    "disk": _disk,
    "models": _models,
    "workers": _workers,
    "work": _dead,
}
