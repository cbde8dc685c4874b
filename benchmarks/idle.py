"""What a fleet costs that has nothing to do: statements a second on PostgreSQL, counted in the log of the server.

    python -m benchmarks.idle [--seconds 60]

Two workers and an API on an empty store, as three processes, after they have settled and the day's clearing up is done.
Bar: 2 statements a second. The delay from submission to start is that of `benchmarks.ledger_postgres --part latency`;
requests on AWS are counted by `benchmarks.aws_requests --idle`.
"""

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rushes.home import Home
from rushes.library.work.retention import ROUND
from rushes.servers import postgres
from rushes.servers.process import free_port
from rushes.wiring import open_home

BAR = 2.0  # statements a second
SETTLE_SECONDS = 40.0  # the first looks, sweeps and renewals are over
_SETTINGS = {"log_statement": "all", "log_line_prefix": "@%p "}
_STATEMENT = re.compile(r"^@(\d+) LOG:  (?:statement|execute [^:]*): (.*)", re.MULTILINE)


def statements(log: Path, since: int) -> Counter[str]:
    """Statements that the server has logged after so many bytes, by their first words."""
    text = log.read_bytes()[since:].decode("utf-8", "replace")
    return Counter(" ".join(said.split()[:9]) for _, said in _STATEMENT.findall(text))


def cleared_up(home: Home) -> None:
    """Today's round of retention is over: it is work, though it comes by itself."""
    home.records.put(ROUND, home.owner, ROUND, {"by": "", "began": time.time(), "over": True})


def main() -> int:
    """Print the statements by kind; 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        server = postgres.start(folder / "postgres", settings=_SETTINGS)
        home = folder / "home"
        home.mkdir()
        (home / "rushes.toml").write_text(f'store = "{server.url}"\nshared = true\n')
        with contextlib.closing(open_home(home)) as opened:
            cleared_up(opened)
        program = [sys.executable, "-m", "rushes", "--home", str(home)]
        commands = [["worker"], ["worker"], ["serve", "--port", str(free_port())]]
        null = subprocess.DEVNULL
        fleet = [subprocess.Popen([*program, *command], stdout=null, stderr=null) for command in commands]
        try:
            time.sleep(SETTLE_SECONDS)
            log = folder / "postgres" / "postgres-18.log"
            since = log.stat().st_size
            time.sleep(seconds)
            counted = statements(log, since)
        finally:
            for process in fleet:
                process.terminate()
            for process in fleet:
                process.wait(30)
            server.stop()
    for words, n in counted.most_common():
        print(f"{n / seconds:6.3f} a second  {words}")
    rate = counted.total() / seconds
    print(f"{'holds' if rate <= BAR else 'FAILS'}  {rate:.2f} statements a second, at most {BAR:g}")
    return int(rate > BAR)


if __name__ == "__main__":
    sys.exit(main())
