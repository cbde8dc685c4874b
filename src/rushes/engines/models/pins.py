"""Pins: which revision of a model of the hub was fetched, and the hash of each of its files."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rushes.engines.models.fetch import sha256_of
from rushes.files import write_whole

PIN = ".rushes-pin.json"


@dataclass(frozen=True, slots=True)
class Pin:
    """A model of the hub as it was fetched."""

    id: str
    revision: str
    files: Mapping[str, str]  # name below its folder -> sha256


def write_pin(folder: Path, id: str, revision: str) -> Pin:
    """Keep what a folder holds now."""
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.name != PIN)
    pin = Pin(id, revision, {name: sha256_of(folder / name) for name in names})
    write_whole(folder / PIN, json.dumps(asdict(pin), indent=1).encode())
    return pin


def read_pin(folder: Path) -> Pin | None:
    """What was kept, None if it was not fetched from the hub."""
    try:
        return Pin(**json.loads((folder / PIN).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None
