"""The child's side of a slot: `python -m rushes.wiring SETTINGS SCRATCH FD FD`."""

import socket
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from rushes.telemetry import log_to
from rushes.wiring.slots import SlotSettings
from rushes.worker.sandbox import ON, confine


def main(told: str, folder: str, asks: str, answers: str) -> None:
    """Confine this process, then serve tasks that come over the pipe, until it closes."""
    given = SlotSettings.from_json(told)
    layers = confine(given.confinement, Path(folder))
    scratch = Path("/proc/self/cwd") if layers.get("user") == ON else Path(folder)  # another user cannot enter the home
    log_to(level=given.log_level)

    from rushes.engines.local import LocalEngine  # these start threads, and parse what others have written
    from rushes.engines.models.store import ModelStore
    from rushes.stages.registry import load_stages
    from rushes.worker.broker.client import BrokerClient
    from rushes.worker.slot import SlotDeps, die_with_parent, serve

    die_with_parent()
    store = ModelStore(Path(given.models), paths=[Path(path) for path in given.own_models])
    deps = SlotDeps(load_stages(), LocalEngine(store, threads=given.threads), scratch)
    serve(deps, Connection(int(answers)), BrokerClient(socket.socket(fileno=int(asks))))


if __name__ == "__main__":
    main(*sys.argv[1:5])
