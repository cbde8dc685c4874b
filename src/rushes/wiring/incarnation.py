"""The incarnation of this process, as leases and locks name it."""

import os
import platform
import secrets
from collections.abc import Sequence

from rushes.domain.worker import Incarnation, worker_id
from rushes.home import machine, version
from rushes.ledger.clock import boot_id
from rushes.ledger.process import host_id, process_start


def incarnation(lanes: Sequence[str], slots: int, owner: str) -> Incarnation:
    """A new incarnation of a worker in this process: host + boot + random, never used again."""
    host, boot = platform.node() or "localhost", boot_id()
    return Incarnation(
        id=worker_id(machine(), host, boot, secrets.token_hex(4)),
        host=host_id(),
        boot=boot,
        pid=os.getpid(),
        pid_start=process_start() or "",
        lanes=tuple(lanes),
        slots=slots,
        machine=machine(),
        version=version(),
        owner=owner,
    )
