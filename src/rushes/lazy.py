"""Names that a module offers and loads when they are first used, so that small commands start fast."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def offer(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module that offers `names`, each from the module that stands beside it."""

    def load(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(names[name]), name)

    return load
