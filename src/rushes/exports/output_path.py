"""Checks an output path before the work begins."""

import os
from collections.abc import Collection
from pathlib import Path

from rushes.domain.errors import Refused


def check_output_path(path: Path, endings: Collection[str]) -> None:
    """Raise Refused if the file exists, cannot be written, or has the wrong ending."""
    if path.exists():
        raise Refused(f"{path} already exists", "Choose another name, or remove it first.")
    if not path.parent.is_dir():
        raise Refused(f"the folder {path.parent} does not exist", f"Create it first: mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise Refused(f"{path.parent} cannot be written by this user", "Choose another folder.")
    if path.suffix.lower() not in endings:
        better = f"{path.stem}{next(iter(endings))}"
        raise Refused(f"{path.name}: the name must end in {' or '.join(endings)}", f"For example: {better}")
