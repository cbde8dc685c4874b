"""Runs films in a home: what the kill tests start, kill and start again."""

import argparse
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from rushes.domain.errors import RushesError
from rushes.library import Library, Wish
from rushes.telemetry import log_to


def main() -> int:
    """Parse, run, answer the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("films", type=Path, nargs="+", help="the first is begun; others come in while it is worked on")
    parser.add_argument("--only", default="")
    parser.add_argument("--profile", default="fast")
    parser.add_argument("--chunk", default="2")
    parser.add_argument("--slots", type=int, default=2)
    asked = parser.parse_args()
    log_to()
    wish = Wish(only=tuple(filter(None, asked.only.split(","))), chunk=asked.chunk, profile=asked.profile)
    guests = asked.films[1:]
    with Library(asked.home) as library:
        guest = threading.Thread(target=come_in, args=(asked.home, asked.films[0], guests, wish), daemon=True)
        guest.start()
        code = library.run(asked.films[:1], wish, slots=asked.slots, signals=True).exit_code
        guest.join()
        if guests and code in (0, 3):  # 3: a guest paused it while nothing was in hand, and it ended
            code = library.run(asked.films, wish, slots=asked.slots, signals=True).exit_code
        library.search("country")  # the index follows
        return code


def come_in(home: Path, film: Path, guests: list[Path], wish: Wish) -> None:
    """Others at the same home, while the film is worked on: each opens it, runs a film of its own and searches."""
    for n, guest in enumerate(guests):
        _wait_for_work()
        with Library(home) as library:
            library.run([guest], wish, slots=1)
            library.search("country")
            if n == 0:
                (added,) = library.add([film], wish)
                with suppress(RushesError):  # it may just be finished
                    library.pause(added.job.id if added.job else "", now=True)
                    library.resume(added.job.id if added.job else "")


def _wait_for_work() -> None:
    witness, over = Path(os.environ["TOY_WITNESS"]), time.monotonic() + 60
    while time.monotonic() < over and not (witness.exists() and "begin toy_chunk" in witness.read_text()):
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())
