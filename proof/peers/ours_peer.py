"""The chunk job on rushes: a film in twenty chunks through toy stages that do the same work, default settings."""

import os
import sys
from pathlib import Path

from rushes.library import JobRequest, Library

FOLDER = Path(os.environ["FAULTS_FOLDER"])


def main() -> None:
    with Library(FOLDER / "home") as library:
        if sys.argv[1] == "submit":
            library.add([FOLDER / "film.mp4"], JobRequest(only=("fault_join",), chunk="5"))
        else:
            sys.exit(library.work(slots=1))


if __name__ == "__main__":
    main()
