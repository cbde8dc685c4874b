"""Starting: a command loads no library that it does not need, and `--version` prints the version."""

import subprocess
import sys
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

import pytest

from rushes.domain.errors import Refused
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.exports import sidecar
from rushes.library import Library

HEAVY = ("numpy", "av", "onnxruntime", "psycopg", "boto3", "fastapi", "faster_whisper", "ctranslate2", "simplejpeg")
OPENING = ("rushes.library", "rushes.home", "sqlite3")  # needs a home
WORKING = ("rushes.worker.shell", "rushes.library.work.run", "rushes.wiring.workers", "rushes.engines.local",
           "multiprocessing", "psutil", "ssl", "socket", "http.client", "importlib.metadata",
           "rushes.estimates.cost", "rushes.annotations.sidecars", "statistics")  # fmt: skip
SEARCHING = ("rushes.index.search", "rushes.index.grammar", "rushes.exports.hits")
CLEARING = ("rushes.library.work.retention", "rushes.jobs.maintenance.restore")
COMMANDS = {
    "--help": (*HEAVY, *OPENING),
    "--version": (*HEAVY, *OPENING),
    "run --help": HEAVY,
    "ls": (*HEAVY, *WORKING, *SEARCHING, *CLEARING),
    "show vid_a": (*HEAVY, *WORKING, *SEARCHING),
    "search hello": (*HEAVY, *WORKING),
    "jobs ls": (*HEAVY, *WORKING, *SEARCHING),
    "failed ls": (*HEAVY, *WORKING, *SEARCHING),
    "config show": HEAVY,
}
PROGRAM = """
import atexit, sys
loaded, unneeded = sys.modules, sys.argv[1].split(",")
atexit.register(lambda: print("loaded:", *(m for m in unneeded if m in loaded), file=sys.stderr))
from rushes.surfaces.cli.main import main
main(sys.argv[2:])
"""
WITHOUT_GRPC = """
import sys
sys.modules["grpc"] = None  # as if it were not installed
from rushes.surfaces.cli.main import main
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that knows one video, from a sidecar."""
    folder = tmp_path_factory.mktemp("start")
    line = Observation("speech", Span(0, 1000, Fraction(1, 1000)), "hello world", 1.0)
    head = {"video": "vid_a", "name": "a.mp4", "duration_us": 1_000_000}
    (folder / "a.rushes.jsonl").write_bytes(sidecar.write(head, [line], {}))
    with Library(folder / ".rushes") as library:
        library.maintenance.read_sidecars([folder])
        library.summary()  # up to date: grouping faces needs numpy
    return folder / ".rushes"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_nothing_that_it_does_not_need(home: Path, command: str) -> None:
    argv = [sys.executable, "-c", PROGRAM, ",".join(COMMANDS[command]), "--home", str(home), *command.split()]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1].rstrip()) == (0, "loaded:"), done.stderr[-2000:]


def test_the_version_is_printed() -> None:
    done = subprocess.run([sys.executable, "-m", "rushes", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"rushes {version('rushes')}\n"


def test_grpc_without_its_package_is_refused_with_what_to_install(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", WITHOUT_GRPC, "--home", str(tmp_path), "serve", "--port", "0", "--grpc", "0"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == Refused.exit_code, done.stderr
    assert "grpc is not installed" in done.stderr
    assert "pip install 'rushes[grpc]'" in done.stderr
