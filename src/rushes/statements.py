"""Named SQL (and Lua): every statement lies in a file beside its backend, with a name and one sentence."""

import re
from collections.abc import Mapping
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def statements(*files: Path) -> Mapping[str, str]:
    """The statements of these files by name."""
    found: dict[str, str] = {}
    for file in files:
        parts = _NAME.split(file.read_text("utf-8"))
        found |= {name: _bare(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    return found


def _bare(text: str) -> str:
    lines = (line for line in text.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip().rstrip(";")
