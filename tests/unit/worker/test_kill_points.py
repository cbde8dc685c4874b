"""Every effect has a place to die before it and one after it: a verb without them fails here."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rushes import telemetry
from rushes.blobs.folder import FolderBlobs
from rushes.domain.event import EventType
from rushes.domain.job import JobCommand, NewJob
from rushes.domain.keys import blob_key
from rushes.domain.task import Draft, Failure, Finish
from rushes.domain.worker import Incarnation
from rushes.index.changes import (
    Change,
    CorrectionUpdate,
    CursorMove,
    JobRead,
    Reselection,
    Reset,
    ResultRemoval,
    Run,
    RunUpdate,
    SelectionUpdate,
    TrackUpdate,
    VideoRemoval,
    VideoRename,
)
from rushes.index.sqlite import SqliteIndex
from rushes.ledger.port import Ledger
from rushes.ledger.sqlite import SqliteLedger
from rushes.records.sqlite import SqliteRecords
from rushes.transport.poll import Poll

LOOKING = {"known", "job", "jobs", "tasks", "events", "changed", "workers", "counts"}


@pytest.fixture
def passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[str]]:
    """The crash points passed since the last question."""
    trace = tmp_path / "trace"
    monkeypatch.setattr(telemetry, "_armed", "nowhere#1")
    monkeypatch.setenv("RUSHES_CRASH_TRACE", str(trace))

    def ask() -> set[str]:
        found = {line.split()[1] for line in trace.read_text().splitlines()} if trace.exists() else set()
        trace.unlink(missing_ok=True)
        return found

    return ask


def verbs(port: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(port, inspect.isfunction) if not name.startswith("_")}


def test_every_writing_verb_of_the_ledger(tmp_path: Path, passed: Callable[[], set[str]]) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    me = Incarnation("m.h.b.1", "h", "b", 1, "1")
    spec = '{"results":{},"needs":[]}'
    first = Draft("job_a.probe", "job_a", "probe", None, spec)
    new = NewJob("job_a", "me", "r", "film", "recipe", "{}")
    why = Failure("TryAgain", "not yet", "wait", "may work next time")
    task = ("job_a.probe", 1)

    def give_back() -> None:
        ledger.claim(me.id, ["cpu"], 1)
        ledger.give_back(me.id, [("job_a.probe", 2)], "test")

    calls: dict[str, Callable[[], Any]] = {
        "submit": lambda: ledger.submit(new, first),
        "renew": lambda: ledger.renew(me, {}, {}),
        "claim": lambda: ledger.claim(me.id, ["cpu"], 1),
        "log": lambda: ledger.log(*task, 1, ["a line"]),
        "draft": lambda: ledger.draft("job_a", *task, [], "{}"),
        "fail": lambda: ledger.fail(me.id, *task, why, 0.0),
        "give_back": give_back,
        "complete": lambda: (ledger.claim(me.id, ["cpu"], 1), ledger.complete(me.id, [Finish("job_a.probe", 3)])),
        "revive": lambda: ledger.revive("job_a", again=True),
        "arrived": lambda: ledger.arrived("key", "etag"),
        "set_aside": lambda: ledger.set_aside("me", ["key"], "test"),
        "control": lambda: ledger.control(me.id, JobCommand.DRAIN),
        "sweep": lambda: (ledger.control(me.id, JobCommand.LEAVE), ledger.submit(new, first), ledger.sweep(paid=())),
    }
    assert set(calls) == verbs(Ledger) - LOOKING
    passed()
    for verb, call in calls.items():
        call()
        points = passed()
        if verb != "sweep":  # it writes only when it finds something; the kill tests pass it
            assert {f"ledger.{verb}:before", f"ledger.{verb}:after"} <= points, verb
    assert next(e.type for e in ledger.events("job_a")) is EventType.SUBMITTED
    ledger.close()


def test_every_writing_verb_of_the_blob_store(tmp_path: Path, passed: Callable[[], set[str]]) -> None:
    blobs = FolderBlobs(tmp_path / "files")
    blob = blobs.put("me", b"bytes")
    assert passed() == {"blob:before", "blob:after"}
    blobs.create("results/me/a.json", b"{}")
    assert passed() == {"manifest:before", "manifest:after"}
    blobs.publish("videos/a.bin", "me", blob.sha256)
    assert passed() == {"publish:before", "publish:after"}
    blobs.delete("videos/a.bin")
    assert passed() == {"drop:before", "drop:after"}
    spoilt = blobs.local("me", blob.sha256)
    spoilt.chmod(0o644)
    spoilt.write_bytes(b"other bytes")
    blobs.verify("me", blob.sha256, quarantine=True)
    assert passed() == {"drop:before", "drop:after"}
    blobs.delete(blob_key("me", blobs.put("me", b"other").sha256))
    assert {"drop:before", "drop:after"} <= passed()


def test_hints_records_and_every_change_of_the_index(tmp_path: Path, passed: Callable[[], set[str]]) -> None:
    Poll().announce("cpu", ["task"])
    assert passed() == {"hint:before", "hint:after"}
    records = SqliteRecords(tmp_path / "records.sqlite")
    passed()
    records.put("kind", "me", "id", {})
    records.delete("kind", "me", "id")
    assert {"records.put:before", "records.put:after", "records.delete:before", "records.delete:after"} <= passed()
    records.close()
    index = SqliteIndex(tmp_path / "index.sqlite")
    run = Run("job_a", "me", "vid_a", "recipe", "completed", "2026-01-01T00:00:00Z", {})
    changes: list[Change] = [
        Reset(),
        CursorMove("ledger", "1", ["job_a"]),
        JobRead("job_a", 1),
        RunUpdate(run),
        VideoRename("me", "vid_a", "a name"),
        CorrectionUpdate("me", "line", None),
        Reselection("me"),
        TrackUpdate("me", "vid_a", []),
        SelectionUpdate("me", "vid_a"),
        ResultRemoval("me", ["key"]),
        VideoRemoval("me", "vid_a"),
    ]
    assert {type(change).__name__ for change in changes} == {kind.__name__ for kind in Change.__subclasses__()}
    passed()
    for change in changes:
        index.apply(change)
        assert {"index:before", "index:after"} <= passed(), change
    index.close()
