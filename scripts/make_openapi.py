"""Writes openapi/ml.yaml from the inference service; --check only says whether it is stale."""

import sys
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from rushes.library.inference import InferenceService
from rushes.settings import Settings
from rushes.surfaces.ml.app import create

FILE = Path(__file__).resolve().parent.parent / "openapi" / "ml.yaml"
NOTE = "# The contract of the inference service (rushes ml). Made by scripts/make_openapi.py from the program itself.\n"


def contract() -> dict[str, Any]:
    """What the service says of itself; nothing is loaded for it."""
    settings = Settings()
    return create(InferenceService(settings), settings).openapi()


def main(argv: list[str]) -> int:
    """Write the file, or compare it."""
    text = NOTE + yaml.safe_dump(contract(), sort_keys=False, allow_unicode=True, width=120)
    if "--check" not in argv:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(text, "utf-8")
        return 0
    if not FILE.is_file() or FILE.read_text("utf-8") != text:
        print("openapi/ml.yaml is stale: run scripts/make_openapi.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
