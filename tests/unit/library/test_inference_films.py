"""A question about a film ends in time, whatever the process that reads the film says."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from rushes.domain.errors import InferenceFailed, NotAllowed, NotFound, OverLimit, Refused, SlotTooBig
from rushes.library.inference import Films, films
from rushes.library.inference.films import _Turn, within_memory
from rushes.library.inference.gate import Cancelled, Check, OutOfTime, within
from rushes.settings import Settings

DEADLINE = 20
BEGIN = """
import json, socket, struct, sys, time
line = socket.socket(fileno=int(sys.argv[1]))
def say(doc):
    data = json.dumps(doc).encode()
    line.sendall(struct.pack("!Q", len(data)) + data)
"""
TOO_MUCH = "say({'verb': 'found', 'found': {'d': 'a' * (33 << 20)}}); time.sleep(600)"
CLOSED = "line.close(); time.sleep(600)"
HALF_A_HEAD = "line.sendall(b'1234'); time.sleep(600)"
DRIBBLE = """
line.sendall(struct.pack("!Q", 1 << 20))
while True:
    line.sendall(b" ")
    time.sleep(0.05)
"""
ALWAYS_ASKING = """
while True:
    say({"verb": "question"})
    line.recv(1000)
"""

UNKNOWN_CAPABILITY = """
doc = json.dumps({"verb": "infer", "capability": "dance"}).encode()
socket.send_fds(line, [struct.pack("!Q", len(doc))], [0])
line.sendall(doc)
time.sleep(600)
"""


@contextmanager
def talking(code: str) -> Iterator[tuple[Any, socket.socket]]:
    """A process that says something over a line."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            argv = [sys.executable, "-c", BEGIN + code, str(theirs.fileno())]
            process = subprocess.Popen(argv, pass_fds=(theirs.fileno(),))
        guard = threading.Timer(DEADLINE, process.terminate)  # who waits for it for ever is told apart by that
        guard.start()
        try:
            yield process, ours
        finally:
            guard.cancel()
            process.kill()
            process.wait()


def served(code: str, check: Check) -> None:
    service: Any = None
    with talking(code) as (process, line):
        _Turn(service, 0, {"what": "objects"}, check).serve(process, line)


def stay() -> None:
    """The caller is still there."""


@pytest.mark.parametrize("code", [TOO_MUCH, CLOSED])
def test_a_process_that_cannot_be_understood_is_not_waited_for(code: str) -> None:
    with pytest.raises(InferenceFailed, match="ended with -9"):
        served(code, stay)


@pytest.mark.parametrize("code", [HALF_A_HEAD, DRIBBLE, ALWAYS_ASKING])
def test_a_process_that_goes_on_for_ever_is_given_up_in_time(code: str) -> None:
    with pytest.raises(OutOfTime, match="inference_seconds"):
        served(code, within(stay, 0.5))


@pytest.mark.parametrize("code", [HALF_A_HEAD, ALWAYS_ASKING])
def test_a_process_whose_caller_is_gone_is_given_up(code: str) -> None:
    looks = iter(range(3))

    def check() -> None:
        if next(looks, None) is None:
            raise Cancelled("gone")

    with pytest.raises(Cancelled):
        served(code, check)


def test_a_process_may_ask_for_what_models_can_do_and_nothing_else() -> None:
    with pytest.raises(Refused, match="requested something that does not exist"):
        served(UNKNOWN_CAPABILITY, stay)


def test_a_process_that_takes_too_much_memory_is_given_up() -> None:
    service: Any = None
    with talking("held = b'1' * (200 << 20)\ntime.sleep(600)") as (process, line):
        check = within_memory(stay, process.pid, 150 << 20)
        with pytest.raises(SlotTooBig, match="slot_memory_mb"):
            _Turn(service, 0, {}, check).serve(process, line)


def test_no_more_processes_than_cores_read_films_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "film.mp4").write_bytes(b"film")
    started: list[object] = []
    monkeypatch.setattr(films, "film_process", lambda *given: started.append(given))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    service: Any = None
    asked = Films(service, Settings(sources=str(tmp_path)))

    def gone() -> None:
        if asked._places._waiting:
            raise Cancelled("gone")

    with asked._places.permit(stay), pytest.raises(Cancelled):
        asked.ask("scenes", str(tmp_path / "film.mp4"), {}, gone)
    assert not started


def test_a_film_of_a_bucket_is_copied_when_its_turn_has_come_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service: Any = None
    store = MemoryStore()
    store.put("in/film.mp4", b"film")
    monkeypatch.setattr("rushes.bucket.client.connect", lambda _location: store)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    asked = Films(service, Settings(sources="gs://films/in", upload_gb=1))
    with asked._film("gs://films/in/film.mp4", stay) as film:
        assert os.read(film, 100) == b"film"
        assert [f.name for f in tmp_path.glob("*/*")] == ["film"]
    assert not list(tmp_path.iterdir())
    for address in ("gs://films/other.mp4", "gs://films-2/in/film.mp4", "s3://films/in/film.mp4", "in/film.mp4"):
        with pytest.raises(NotAllowed, match="below the configured sources"):
            asked.ask("scenes", address, {}, stay)
    with pytest.raises(NotFound, match="no file at"):
        asked.ask("scenes", "gs://films/in/none.mp4", {}, stay)
    few = Films(service, Settings(sources="gs://films", upload_gb=0))
    with pytest.raises(OverLimit):
        few.ask("scenes", "gs://films/in/film.mp4", {}, stay)
