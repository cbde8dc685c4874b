"""Runs films in a home: what the kill tests start, kill and start again."""

import argparse
import os
import sys
import threading
import time
from pathlib import Path

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
    with Library(asked.home) as library:
        guest = threading.Thread(target=come_in, args=(asked.home, asked.films[1:], wish), daemon=True)
        guest.start()
        code = library.run(asked.films[:1], wish, slots=asked.slots, signals=True).exit_code
        guest.join()
        if asked.films[1:] and not code:
            code = library.run(asked.films, wish, slots=asked.slots, signals=True).exit_code
        library.search("country")  # the index follows
        return code


def come_in(home: Path, films: list[Path], wish: Wish) -> None:
    """Somebody else at the same home: waits until work is under way, then adds a film, pauses it, goes on, searches."""
    witness, over = Path(os.environ["TOY_WITNESS"]), time.monotonic() + 60
    while films and time.monotonic() < over and not (witness.exists() and "begin toy_chunk" in witness.read_text()):
        time.sleep(0.01)
    with Library(home) as library:
        for film in films:
            (added,) = library.add([film], wish)
            library.search("country")
            if added.job and added.created:
                library.pause(added.job.id)
                library.resume(added.job.id)


if __name__ == "__main__":
    sys.exit(main())
