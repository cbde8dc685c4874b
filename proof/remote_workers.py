"""Kill -9 of workers that have only a token, and of the servers that they work for; then compare with a quiet run.

python -m proof.remote_workers --kills 500 --seed 1
python -m proof.remote_workers --setup postgres+valkey+s3 --kills 500
"""

import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.acceptance.conftest import draw, wait_for

from proof.audit import audit, by_content
from proof.kills import TOYS, Film, differences, environment, undisturbed
from proof.setups import servers
from rushes.domain.job import FINAL
from rushes.library import JobRequest, Library
from rushes.library.access.worker_tokens import WorkerTokens

SETUPS = ("sqlite", "postgres", "postgres+valkey+s3", "aws")
SECONDS = 180  # of the film: 36 chunks
PROGRAM = (sys.executable, "-m", "rushes", "--json")


@dataclass(slots=True)
class Process:
    """A command that is started, killed and started again."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    said: Path
    running: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        with self.said.open("ab") as out:
            self.running = subprocess.Popen(self.argv, env=self.env, stdout=out, stderr=out, start_new_session=True)

    def kill(self) -> None:
        if self.running:
            os.killpg(self.running.pid, signal.SIGKILL)
            self.running.wait()
        self.running = None


@dataclass(slots=True)
class RemoteFleet:
    """Two servers of one home, and workers that know their addresses and a token, nothing else."""

    folder: Path
    witness: Path
    servers: list[Process] = field(default_factory=list)
    workers: list[Process] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def all(self) -> list[Process]:
        return [*self.servers, *self.workers]

    def begun(self) -> int:
        """How many chunks were begun so far."""
        return self.witness.read_text().count("begin toy_chunk") if self.witness.exists() else 0


@contextmanager
def remote_fleet(folder: Path, settings: str, workers: int, recipe: Mapping[str, str]) -> Iterator[RemoteFleet]:
    """A fleet that runs; `recipe` is the environment of its workers."""
    fleet = RemoteFleet(folder, folder / "witness")
    fleet.home.mkdir(parents=True)
    (fleet.home / "rushes.toml").write_text(settings)
    with Library(fleet.home) as library:
        token = WorkerTokens(library.home).create("proof")
    ports = [_free_port() for _ in range(2)]
    env = environment(folder, **recipe)
    for n, port in enumerate(ports):
        argv = [*PROGRAM, "--home", str(fleet.home), "serve", "--port", "0", "--grpc", str(port)]
        fleet.servers.append(Process(f"server {n}", argv, env, folder / f"server{n}"))
    address = f"grpc://{','.join(f'127.0.0.1:{port}' for port in ports)}"
    for n in range(workers):
        mine = env | {"RUSHES_WORKER_TOKEN": token, "RUSHES_HOME": str(folder / f"worker-home{n}")}
        argv = [*PROGRAM, "worker", "--server", address, "--slots", "1"]
        fleet.workers.append(Process(f"worker {n}", argv, mine, folder / f"worker{n}"))
    try:
        for process in fleet.all:
            process.start()
        yield fleet
    finally:
        for process in fleet.all:
            process.kill()


def work(fleet: RemoteFleet, film: Film, kills: Sequence[str], chance: random.Random, take: int = 0) -> Counter[str]:
    """Add a film, make the kills while its chunks are being worked on, wait for its end; which kills were made."""
    made: Counter[str] = Counter()
    wanted = JobRequest(only=tuple(film.only.split(",")), chunk=film.chunk, again=take, profile="fast")
    with Library(fleet.home) as library:
        (added,) = library.add([film.path], wanted)
        assert added.job, added
        id = added.job.id

        def is_over() -> bool:
            return library.jobs.get(id).state in FINAL

        for kind in kills:
            before = fleet.begun()
            wait_for(lambda before=before: fleet.begun() > before or is_over(), "no chunk was begun")  # type: ignore[misc]
            if is_over():
                break
            victim = chance.choice(fleet.servers if kind == "server" else fleet.workers)
            victim.kill()
            made[kind] += 1
            victim.start()
        wait_for(is_over, f"{id} was never over")
    return made


def check(fleet: RemoteFleet, expected: Mapping[str, str], kills: int, slots: int, films: int = 1) -> list[str]:
    """What is wrong with a home after its work is done; each film is the same, as another take."""
    found = audit(fleet.home, fleet.witness)
    bad = [*found.bad, *differences(by_content(expected), by_content(found.outputs))]
    tasks = {tuple(line.split()[1:4]) for line in fleet.witness.read_text().splitlines() if line.startswith("begin")}
    redone = found.redone - (films - 1) * len(tasks)
    if redone > slots * kills:
        bad.append(f"{redone} attempts redone after {kills} kills with {slots} slots")
    return bad


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print what was done, answer 1 if anything was bad."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setup", choices=SETUPS, default="sqlite")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(argv)
    folder, begun, chance = Path(tempfile.mkdtemp(prefix="remote-")), time.monotonic(), random.Random(asked.seed)
    film = Film(draw(folder / "film.mp4", SECONDS), "toy_join")
    sys.path.insert(0, str(TOYS))
    with servers(folder / "servers") as found:
        (folder / "reference").mkdir()
        reference, _ = undisturbed(
            folder / "reference", replace(film, settings=found.settings(asked.setup, "reference"))
        )
        bad, made, films = _killed(folder / "run", film, found.settings(asked.setup, "run"), reference.outputs,
                                   asked.kills, asked.workers, chance)  # fmt: skip
    each = ", ".join(f"{count} of {kind}s" for kind, count in sorted(made.items()))
    print(f"{asked.setup}: {made.total()} kills ({each}) in {films} films")
    print(f"{asked.workers} workers with a token and 2 servers, each started again")
    print(f"{time.monotonic() - begun:.0f} s, seed {asked.seed}, {len(bad)} faults")
    for fault in bad[:10]:
        print(f"bad: {fault[:300]}")
    if not bad:
        shutil.rmtree(folder)
    return int(bool(bad))


def _killed(
    folder: Path,
    film: Film,
    settings: str,
    expected: Mapping[str, str],
    count: int,
    workers: int,
    chance: random.Random,
) -> tuple[list[str], Counter[str], int]:
    made, take = Counter[str](), 0
    with remote_fleet(folder, settings, workers, {"TOY_SECONDS": "0.3"}) as fleet:
        while made.total() < count:
            kinds = chance.choices(("worker", "server"), (2, 1), k=min(9, count - made.total()))
            made += work(fleet, film, kinds, chance, take)
            take += 1
            print(f"\r{made.total()}/{count} kills ", end="", file=sys.stderr, flush=True)
    return check(fleet, expected, made.total(), workers, take), made, take


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
