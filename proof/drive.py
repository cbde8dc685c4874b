"""Runs one film in a home: what the kill tests start, kill and start again."""

import argparse
import sys
from pathlib import Path

from rushes.library import Library, Wish
from rushes.telemetry import log_to


def main() -> int:
    """Parse, run, answer the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("film", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--profile", default="fast")
    parser.add_argument("--chunk", default="2")
    parser.add_argument("--slots", type=int, default=2)
    asked = parser.parse_args()
    log_to()
    wish = Wish(only=tuple(filter(None, asked.only.split(","))), chunk=asked.chunk, profile=asked.profile)
    with Library(asked.home) as library:
        ran = library.run([asked.film], wish, slots=asked.slots, signals=True)
        library.search("country")  # the index follows
        return ran.exit_code


if __name__ == "__main__":
    sys.exit(main())
