"""The contracts of openapi/, as the programs say them; make_reference.py writes and compares the files."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml  # type: ignore[import-untyped]

from rushes.library import Library
from rushes.library.inference import InferenceService
from rushes.settings import Settings
from rushes.surfaces.ml.app import create as create_ml
from rushes.surfaces.server.app import create

NOTE = "# The contract of {}. Made by scripts/make_reference.py from the program itself.\n"


def ml_contract() -> dict[str, Any]:
    """What the inference service says of itself; nothing is loaded for it."""
    settings = Settings()
    return create_ml(InferenceService(settings), settings).openapi()


def server_contract() -> dict[str, Any]:
    """What the server says of itself, over an empty home."""
    with TemporaryDirectory() as folder, Library(Path(folder) / "home") as library:
        return create(library).openapi()


def contracts() -> Mapping[str, str]:
    """The files by name."""
    found = {"ml.yaml": ("rushes ml", ml_contract()), "rushes.yaml": ("rushes serve", server_contract())}
    return {
        name: NOTE.format(program) + yaml.safe_dump(doc, sort_keys=False, allow_unicode=True, width=120)
        for name, (program, doc) in found.items()
    }
