"""A question about a film in a confined process: `python -m rushes.wiring.film SETTINGS SCRATCH FD`.

It ends with its answer: what a film does to its decoder ends with it.
"""

import socket
import sys
from pathlib import Path

from rushes.domain.errors import RushesError
from rushes.telemetry import log_to
from rushes.wiring.slots import SlotSettings
from rushes.worker.sandbox import ON, confine


def main(told: str, folder: str, line: str) -> None:
    """Confine this process, ask what is wanted, and answer."""
    given = SlotSettings.from_json(told)
    layers = confine(given.confinement, Path(folder))
    scratch = Path("/proc/self/cwd") if layers.get("user") == ON else Path(folder)
    log_to(level=given.log_level, process="slot")

    from rushes.domain.video import Fingerprint  # these parse what others have written
    from rushes.engines.remote import RemoteEngine
    from rushes.stages.film_inference import infer
    from rushes.worker.broker.client import BorrowedOriginal, BrokerClient, post_by
    from rushes.worker.broker.failures import failure_of
    from rushes.worker.sandbox.processes import die_with_parent

    die_with_parent()
    client = BrokerClient(socket.socket(fileno=int(line)))
    question, _ = client.ask("question")
    film = BorrowedOriginal(question["name"], Fingerprint(question["name"], question["size"], 0), 0, client)
    try:
        found = infer(question["what"], film, question["asked"], RemoteEngine(post_by(client, scratch)), scratch)
    except (RushesError, MemoryError, OSError, ValueError) as e:
        client.ask("failed", failure=failure_of(e))
    else:
        client.ask("found", found=found)


if __name__ == "__main__":
    main(*sys.argv[1:4])
