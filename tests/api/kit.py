"""A real server on loopback over a real home; films and work only where a test is about them."""

import json
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any

import httpx
from argon2 import PasswordHasher

from rushes.domain.job import Job, NewJob
from rushes.domain.task import Draft, Finish
from rushes.domain.worker import Incarnation
from rushes.ledger.port import Ledger
from rushes.library import Library
from rushes.surfaces.server.app import create
from rushes.surfaces.server.process import Server

DEADLINE = 240.0  # far more than anything here takes
WORKER = "m.h.b.1"
PROGRAM = [sys.executable, "-m", "rushes", "--json"]
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # nobody speaks TLS here, and certificates take 90 ms to load


@dataclass
class Serving:
    """A server that runs, its library and a client for it."""

    library: Library
    url: str
    http: httpx.Client
    app: Any
    listener: socket

    @property
    def ledger(self) -> Ledger:
        return self.library.home.ledger

    def get(self, path: str, status: int = 200, **more: Any) -> Any:
        answer = self.http.get(path, **more)
        assert answer.status_code == status, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None, status: int = 200, **more: Any) -> Any:
        answer = self.http.post(path, json=body, **more)
        assert answer.status_code == status, answer.text
        return answer.json()


@contextmanager
def serving(home: Path, host: str = "127.0.0.1", code: str = "", **settings: Any) -> Iterator[Serving]:
    """A server in a thread of the test, gone at the end."""
    with Library(home, options={name: (value, "the test") for name, value in settings.items()}) as library:
        app = create(library, host, code, insecure=True)
        app.state.access.accounts._hasher = PasswordHasher(1, 8, 1)  # the real one is slow on purpose
        server = Server(app, "127.0.0.1", 0)
        thread = threading.Thread(target=server.run)
        thread.start()
        wait_for(lambda: server.started, "the server never listened")
        listener = server.servers[0].sockets[0]
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with httpx.Client(base_url=url, timeout=DEADLINE, verify=PLAIN) as http:
                yield Serving(library, url, http, app, listener)
        finally:
            app.state.hub.hang_up()
            server.should_exit = True
            thread.join(DEADLINE)
            assert not thread.is_alive(), "the server never left"


@contextmanager
def served(home: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`rushes serve` as a process, once it listens, and what it said."""
    argv = [*PROGRAM, "--home", str(home), "serve", "--port", "0", *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout
            said = json.loads(process.stdout.readline())
            wait_for(lambda: answers(said["url"]), "it never listened")
            yield process, said
        finally:
            process.kill()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=DEADLINE, verify=PLAIN).status_code == 200
    except httpx.TransportError:
        return False


def wait_for(what: Callable[[], bool], why: str) -> None:
    """Wait for something that must happen."""
    over = time.monotonic() + DEADLINE
    while not what():
        assert time.monotonic() < over, why
        time.sleep(0.005)


SPEC = json.dumps({"results": {"facts": "none"}, "owner": "me", "options": {}, "inputs": {}, "needs": [], "span": None})


def begin(ledger: Ledger, name: str) -> Job:
    """A job that nobody has looked into yet."""
    job = f"job_{name}"
    first = Draft(f"{job}.probe", job, "probe", None, SPEC)
    return ledger.submit(NewJob(job, "me", name, f"{name}.mp4", "toys", _payload()), first).job


def submit(ledger: Ledger, name: str, tasks: int = 0) -> Job:
    """A job of some toy tasks, open and ready to be worked on; no film, no slot."""
    job = begin(ledger, name).id
    enter(ledger)
    (lease,) = ledger.claim(WORKER, ["cpu"], 1, [f"{job}.probe"])
    drafts = [Draft(f"{job}.develop.{n:05d}", job, "develop", n, SPEC, order=n + 1) for n in range(tasks)]
    facts = json.dumps({"video": f"vid_{name}", "trial": True, "duration_us": 1_000_000, "width": 1, "height": 1})
    ledger.draft(job, lease.task, lease.fence, drafts, facts)
    ledger.complete(WORKER, [Finish(lease.task, lease.fence)])
    return ledger.job(job)


def work(ledger: Ledger, n: int = 1) -> int:
    """Do up to n ready tasks."""
    enter(ledger)
    leases = ledger.claim(WORKER, ["cpu"], n)
    if leases:
        ledger.complete(WORKER, [Finish(lease.task, lease.fence) for lease in leases])
    return len(leases)


def enter(ledger: Ledger) -> None:
    ledger.renew(Incarnation(WORKER, "h", "b", 1, "1", ("cpu",), 2, owner="me"), {}, {})


def _payload() -> str:
    source = {"path": "a.mp4", "size": 1, "mtime_ns": 1}
    return json.dumps({"owner": "me", "source": source, "stages": ["probe", "develop"]})
