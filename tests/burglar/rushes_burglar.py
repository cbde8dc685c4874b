"""A stage that tries to get out of its slot, as a decoder does that a film has taken over, and says how far it came."""

import ctypes
import os
import resource
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rushes.domain.stage import Scope, StageSpec
from rushes.stages.port import Work

libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_DETACH, MEMFD_CREATE = 16, 17, 319


def called(answer: int) -> int:
    """Raise what the kernel says."""
    if answer == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def connect(family: int, address: Any) -> None:
    with socket.socket(family) as line:
        line.connect(address)


def run(*argv: str) -> None:
    subprocess.run(argv, check=True)


def run_copy(work: Work) -> None:
    copy = work.scratch / "sh"
    shutil.copyfile("/bin/sh", copy)
    copy.chmod(0o700)
    run(str(copy), "-c", "true")


def run_from_memory() -> None:
    file = called(libc.syscall(MEMFD_CREATE, b"x", 0))
    run(f"/proc/self/fd/{file}")


def reopen_original(work: Work) -> None:
    footage = work.footage()
    assert not isinstance(footage, Path)
    with footage.open() as file:
        os.close(os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDWR))


def write(file: Path) -> None:
    file.write_text("mine")
    file.unlink()


def trace(process: int) -> None:
    called(libc.ptrace(PTRACE_ATTACH, process, 0, 0))
    os.waitpid(process, 0)
    called(libc.ptrace(PTRACE_DETACH, process, 0, 0))


def mount(folder: Path) -> None:
    called(libc.mount(b"none", bytes(folder), b"tmpfs", 0, None))
    called(libc.umount(bytes(folder)))


def steps(work: Work, told: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """Each thing that must fail, by name."""
    worker = int(os.environ["RUSHES_WORKER_PID"])
    reads = {f"read {path}": lambda path=path: Path(path).read_bytes() for path in told["secrets"]}
    writes = {f"write {path}": lambda path=path: write(Path(path, "mine")) for path in told["folders"]}
    return {
        **reads,
        **writes,
        "read the worker's environment": lambda: Path(f"/proc/{worker}/environ").read_bytes(),
        "list the home": lambda: list(Path(told["home"]).iterdir()),
        "delete the film": lambda: Path(told["film"]).unlink(),
        "write the film": lambda: reopen_original(work),
        "connect over TCP": lambda: connect(socket.AF_INET, ("127.0.0.1", told["port"])),
        "open a socket of this machine": lambda: connect(socket.AF_UNIX, told["unix"]),
        "run a shell": lambda: run("/bin/sh", "-c", "true"),
        "run a copy of a shell": lambda: run_copy(work),
        "run a program from memory": run_from_memory,
        "trace the worker": lambda: trace(worker),
        "signal the worker": lambda: os.kill(worker, signal.SIGURG),
        "mount": lambda: mount(work.scratch),
        "leave for another namespace": lambda: called(libc.unshare(0x10000000)),
        "read a blob of another task": lambda: work.blobs.open(work.owner, told["blob"]),
        "store for another owner": lambda: work.blobs.put("you", b"mine"),
    }


def outcome(step: Callable[[], object]) -> str:
    try:
        step()
    except Exception as e:  # noqa: BLE001 - whatever stopped it
        return f"{type(e).__name__}: {e}"
    return "done"


def state() -> dict[str, Any]:
    """What the kernel says of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    names = ("AS", "CPU", "FSIZE", "CORE", "NPROC")
    return {
        "environment": dict(os.environ),
        "status": {name: status[name].strip() for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Uid")},
        "interfaces": [line.split(":")[0].strip() for line in Path("/proc/self/net/dev").read_text().splitlines()[2:]],
        "limits": {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1] for name in names},
    }


class Burglar:
    """Tries everything, and saves what came of it."""

    spec = StageSpec("burglar", 1, Scope.VIDEO, ("loot",), ("probe",), options={"told": {}}, reads_source=True)

    def run(self, work: Work) -> None:
        told = dict(work.options["told"])
        tried = {name: outcome(step) for name, step in steps(work, told).items()}
        Path(told["film"]).chmod(0o777)
        work.save_json("loot", "loot.json", {"tried": tried, "state": state()})


burglar = Burglar()
