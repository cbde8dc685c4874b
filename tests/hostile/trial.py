"""Tries one input in a process of its own and watches it: what it opens, whom it calls, what it writes and needs."""

import ctypes
import json
import os
import re
import resource
import signal
import socket
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np

from rushes.domain.errors import NeverWorks
from rushes.domain.span import Span
from rushes.domain.video import VideoFacts
from rushes.media.reading.frames import decode
from rushes.stages.audio import Audio
from rushes.stages.develop import Develop
from rushes.stages.playlist import Playlist
from rushes.stages.probe import Probe
from rushes.stages.shots import Shots
from tests.hostile.case import Case, Expectation, Lure
from tests.unit.film_work import FilmWork, chunks
from tests.unit.media_files import plain

MAX_MEMORY = 1024  # MiB
MAX_SECONDS = 30.0
_HARD_MEMORY, _HARD_SECONDS = 8 << 30, 90  # where the machine must be protected from what is measured
SECRET = b"d41d8-a-secret-that-nobody-may-read-8f00b2"
_OPENED = 0x01 | 0x20  # IN_ACCESS, IN_OPEN
Shown = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of an input; `wrong` says what should not have been."""

    name: str
    outcome: str
    wrong: tuple[str, ...]
    seconds: float  # of processor time
    memory: int  # MiB


class Deaf:
    """An engine that hears no voice."""

    def detect_speech(self, _pcm: Any) -> list[tuple[int, int]]:
        return []


@dataclass(slots=True)
class Trap:
    """A private film and a private text that nobody may open, and a server that nobody may call."""

    lure: Lure
    server: socket.socket
    watch: int

    def sprung(self) -> list[str]:
        """What was opened, and who connected, since the last time."""
        found = ["a foreign file was opened"] if self._events() else []
        try:
            self.server.accept()[0].close()
        except BlockingIOError:
            return found
        return [*found, "it connected"]

    def _events(self) -> bytes:
        try:
            return os.read(self.watch, 1 << 16)
        except BlockingIOError:
            return b""


@contextmanager
def trap(folder: Path) -> Iterator[Trap]:
    """A trap in a new folder."""
    folder.mkdir()
    film, text = plain(folder / "private.mp4", 1), folder / "private.txt"
    text.write_bytes(SECRET)
    film.write_bytes(film.read_bytes() + SECRET)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for file in (film, text):
            if libc.inotify_add_watch(watch, os.fsencode(file), _OPENED) < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch")
        lure = Lure(film, text, f"http://127.0.0.1:{server.getsockname()[1]}/x.ts")
        yield Trap(lure, server, watch)
        os.close(watch)


def try_case(case: Case, folder: Path, trap: Trap) -> Verdict:
    """Make an input, work on it, and judge what came of it."""
    home, made = folder / "home", folder / "made"
    for new in (home, made, folder / "outside"):
        new.mkdir(parents=True)
    path = home / case.name
    _forked(lambda: case.make(path, trap.lure), folder / "maker.json", folder)
    trap.sprung()  # makers may look
    before = _tree(folder)
    answer, usage = _forked(lambda: work_on(path, made, case.expect), folder / "answer.json", folder)
    wrong = [*_misjudged(case, answer), *trap.sprung()]
    after = {name for name in _tree(folder) if not name.startswith(("made", "answer.json"))}
    wrong += [f"wrote {name}" for name in sorted(after - before)]
    wrong += ["a secret is in what was made"] if _leaks(made) or SECRET.decode() in json.dumps(answer) else []
    memory, seconds = usage.ru_maxrss // 1024, usage.ru_utime + usage.ru_stime
    wrong += [f"{memory} MiB"] if memory > MAX_MEMORY else []
    wrong += [f"{seconds:.1f} s"] if seconds > MAX_SECONDS else []
    said = str(answer.get("refused") or answer.get("broke") or f"{answer.get('frames', '?')} frames")
    return Verdict(case.name, said, tuple(wrong), seconds, memory)


def work_on(path: Path, made: Path, expect: Expectation) -> dict[str, Any]:
    """What the stages without a net make of a file: a refusal in words, or frames."""
    engine: Any = Deaf()
    try:
        if not path.is_symlink() and not path.exists():
            raise AssertionError("the input was not made")
        work = FilmWork(path, made, engine=engine)
        work.run(Probe())
        spans = chunks(work.facts, 1) if work.facts.video else [None]
        for span in spans:
            work.run(Develop(), span)
        work.run(Shots())
        work.run(Audio())
        work.run(Playlist())
    except NeverWorks as refused:
        return {"refused": f"{refused}", "advice": refused.advice}
    return _compared(path, work.facts, [span for span in spans if span], expect)


def _compared(path: Path, facts: VideoFacts, spans: list[Span], expect: Expectation) -> dict[str, Any]:
    """How many frames there are, and what is wrong with them."""
    if facts.video is None:
        return {"frames": 0}
    hidden: list[int] = []
    got = [_shown(f) for span in spans for f in decode(path, facts, span, on_damage=hidden.append)]
    times = [pts for pts, _ in got]
    if times != sorted(set(times)):
        return {"frames": len(got), "untrue": "its times do not rise"}
    whole = not hidden and not facts.video.damaged
    if whole:
        want = _undivided(path, facts.video.start)
        if expect is not Expectation.RIGHT:  # what a broken packet shows depends on what the decoder saw before
            got, want = [(pts, 0) for pts, _ in got], [(pts, 0) for pts, _ in want]
        if got != want:
            return {"frames": len(got), "untrue": f"{len(got)} frames are not the {len(want)} of an undivided decode"}
    return {"frames": len(got)}


def _undivided(path: Path, start: int) -> Shown:
    with av.open(str(path), metadata_errors="replace") as container:
        stream = container.streams.best("video")
        assert isinstance(stream, av.VideoStream)
        stream.codec_context.thread_count = 1
        shown: Shown = []
        for packet in container.demux(stream):
            with suppress(av.FFmpegError):
                shown += [_shown(frame) for frame in packet.decode() if (frame.pts or 0) >= start]
        return shown


def _shown(frame: av.VideoFrame) -> tuple[int, int]:
    rows = np.frombuffer(bytes(frame.planes[0]), np.uint8).reshape(-1, frame.planes[0].line_size)
    return frame.pts or 0, zlib.crc32(rows[:, : frame.planes[0].width].tobytes())


def _misjudged(case: Case, answer: dict[str, Any]) -> list[str]:
    refusal = answer.get("refused")
    if "broke" in answer:
        return [str(answer["broke"])]
    if refusal is not None:
        if case.expect is Expectation.RIGHT:
            return [f"refused: {refusal}"]
        fits = answer["advice"] and re.search(case.reason, refusal)
        return [] if fits else [f"refused for another reason: {refusal}"]
    if case.expect is Expectation.REFUSED:
        return ["not refused"]
    if case.frames is not None and answer["frames"] != case.frames:
        return [f"{answer['frames']} frames instead of {case.frames}"]
    return [answer["untrue"]] if "untrue" in answer else []


def _forked(work: Callable[[], object], answer: Path, folder: Path) -> tuple[dict[str, Any], resource.struct_rusage]:
    """What a child process answers, and what it used."""
    child = os.fork()
    if child == 0:
        _in_child(work, answer, folder)
    _, status, usage = os.wait4(child, 0)
    if answer.exists():
        return json.loads(answer.read_text()), usage
    return {"broke": f"died with status {status}"}, usage


def _in_child(work: Callable[[], object], answer: Path, folder: Path) -> None:
    """Never returns."""
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_HARD_MEMORY, _HARD_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (_HARD_SECONDS, _HARD_SECONDS))
        signal.alarm(2 * _HARD_SECONDS)
        os.environ |= {"HOME": str(folder / "outside"), "TMPDIR": str(folder / "made")}
        os.chdir(folder / "outside")
        av.logging.set_level(av.logging.PANIC)
        said = work()
        answer.write_text(json.dumps(said if isinstance(said, dict) else {}))
    except BaseException as e:  # noqa: BLE001 - whatever it is, the parent is told
        answer.write_text(json.dumps({"broke": f"{type(e).__name__}: {e}"[:300]}))
        if os.environ.get("HOSTILE_TRACE"):
            traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(0)


def _tree(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


def _leaks(made: Path) -> bool:
    return any(SECRET in file.read_bytes() for file in made.rglob("*") if file.is_file())
