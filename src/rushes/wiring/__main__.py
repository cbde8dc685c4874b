"""The child's side of a slot: `python -m rushes.wiring SETTINGS SCRATCH FD FD`."""

import socket
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from rushes.model_settings import HTTP, SAGEMAKER
from rushes.telemetry import log_to
from rushes.wiring.slots import SlotSettings
from rushes.worker.sandbox import ON, confine
from rushes.worker.sandbox.processes import adopt_orphans, die_with_parent


def main(told: str, folder: str, asks: str, answers: str) -> None:
    """Confine this process, then serve tasks that come over the pipe, until it closes."""
    given = SlotSettings.from_json(told)
    layers = confine(given.confinement, Path(folder))
    scratch = Path("/proc/self/cwd") if layers.get("user") == ON else Path(folder)  # another user cannot enter the home
    log_to(level=given.log_level, process="slot")

    from rushes.engines.models.store import ModelStore  # these start threads, and parse what others have written
    from rushes.engines.remote import LARGE_BATCH, RemoteEngine
    from rushes.stages.registry import load_stages
    from rushes.wiring.engines import slot_engines
    from rushes.worker.broker.client import BrokerClient, post_by
    from rushes.worker.slot import SlotDeps, serve

    adopt_orphans()
    die_with_parent()
    store = ModelStore(Path(given.models), paths=[Path(path) for path in given.own_models])
    client = BrokerClient(socket.socket(fileno=int(asks)))
    post = post_by(client, scratch)
    far = {HTTP: lambda: RemoteEngine(post), SAGEMAKER: lambda: RemoteEngine(post, LARGE_BATCH)}
    engines = {**slot_engines(store, given.threads), **far}
    every = load_stages(lambda _stage: True)  # which of them run here was decided when the job was planned
    serve(SlotDeps(every, engines, scratch), Connection(int(answers)), client)


if __name__ == "__main__":
    main(*sys.argv[1:5])
