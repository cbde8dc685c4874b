"""Whether a file can be written where somebody wants it: said before the work, not after."""

import os
from collections.abc import Collection
from pathlib import Path

from rushes.domain.errors import Refused


def check_output_path(path: Path, endings: Collection[str]) -> None:
    """Refuse a place where the file cannot be, or a name that promises something else.

    Raises:
        Refused: says why.
    """
    if path.exists():
        raise Refused(f"{path} is there already", "Choose another name, or remove it first.")
    if not path.parent.is_dir():
        raise Refused(f"there is no folder {path.parent}", f"Make it first: mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise Refused(f"{path.parent} may not be written by this user", "Choose another folder.")
    if path.suffix.lower() not in endings:
        better = f"{path.stem}{next(iter(endings))}"
        raise Refused(f"{path.name}: its name must end in {' or '.join(endings)}", f"For example: {better}")
