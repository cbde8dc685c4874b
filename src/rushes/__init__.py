"""rushes processes footage overnight and survives any crash: watch it, search it, cut it.

`rushes.Library(home)` is the Python API; everything else is reached through it.
"""

from importlib import import_module
from typing import Any

__all__ = ["Library"]


def __getattr__(name: str) -> Any:
    """Library is imported when it is first used: the other modules need none of what it brings along."""
    if name == "Library":
        return import_module("rushes.library").Library
    raise AttributeError(name)
