"""Runs films in a home: what the kill tests start, kill and start again."""

import argparse
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rushes.domain.errors import RushesError
from rushes.domain.job import JobState
from rushes.library import JobRequest, Library
from rushes.telemetry import log_to

GUESTS = 2  # that come in during one run; whom it does not come to is worked on when the film is over


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, answer the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("films", nargs="+", help="the first is begun; others come in while it is worked on")
    parser.add_argument("--only", default="")
    parser.add_argument("--profile", default="fast")
    parser.add_argument("--chunk", default="2")
    parser.add_argument("--slots", type=int, default=2)
    asked = parser.parse_args(argv)
    log_to()
    wanted = JobRequest(only=tuple(filter(None, asked.only.split(","))), chunk=asked.chunk, profile=asked.profile)
    guests = asked.films[1:]
    with Library(asked.home) as library:
        over = threading.Event()
        guest = threading.Thread(target=come_in, args=(asked.home, asked.films[0], guests, wanted, over), daemon=True)
        guest.start()
        code = library.run(asked.films[:1], wanted, slots=asked.slots, signals=True).exit_code
        over.set()
        guest.join()
        if guests and code in (0, 3):  # 3: a guest paused it while nothing was in hand, and it ended
            code = library.run(asked.films, wanted, slots=asked.slots, signals=True).exit_code
        library.search("country")  # the index follows
        return code


def come_in(home: Path, film: str, guests: Sequence[str], wanted: JobRequest, over: threading.Event) -> None:
    """Others at the same home, while the film is worked on: each opens it, runs a film of its own and searches."""
    came, witness = 0, Path(os.environ["TOY_WITNESS"])
    before = _begun(witness)
    for guest in guests:
        while _begun(witness) == before and not over.wait(0.01):
            pass
        if came < GUESTS and not over.is_set():
            came += _came(home, film, guest, wanted, first=came == 0)


def _came(home: Path, film: str, guest: str, wanted: JobRequest, *, first: bool) -> bool:
    """Whether there was something to do for a guest; the first one pauses the film for a moment."""
    with Library(home) as library:
        (added,) = library.add([guest], wanted)
        if added.job and added.job.state is JobState.COMPLETED:
            return False
        library.run([guest], wanted, slots=1)
        library.search("country")
        if first:
            (added,) = library.add([film], wanted)
            job = added.job.id if added.job else ""
            with suppress(RushesError):  # it may just be finished, or it is asked of the machine that holds it
                library.jobs.pause(job, now=True)
            with suppress(RushesError):
                library.jobs.resume(job)
        return True


def _begun(witness: Path) -> int:
    return witness.read_text().count("begin toy_chunk") if witness.exists() else 0


if __name__ == "__main__":
    sys.exit(main())
