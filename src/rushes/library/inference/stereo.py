"""A film in 3D, from one address to another: the whole recipe in a process and a home of its own, gone afterwards."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rushes.domain.errors import BadMedia, InferenceFailed, NotAllowed, NotFound, Refused
from rushes.domain.video import BUCKETS
from rushes.files import copy_new
from rushes.library.inference.gate import Check, Queue, within
from rushes.library.videos.stereo import StereoOptions
from rushes.settings import Settings
from rushes.sources.roots import is_below
from rushes.wiring.addresses import fetch, store

LOOK_SECONDS = 0.2
_STORES = ("RUSHES_STORE", "DATABASE_URL", "RUSHES_BLOBS", "S3_BUCKET", "RUSHES_HINTS", "REDIS_URL")
_AT_ONCE = 2  # films: each has slots of its own
_FATAL = 7  # exit code: trying again does not help


class StereoFilms:
    """Makes 3D films of what lies below the configured sources, and puts them there."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        at_once = 1 if settings.low_memory else _AT_ONCE
        self.queue = Queue(at_once)  # not that of the models: a film asks them while it has its place here
        self._roots = [root.strip() for root in settings.sources.split(",") if root.strip()]
        self.url = ""  # of this service: its models measure depth; empty: the slots of the process do

    def convert(self, source: str, target: str, mode: str, check: Check) -> None:
        """Read a film, make its 3D version and store that.

        Raises:
            NotAllowed, NotFound, BadMedia, Refused: it cannot be done as asked; nothing that is there is written over.
            Cancelled: the caller went away.
            InferenceFailed: it failed.
        """
        StereoOptions(mode).wanted()
        for address in (source, target):
            if not address.startswith((*BUCKETS, "/")) or not is_below(address, self._roots):
                raise NotAllowed(
                    "only addresses below the configured sources are read or written", "Set RUSHES_SOURCES."
                )
        in_time = within(check, self._settings.inference_seconds)
        with tempfile.TemporaryDirectory(prefix="rushes-3d-") as name:
            film, made = Path(name) / f"film{Path(source).suffix[:8]}", Path(name) / "made.mp4"
            if source.startswith(BUCKETS):
                fetch(self._settings, source, film, self._settings.upload_gb << 30, in_time)
            elif not (film := Path(os.path.realpath(source))).is_file():
                raise NotFound(f"there is no file at {source}", "Check the address.")
            place = target if target.startswith(BUCKETS) else _new_place(target)
            self._run(Path(name), film, made, mode, in_time)
            self._put(made, place)

    def _run(self, folder: Path, film: Path, made: Path, mode: str, check: Check) -> None:
        argv = [sys.executable, "-m", "rushes", "--home", str(folder / "home"), "stereo", "make", str(film)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*argv, "--format", mode, "--out", str(made)],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_SECONDS)
                    break
                check()
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode:
            told = (folder / "log").read_text("utf-8", "replace").strip()[-300:]
            kind = BadMedia if process.returncode == _FATAL else InferenceFailed
            raise kind(f"no 3D video was made: {told}")

    def _environment(self) -> Mapping[str, str]:
        """The stores are those of its own home, whatever is set here or in the user's file."""
        kept = {name: value for name, value in os.environ.items() if name not in _STORES}
        own = dict.fromkeys((*_STORES, "RUSHES_STAGE_INFERENCE"), "")
        slots = {"RUSHES_SLOTS": "1"} if self._settings.low_memory else {}
        return {**kept, **own, **slots, "RUSHES_INFERENCE": self.url or "local", "RUSHES_BESIDE": "false"}

    def _put(self, made: Path, place: str) -> None:
        if place.startswith(BUCKETS):
            store(self._settings, made, place)
            return
        try:
            is_new = copy_new(made, Path(place))
        except OSError as e:
            raise NotAllowed(f"{Path(place).name} cannot be written: {e.strerror}", "Check the address.") from e
        if not is_new:
            raise _taken(place)


def _new_place(target: str) -> str:
    """Where a film will lie, by its path without links."""
    folder, name = os.path.realpath(Path(target).parent), Path(target).name
    if os.path.lexists(Path(folder) / name):
        raise _taken(target)
    return str(Path(folder) / name)


def _taken(target: str) -> Refused:
    return Refused(f"{target} already exists", "Choose another address, or delete it.")
