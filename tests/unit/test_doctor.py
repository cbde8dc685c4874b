"""The doctor looks at every part of a set-up, by using it."""

from pathlib import Path

import pytest

from rushes.library import Library
from rushes.library.doctor import Check, _hints
from rushes.servers import valkey
from rushes.transport.redis import RedisHints


def check(home: Path, name: str) -> Check:
    with Library(home) as library:
        (found,) = [c for c in library.doctor() if c.name == name]
        return found


def test_a_laptop_needs_no_server(tmp_path: Path) -> None:
    for name, detail in {"store": "SQLite in the home (empty)", "results": "a folder in the home"}.items():
        assert check(tmp_path, name) == Check(name, ok=True, detail=detail)
    assert check(tmp_path, "hints").ok
    assert not list((tmp_path / "files").rglob("doctor/*")), "nothing is left behind"


def test_a_folder_that_cannot_be_written_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Library(tmp_path) as library:
        monkeypatch.setattr(library.house.blobs, "read", lambda _key: None)
        (found,) = [c for c in library.doctor() if c.name == "results"]
    assert not found.ok
    assert found.hint


def test_hints_are_tried_and_a_server_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = valkey.start(tmp_path / "valkey")
    monkeypatch.setenv("RUSHES_HINTS", server.url)
    with Library(tmp_path / "home") as library:
        library.house.__dict__["transport"] = RedisHints(server.url)  # as a fleet's home has it
        assert _hints(library.house) == Check("hints", ok=True, detail=server.url)
        server.stop()
        gone = _hints(library.house)
    assert not gone.ok
    assert server.url in gone.detail
