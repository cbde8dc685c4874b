"""The child's side of a slot: `python -m rushes.wiring HOME FD`."""

import sys
from multiprocessing.connection import Connection
from pathlib import Path

from rushes.engines.local import LocalEngine
from rushes.home import version
from rushes.stages.registry import load_stages
from rushes.telemetry import log_to
from rushes.wiring import open_home
from rushes.worker.slot import SlotDeps, die_with_parent, serve


def main(folder: str, fd: str) -> None:
    """Serve tasks that come over the pipe, until it closes."""
    die_with_parent()
    home = open_home(Path(folder), create=False)
    log_to(level=home.settings.log_level)
    deps = SlotDeps(
        stages=load_stages(),
        blobs=home.blobs,
        engine=LocalEngine(home.models, threads=home.settings.threads or 1),
        scratch=home.scratch,
        original=home.original,
        version=version(),
    )
    serve(deps, Connection(int(fd)))


if __name__ == "__main__":
    main(*sys.argv[1:3])
