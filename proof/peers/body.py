"""The work that every engine is given: a chunk that takes half a second and leaves a file, and a join. Stdlib only."""

import os
import time
from pathlib import Path

CHUNKS = 20
SECONDS = 0.5


def witness(folder: Path, line: str) -> None:
    """One line appended in one write, with the process and the time."""
    fd = os.open(folder / "witness", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{line} {os.getpid()} {time.time():.3f}\n".encode())
    os.close(fd)


def chunk(folder: Path, n: int) -> None:
    """Half a second of appends, fsync, an atomic rename: as a careful user writes it."""
    witness(folder, f"begin {n}")
    part = folder / f"part-{n}.{os.getpid()}"
    with part.open("w") as f:
        for step in range(10):
            f.write(f"{n} {step}\n")
            time.sleep(SECONDS / 10)
        f.flush()
        os.fsync(f.fileno())
    part.rename(folder / f"part-{n}")
    witness(folder, f"end {n}")


def join(folder: Path) -> None:
    """Counts the parts that are there."""
    witness(folder, f"join {sum((folder / f'part-{n}').exists() for n in range(CHUNKS))}")
