"""Which tests execute which lines of the rooms: recorded by this plugin of pytest, and kept until a file changes.

    python -m pytest -p proof.line_coverage tests/unit/plan      # adds to out/executed.jsonl

Only tests that pass count. What child processes execute is not seen.
"""

import hashlib
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from proof.mutations import PACKAGE, ROOMS, ROOT

KEPT = ROOT / "out/executed.jsonl"
_SOURCES = str(ROOT / PACKAGE) + "/"
Lines = dict[str, set[int]]


@dataclass(frozen=True, slots=True)
class Executed:
    """A test: how long it took, and which lines of which files it executed."""

    test: str
    seconds: float
    lines: dict[str, frozenset[int]]

    @property
    def file(self) -> str:
        """Where it is."""
        return self.test.partition("::")[0]

    def runs(self, file: str, lines: tuple[int, int]) -> bool:
        """Whether it executed one of these lines."""
        first, last = lines
        return any(first <= line <= last for line in self.lines.get(file, ()))


def stale(tests: Sequence[Path]) -> list[Path]:
    """Test files that are not recorded, or of which something has changed since."""
    digests = dict[str, dict[str, str]]()
    for entry in _entries():
        digests |= entry.get("digests", {})
    here = {str(p.relative_to(ROOT)): p for p in tests}
    fresh = {name for name in here if name in digests and all(_digest(f) == d for f, d in digests[name].items())}
    return [path for name, path in here.items() if name not in fresh]


def recorded() -> list[Executed]:
    """What every test executed, the fastest first."""
    found = dict[str, Executed]()
    for entry in _entries():
        if "test" in entry:
            lines = {file: frozenset(lines) for file, lines in entry["lines"].items()}
            found[entry["test"]] = Executed(entry["test"], entry["seconds"], lines)
    return sorted(found.values(), key=lambda executed: executed.seconds)


def third_party() -> list[str]:
    """Modules of others that the tests import, in that order."""
    return list(dict.fromkeys(name for entry in _entries() for name in entry.get("modules", ())))


def _entries() -> Iterator[dict[str, Any]]:
    if KEPT.exists():
        yield from map(json.loads, KEPT.read_text("utf-8").splitlines())


def _digest(file: str) -> str:
    path = ROOT / file
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else ""


# The plugin
@dataclass(slots=True, eq=False)  # pytest keeps plugins in sets
class _Recorder:
    lines: Lines = field(default_factory=lambda: defaultdict(set))
    files: dict[str, str] = field(default_factory=dict)  # of the interpreter -> below the package, or ""
    digests: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def enter(self, frame: FrameType, event: str, arg: object) -> Any:
        name = frame.f_code.co_filename
        if (file := self.files.get(name)) is None:
            below = name.removeprefix(_SOURCES)
            file = self.files[name] = below if below != name and below.startswith(ROOMS) else ""
        if not file:
            return None
        seen = self.lines[file]

        def step(frame: FrameType, event: str, arg: object) -> Any:
            seen.add(frame.f_lineno)
            return step

        return step

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        self.lines, began, failed = defaultdict(set), time.monotonic(), item.session.testsfailed
        threading.settrace(self.enter)
        sys.settrace(self.enter)
        try:
            result = yield
        finally:
            sys.settrace(None)
        if item.session.testsfailed == failed and self.lines:
            self._keep(item.nodeid, time.monotonic() - began)
        return result

    def _keep(self, test: str, seconds: float) -> None:
        lines = {file: sorted(lines) for file, lines in self.lines.items()}
        entry = {"test": test, "seconds": round(seconds, 3), "lines": lines}
        with KEPT.open("a", encoding="utf-8") as kept:
            kept.write(json.dumps(entry) + "\n")
        for file in lines:
            path = str(PACKAGE / file)
            self.digests[test.partition("::")[0]][path] = _digest(path)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        for file in {item.nodeid.partition("::")[0] for item in session.items}:
            self.digests[file][file] = _digest(file)
        modules = [name for name, module in list(sys.modules.items()) if _is_of_others(module)]
        with KEPT.open("a", encoding="utf-8") as kept:
            kept.write(json.dumps({"digests": self.digests, "modules": modules}) + "\n")


def _is_of_others(module: object) -> bool:
    file = getattr(module, "__file__", None) or ""
    return "site-packages" in file or (bool(file) and not file.startswith(str(ROOT)))


def pytest_configure(config: pytest.Config) -> None:
    """Record from now on."""
    KEPT.parent.mkdir(exist_ok=True)
    config.pluginmanager.register(_Recorder())
