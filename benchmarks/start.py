"""How long small commands take to start: `ls` and `search` on an empty home, against `--help` of the same program.

    python -m benchmarks.start [--rounds 15]

Each round runs every command once, so that all have the same weather. Bar: `ls` takes at most 2x as long as `--help`.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMANDS = {"--help": ["--help"], "--version": ["--version"], "ls": ["ls"], "search": ["search", "budget"]}
BAR = 2.0


def seconds(home: Path, command: list[str]) -> float:
    """The time of one run, in a process of its own, with compiled modules as an installed program has them."""
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(home.parent / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
    argv = [sys.executable, "-m", "rushes", "--home", str(home), *command]
    begin = time.perf_counter()
    subprocess.run(argv, check=True, capture_output=True, env=env)
    return time.perf_counter() - begin


def main() -> int:
    """Print the medians and their ratio to --help; 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / ".rushes"
        seconds(home, ["init", folder])
        for command in COMMANDS.values():  # compiled once, outside the measurement
            seconds(home, command)
        times = [[seconds(home, command) for command in COMMANDS.values()] for _ in range(rounds)]
    medians = dict(zip(COMMANDS, map(statistics.median, zip(*times, strict=True)), strict=True))
    for name, median in medians.items():
        print(f"{name:<10} {1000 * median:6.0f} ms  {median / medians['--help']:.2f}x --help")
    holds = medians["ls"] <= BAR * medians["--help"]
    print(f"{'holds' if holds else 'FAILS'}  ls at most {BAR:g}x --help")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
