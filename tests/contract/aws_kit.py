"""DynamoDB and SQS for tests: one emulator per process, started when first asked for; a folder has its own rows.

RUSHES_TEST_MOTO=1 takes moto instead of ministack, as a second opinion; see MOTO_GAPS.
"""

import atexit
import functools
import os
import secrets
import shutil
import tempfile
from pathlib import Path

from tests.servers_aws import KEY, SECRET, ministack, moto

from rushes.aws.client import Service
from rushes.aws.table import Table
from rushes.ledger.clock import Millis, Seconds
from rushes.ledger.dynamodb_store import Sightings
from rushes.servers.process import Running

MOTO = bool(os.environ.get("RUSHES_TEST_MOTO"))


@functools.cache
def server() -> Running:
    """An emulator that lives as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="aws-"))
    running = moto(folder) if MOTO else ministack(folder)
    atexit.register(shutil.rmtree, folder)
    atexit.register(running.stop)
    return running


def service(name: str, endpoint: str = "", patience: float = 10.0) -> Service:
    """A client of its own."""
    made = Service(name, endpoint or server().url, "us-east-1", KEY, SECRET, patience)
    atexit.register(made.close)
    return made


@functools.cache
def shared(name: str) -> Service:
    """The client that tests share: making one takes 50 ms."""
    return service(name)


@functools.cache
def _made() -> None:
    Table(shared("dynamodb")).create()


@functools.cache
def prefix(folder: Path) -> str:
    """What the partitions of a folder's rows begin with."""
    return f"{secrets.token_hex(4)}/"  # unlike those of other processes, should they share an emulator


def table(folder: Path, wall: Millis | None = None, using: Service | None = None) -> Table:
    """The part of the table that is this folder's."""
    _made()
    return Table(using or shared("dynamodb"), prefix=prefix(folder), wall=wall)


@functools.cache
def sightings(folder: Path, clock: Seconds) -> Sightings:
    """What the handles of one test have seen: they are one process."""
    return Sightings(clock)
