"""Questions about films, each in a confined process of its own, which asks this one for the models."""

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rushes.domain.errors import InferenceFailed, NotAllowed, NotFound, Refused, SlotTooBig
from rushes.domain.keys import JSON
from rushes.domain.video import BUCKETS
from rushes.engines.wire import CAPABILITIES
from rushes.files import READ
from rushes.library.inference.gate import Check, Gate, within
from rushes.library.inference.service import InferenceService
from rushes.settings import Settings
from rushes.sources.roots import is_below
from rushes.wiring.addresses import fetch
from rushes.wiring.slots import film_process
from rushes.worker.broker import channel
from rushes.worker.broker.failures import raise_failure
from rushes.worker.broker.service import memory_file, passed_call
from rushes.worker.child import tree_memory
from rushes.worker.scratch import scratch

LOOK_SECONDS = 0.2


class Films:
    """Opens films below the configured sources, and nowhere else."""

    def __init__(self, service: InferenceService, settings: Settings) -> None:
        self._service, self._settings = service, settings
        self._places = Gate(os.cpu_count() or 1)  # for processes at the same time
        self._roots = [root.strip() for root in settings.sources.split(",") if root.strip()]

    def ask(self, what: str, path: str, asked: Mapping[str, JSON], check: Check) -> JSON:
        """The answer to a question about a film.

        Raises:
            NotAllowed, NotFound, BadMedia: there is no such film, or none that may be opened.
            OverLimit, StoreAway: it lies in a bucket, and is too large or cannot be read now.
            Cancelled: the caller went away.
            InferenceFailed: a model failed, or the process did.
        """
        if not path.startswith((*BUCKETS, "/")) or not is_below(path, self._roots):
            raise NotAllowed("only videos below the configured sources can be used", "Set RUSHES_SOURCES.")
        limits = {"max_pixels": self._settings.max_pixels, "max_hours": self._settings.max_hours}
        in_time = within(check, self._settings.inference_seconds)
        with self._film(path, in_time) as film, _process(self._settings) as (process, line):
            question = {"what": what, "asked": {**asked, **limits}, "name": Path(path).name}
            look = within_memory(in_time, process.pid, self._settings.slot_memory_mb << 20)
            turn = _Turn(self._service, film, {**question, "size": os.fstat(film).st_size}, look)
            return turn.serve(process, line)

    @contextmanager
    def _film(self, path: str, check: Check) -> Iterator[int]:
        """A film, once one more may be read; that of a bucket is copied then."""
        if not path.startswith(BUCKETS):
            with _opened(path) as film:
                if not is_below(str(Path(f"/proc/self/fd/{film}").readlink()), self._roots):
                    raise NotAllowed("the video has been moved")
                with self._places.permit(check):
                    yield film
            return
        with self._places.permit(check), tempfile.TemporaryDirectory(prefix="rushes-film-") as folder:
            copy = Path(folder) / "film"
            fetch(self._settings, path, copy, self._settings.upload_gb << 30, check)
            with _opened(str(copy)) as film:
                yield film


class _Turn:
    """One process and what it may have: its film, its question, the models."""

    def __init__(self, service: InferenceService, film: int, question: JSON, check: Check) -> None:
        self._service, self._film, self._question, self._check = service, film, question, check
        self._found: JSON = None

    def serve(self, process: "subprocess.Popen[bytes]", line: socket.socket) -> JSON:
        line.settimeout(LOOK_SECONDS)
        while self._found is None:
            try:
                ask, given = channel.receive(line, self._check)
            except (EOFError, OSError, ValueError) as e:
                raise InferenceFailed(f"the process that read the video ended with {_exit_code(process)}") from e
            self._reply(line, ask, given)
        return self._found

    def _reply(self, line: socket.socket, ask: JSON, given: int | None) -> None:
        passed: int | None = None
        reply: JSON = {}
        try:
            match ask.get("verb"), given:
                case "question", None:
                    reply = self._question
                case "original", None:
                    passed = os.open(
                        f"/proc/self/fd/{self._film}", os.O_RDONLY | os.O_CLOEXEC
                    )  # with a position of its own
                case "infer", int() if ask.get("capability") in CAPABILITIES:
                    call = passed_call(given)
                    gpu = self._question["asked"].get("use_gpu") is not False
                    found = self._service.answer(str(ask["capability"]), call, self._check, use_gpu=gpu)
                    passed = memory_file(found)
                case "found", None:
                    self._found = dict(ask["found"])
                case "failed", None:
                    raise_failure(ask["failure"])
                case _:
                    raise Refused("the process requested something that does not exist")
            with contextlib.suppress(OSError):
                channel.send(line, reply, passed)
        finally:
            for file in (passed, given):
                if file is not None:
                    os.close(file)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    try:
        film = os.open(os.path.realpath(path), READ)
    except OSError as e:
        raise NotFound(f"{Path(path).name} cannot be opened: {e.strerror}", "Check video_path.") from e
    try:
        if not stat.S_ISREG(os.fstat(film).st_mode):
            raise NotFound(f"{Path(path).name} is not a file", "Check video_path.")
        yield film
    finally:
        os.close(film)


def within_memory(check: Check, pid: int, most: int) -> Check:
    """The same check, which also raises SlotTooBig if a process and what it started use too much memory."""
    look_after = 0.0

    def check_both() -> None:
        nonlocal look_after
        check()
        if time.monotonic() >= look_after:
            look_after = time.monotonic() + LOOK_SECONDS
            if tree_memory(pid) > most:
                raise SlotTooBig("the video takes more memory than slot_memory_mb allows")

    return check_both


def _exit_code(process: "subprocess.Popen[bytes]") -> int:
    """Of a process that closed its line, or said what cannot be read: it may live on, and wait to be read."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(LOOK_SECONDS)
    process.kill()
    return process.wait()


@contextmanager
def _process(settings: Settings) -> Iterator[tuple["subprocess.Popen[bytes]", socket.socket]]:
    """A confined process and the line to it; it is ended with everything that it started."""
    ours, theirs = socket.socketpair()
    with ours, scratch(Path(tempfile.gettempdir()) / f"rushes-ml-{os.getuid()}") as folder:
        with theirs:
            argv, env = film_process(settings, folder)
            process = subprocess.Popen(
                [sys.executable, *argv, str(folder), str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                cwd=folder,
                env={**env, "RUSHES_WORKER_PID": str(os.getpid())},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            yield process, ours
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
