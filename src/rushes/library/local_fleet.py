"""The fleet set-up on one machine: three servers from their wheels, a home that uses them, and workers."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from rushes.domain.errors import Refused
from rushes.files import locked_or_refused, make_private, write_whole
from rushes.servers.process import Running, free_port, how, is_free, new_secret, spawn
from rushes.settings import Settings, shown
from rushes.telemetry import shorten_log

BUCKET = KEY = "rushes"
GRACE_SECONDS = 10  # for running chunks, when everything is stopped
PATIENCE_SECONDS = 30.0  # then a worker is killed: nothing is lost by it
STEADY_SECONDS = 60.0  # whoever ran for so long begins again with the shortest pause
PAUSES = (1, 2, 4, 8, 16, 30)  # seconds before a part is started again


@dataclass(frozen=True, slots=True)
class Part:
    """A process of the fleet: its name, where it answers (or what it is), and its log."""

    name: str
    address: str
    running: Running
    log: Path

    @property
    def pid(self) -> int:
        """Of its process."""
        return self.running.process.pid


@dataclass(frozen=True, slots=True)
class Ended:
    """A part that is not there, though nobody stopped it: why, and in how many seconds it is started again."""

    part: Part
    why: str
    pause: int


@dataclass(frozen=True, slots=True)
class _Restarts:
    """How often a part was started again without running for long, and when it is next, if it is away."""

    count: int = 0
    due: float | None = None
    since: float = 0.0


class Fleet:
    """PostgreSQL, Valkey, SeaweedFS and workers; their data stay in one folder and are used again."""

    def __init__(self, folder: Path, workers: int, slots: int) -> None:
        self.folder, self.home = folder, folder / "home"
        self._pids, self._ports = folder / "up.json", folder / "ports.json"
        self._workers, self._slots = workers, slots
        self._closing = ExitStack()
        self.parts: dict[str, Part] = {}
        self._restarts: dict[str, _Restarts] = {}

    def start(self) -> Iterator[Part]:
        """Start one after the other; each is there when it is named.

        Raises:
            Refused: another one runs in this folder, a server does not start, or its wheel is not installed.
        """
        make_private(self.folder)
        make_private(self.home)
        hint = "Stop it with Ctrl-C, or choose another folder."
        running_already = Refused(f"rushes up is already running in {self.folder}", hint)
        self._closing.enter_context(locked_or_refused(self.folder / "up.lock", running_already))
        _end_leftovers(self._pids)
        self._closing.callback(self._pids.unlink, missing_ok=True)
        for name in self._servers:
            yield self._begin(name)
        _write_settings(self.home / "rushes.toml", self.settings)
        for number in range(1, self._workers + 1):
            yield self._begin(f"worker {number}")

    def mend(self) -> Iterator[Part | Ended]:
        """Start again whatever has ended, after a pause that grows while it does not stay."""
        for name, part in list(self.parts.items()):
            shorten_log(part.log)
            due = self._restarts[name].due
            if due is None and (code := part.running.process.poll()) is not None:
                yield self._ended(part, f"ended {how(code)}")
            elif due is not None and time.monotonic() >= due:
                try:
                    yield self._begin(name)
                except Refused as e:
                    yield self._ended(part, f"has not come back: {e}")

    def _begin(self, name: str) -> Part:
        start = self._servers.get(name)
        part = self._server(name, start) if start else self._worker(name)
        self.parts[name] = part
        self._restarts[name] = replace(self._restarts.get(name, _Restarts()), due=None, since=time.monotonic())
        alive = [(p.pid, _birth(p.pid), p.running.ends_by) for p in self.parts.values()]
        write_whole(self._pids, json.dumps(alive).encode())  # whoever comes after a kill can end them
        return part

    def _ended(self, part: Part, why: str) -> Ended:
        before, now = self._restarts[part.name], time.monotonic()
        count = 0 if before.due is None and now - before.since > STEADY_SECONDS else before.count
        pause = PAUSES[min(count, len(PAUSES) - 1)]
        self._restarts[part.name] = replace(before, count=count + 1, due=now + pause)
        return Ended(part, why, pause)

    def stop(self) -> None:
        """Workers first, which hand back what they hold; then the servers, the last one first. Repeatable."""
        self.hurry()
        for part in self._all_workers():
            try:
                part.running.process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                part.running.process.kill()
        for part in self.parts.values():
            part.running.process.send_signal(part.running.ends_by)  # all at once
        for part in reversed(self.parts.values()):
            part.running.stop()
        self._closing.close()
        self.parts.clear()

    def hurry(self) -> None:
        """Tell the workers to stop; told again they stop at once."""
        for part in self._all_workers():
            part.running.process.send_signal(signal.SIGTERM)

    def _all_workers(self) -> list[Part]:
        return [part for name, part in self.parts.items() if name not in self._servers]

    @cached_property
    def _servers(self) -> Mapping[str, Callable[..., Running]]:
        try:  # loaded when needed: a laptop has no servers
            postgres, valkey, seaweed = (
                import_module(f"rushes.servers.{n}").start for n in ("postgres", "valkey", "seaweed")
            )
        except ImportError as e:
            raise Refused(f"{e.name} is not installed", "Install it with: pip install 'rushes[up]'") from e
        return {"PostgreSQL": postgres, "Valkey": valkey, "SeaweedFS": partial(seaweed, bucket=BUCKET, key=KEY)}

    @cached_property
    def _secrets(self) -> Mapping[str, str]:
        """New with every start of the fleet; a server that is started again keeps its own."""
        return {name: new_secret() for name in self._servers}

    def _server(self, name: str, start: Callable[..., Running]) -> Part:
        folder = self.folder / name.lower()
        running = start(folder, port=self._port(name), secret=self._secrets[name])
        return Part(name, running.address, running, next(folder.glob("*.log")))

    def _port(self, name: str) -> int:
        """The one that this server had before, in an earlier life of the fleet only if nobody else took it."""
        ports = json.loads(self._ports.read_text("utf-8")) if self._ports.exists() else {}
        if name not in self.parts and not (name in ports and is_free(ports[name])):
            ports[name] = free_port()
            write_whole(self._ports, json.dumps(ports).encode(), mode=0o600)
        return int(ports[name])

    @property
    def settings(self) -> Mapping[str, str]:
        """What uses these servers, with secrets."""
        url = {name: self.parts[name].running.url for name in self._servers}
        servers = {"store": url["PostgreSQL"], "hints": url["Valkey"], "blobs": f"s3://{BUCKET}"}
        return servers | {"s3_endpoint": url["SeaweedFS"], "s3_key": KEY, "s3_secret": self._secrets["SeaweedFS"]}

    @property
    def shown_settings(self) -> Mapping[str, str]:
        """The same as people and logs may see it."""
        settings: dict[str, Any] = {**self.settings}
        return {name: shown(Settings(**settings), name) for name in settings}

    def _worker(self, name: str) -> Part:
        log = self.folder / f"{name.replace(' ', '-')}.log"
        argv = [sys.executable, "-m", "rushes", "--home", str(self.home), "worker", "--json"]
        argv += ["--slots", str(self._slots), "--drain-grace", str(GRACE_SECONDS)]
        return Part(name, f"{self._slots} at a time", Running("", spawn(argv, log, self._environment())), log)

    def _environment(self) -> dict[str, str]:
        """Ours goes over what the terminal happens to have."""
        return {**os.environ, **{f"RUSHES_{name.upper()}": value for name, value in self.settings.items()}}


def _end_leftovers(file: Path) -> None:
    """End what an earlier one left behind when it was killed, known by pid and birth; workers first."""
    left = json.loads(file.read_text("utf-8")) if file.exists() else []
    for pid, birth, ends_by in reversed(left):
        if birth and _birth(pid) == birth:
            # Nothing is lost by a kill; only PostgreSQL must tell its children.
            process = psutil.Process(pid)
            process.send_signal(signal.SIGKILL if ends_by == signal.SIGTERM else ends_by)
            psutil.wait_procs([process], PATIENCE_SECONDS)


def _birth(pid: int) -> float:
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return 0.0


def _write_settings(file: Path, settings: Mapping[str, str]) -> None:
    """Ours are new each time, whatever else a person wrote there stays."""
    kept = tomllib.loads(file.read_text("utf-8")) if file.exists() else {}
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in {**kept, **settings}.items())
    write_whole(file, text.encode(), mode=0o600)
