"""The same chunk job on rushes and on its peers, each killed, paused and cut off from its store, side by side.

python -m proof.peer_faults --tries 5 --seed 1
"""

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import redis
from tests.acceptance.conftest import draw

from proof.faulty_connection import Cutter
from proof.peers.body import CHUNKS
from proof.setups import Servers, fresh_database, servers

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "proof" / "peers"
CAP = 150.0  # seconds until a join that is not there counts as lost
LATE = 5.0  # seconds after the join in which late writes are still looked for


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine: its script, what its environment holds, and which store it works on."""

    name: str
    store: str  # postgres or valkey
    packages: tuple[str, ...] = ()  # none: this very environment


ENGINES = (
    Engine("rushes", "postgres"),
    Engine("celery", "valkey", ("celery[redis]==5.7.0",)),
    Engine("dbos", "postgres", ("dbos==3.3.0", "psycopg[binary]==3.3.8")),
    Engine("procrastinate", "postgres", ("procrastinate==3.10.0", "psycopg[binary]==3.3.8")),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One try: what the witness file and the artifacts say."""

    lost: int  # chunks without an end
    doubled: int  # chunks begun again beyond the one that was in flight
    joins: int
    early: int  # joins that did not see every chunk
    late: int  # artifacts written after the join
    redo: float | None  # seconds from the fault until the chunk in flight was begun again


@dataclass(slots=True)
class Site:
    """One engine in one folder with one fresh store; its workers and the wire between them."""

    engine: Engine
    folder: Path
    python: Path
    store: str
    wire: Cutter
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def submit(self) -> None:
        """Put the job in."""
        subprocess.run([*self._command(), "submit"], env=self._env(self.store), check=True, capture_output=True)

    def work(self, name: str) -> None:
        """Start a worker behind the wire."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(
                [*self._command(), "work", name], env=self._env(self.wire.url), stdout=log, stderr=log
            )

    def signal(self, name: str, number: signal.Signals) -> None:
        """To a worker and all its children."""
        for process in self._tree(name):
            process.send_signal(number)

    def alive(self) -> None:
        """A worker that has exited is started again, as a supervisor would."""
        for name, process in list(self.workers.items()):
            if process.poll() is not None:
                self.work(name)

    def close(self) -> None:
        """End everything."""
        for name in self.workers:
            self.signal(name, signal.SIGKILL)
        for process in self.workers.values():
            process.wait()
        self.wire.close()

    def lines(self) -> list[list[str]]:
        """What the witness saw: [what, chunk, process, time]."""
        file = self.folder / "witness"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def artifacts(self) -> list[float]:
        """When each artifact was written last."""
        ours = (self.folder / "home" / "files" / "results").rglob("*.json")
        return [f.stat().st_mtime for f in (*ours, *self.folder.glob("part-?"), *self.folder.glob("part-??"))]

    def holder(self, chunk: str) -> str:
        """The worker whose process began a chunk last."""
        pid = next(int(who) for what, n, who, _ in reversed(self.lines()) if (what, n) == ("begin", chunk))
        return next(name for name in self.workers if pid in {p.pid for p in self._tree(name)})

    def _tree(self, name: str) -> list[psutil.Process]:
        try:
            parent = psutil.Process(self.workers[name].pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _command(self) -> list[str]:
        script = "ours_peer" if not self.engine.packages else f"{self.engine.name}_peer"
        return [str(self.python), str(PEERS / f"{script}.py")]

    def _env(self, store: str) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("RUSHES_")}
        path = os.pathsep.join(map(str, (ROOT, ROOT / "src", ROOT / "proof" / "toys")))
        more = {"FAULTS_STORE": store, "FAULTS_FOLDER": str(self.folder)}
        if not self.engine.packages:
            outside = {"PYTHONPATH": path, "RUSHES_SANDBOX": "off"}  # its stages write a witness
            more |= {"RUSHES_STORE": store, "RUSHES_SHARED": "true", **outside}
        return clean | more


def in_flight(site: Site) -> str:
    """The chunk that was begun last and has not ended; one comes soon where none is."""
    running: list[str] = []

    def begun() -> bool:
        running[:] = _running(site)
        return bool(running)

    wait(site, begun)
    return running[-1]


def killed(site: Site, chance: random.Random) -> tuple[float, str]:
    """The only worker dies in the middle of a chunk and is back after two seconds."""
    _work_until_busy(site, chance, "a")
    fault, chunk = time.time(), in_flight(site)
    site.signal("a", signal.SIGKILL)
    site.workers["a"].wait()
    time.sleep(2)
    site.work("a")
    return fault, chunk


def paused(site: Site, chance: random.Random) -> tuple[float, str]:
    """One of two workers is stopped in the middle of a chunk, and goes on when another has ended that chunk."""
    _work_until_busy(site, chance, "a", "b")
    fault, chunk = time.time(), in_flight(site)
    sleeper = site.holder(chunk)
    site.signal(sleeper, signal.SIGSTOP)
    wait(site, lambda: _ends(site, chunk) > 0 or _over(site))
    site.signal(sleeper, signal.SIGCONT)
    return fault, chunk


def cut_off(site: Site, chance: random.Random) -> tuple[float, str]:
    """For three seconds the store hears every word and no reply comes back; then the connections break."""
    _work_until_busy(site, chance, "a", "b")
    fault, chunk = time.time(), in_flight(site)
    site.wire.deafen()
    time.sleep(3)
    site.wire.mend()
    return fault, chunk


FAULTS: Mapping[str, Callable[[Site, random.Random], tuple[float, str]]] = {
    "kill -9": killed,
    "SIGSTOP": paused,
    "cut replies": cut_off,
}


def attempt(site: Site, fault: str, chance: random.Random) -> Outcome:
    """One job, one fault, and what came of it."""
    site.submit()
    at, chunk = FAULTS[fault](site, chance)
    wait(site, lambda: _over(site))
    time.sleep(LATE)
    return read(site, at, chunk)


def read(site: Site, fault: float, chunk: str) -> Outcome:
    """The verdict, from the witness file and the artifacts only."""
    lines = site.lines()
    begun = Counter(n for what, n, *_ in lines if what == "begin")
    ended = {n for what, n, *_ in lines if what == "end"}
    joins = [(int(n), float(at)) for what, n, _, at in lines if what == "join"]
    again = [float(at) for what, n, _, at in lines if (what, n) == ("begin", chunk) and float(at) > fault]
    return Outcome(
        lost=CHUNKS - len(ended),
        doubled=sum(n - 1 for name, n in begun.items() if name != chunk),
        joins=len(joins),
        early=sum(seen < CHUNKS for seen, _ in joins),
        late=sum(at > joins[0][1] + 0.05 for at in site.artifacts()) if joins else 0,
        redo=again[0] - fault if again else None,
    )


def wait(site: Site, until: Callable[[], bool]) -> None:
    """Until it holds, or the cap; workers that exit are started again."""
    over = time.monotonic() + CAP
    while not until() and time.monotonic() < over:
        time.sleep(0.2)
        site.alive()


def _work_until_busy(site: Site, chance: random.Random, *names: str) -> None:
    for name in names:
        site.work(name)
    enough = chance.randrange(3, 15)
    wait(site, lambda: sum(what == "end" for what, *_ in site.lines()) >= enough)
    before = len(site.lines())
    wait(site, lambda: any(what == "begin" for what, *_ in site.lines()[before:]))
    time.sleep(chance.uniform(0.05, 0.4))


def _running(site: Site) -> list[str]:
    lines = site.lines()
    ended = {n for what, n, *_ in lines if what == "end"}
    return [n for what, n, *_ in lines if what == "begin" and n not in ended]


def _ends(site: Site, chunk: str) -> int:
    return sum((what, n) == ("end", chunk) for what, n, *_ in site.lines())


def _over(site: Site) -> bool:
    return any(what == "join" for what, *_ in site.lines())


def fresh(all_servers: Servers, kind: str, name: str) -> str:
    """A store that nobody has used."""
    if kind == "postgres":
        return fresh_database(all_servers.postgres.url, name)
    with redis.Redis.from_url(all_servers.valkey.url) as client:
        client.flushall()
    return all_servers.valkey.url


def environment(engine: Engine, folder: Path) -> Path:
    """The Python of an engine: this one, or one with its packages alone."""
    if not engine.packages:
        return Path(sys.executable)
    python = folder / "envs" / engine.name / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *engine.packages], check=True)
    return python


def main(argv: Sequence[str] | None = None) -> int:
    """Run every engine under every fault, print the table; 1 if rushes lost or doubled anything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engines", default=",".join(e.name for e in ENGINES))
    parser.add_argument("--faults", default=",".join(FAULTS))
    asked = parser.parse_args(argv)
    chosen = [e for e in ENGINES if e.name in asked.engines.split(",")]
    table: dict[tuple[str, str], list[Outcome]] = {}
    with tempfile.TemporaryDirectory() as place, servers(Path(place)) as all_servers:
        film = draw(Path(place) / "film.mp4", CHUNKS * 5)
        pythons = {e.name: environment(e, Path(place)) for e in chosen}
        for fault in asked.faults.split(","):
            for n in range(asked.tries):
                for engine in chosen:
                    name = f"{engine.name}_{list(FAULTS).index(fault)}_{n}"
                    (folder := Path(place) / name).mkdir()
                    (folder / "film.mp4").symlink_to(film)
                    store = fresh(all_servers, engine.store, f"faults_{name}")
                    site = Site(engine, folder, pythons[engine.name], store, Cutter(store))
                    try:
                        found = attempt(site, fault, random.Random(f"{asked.seed} {fault} {n}"))
                    finally:
                        site.close()
                    table.setdefault((fault, engine.name), []).append(found)
                    print(f"{fault:<12} {engine.name:<14} {found}", file=sys.stderr, flush=True)
    return report(table, asked.tries, asked.seed)


def report(table: Mapping[tuple[str, str], Sequence[Outcome]], tries: int, seed: int) -> int:
    """Side by side: tries in which something went wrong, and seconds to recover."""
    print(f"{tries} tries each, seed {seed}; a number is the tries in which it happened")
    print(f"{'fault':<12} {'engine':<14} lost  doubled  join lost  join twice  join early  late writes  redo s (worst)")
    for (fault, name), all_of in table.items():
        redo = [o.redo for o in all_of if o.redo is not None]
        seconds = f"{statistics.median(redo):.1f} ({max(redo):.1f})" if redo else "-"
        counts = [
            sum(o.lost > 0 for o in all_of),
            sum(o.doubled > 0 for o in all_of),
            sum(o.joins == 0 for o in all_of),
            sum(o.joins > 1 for o in all_of),
            sum(o.early > 0 for o in all_of),
            sum(o.late > 0 for o in all_of),
        ]
        a, b, c, d, e, f = counts
        print(f"{fault:<12} {name:<14} {a:>4}  {b:>7}  {c:>9}  {d:>10}  {e:>10}  {f:>11}  {seconds}")
    ours = [o for (_, name), all_of in table.items() if name == "rushes" for o in all_of]
    return int(any(o.lost or o.joins != 1 or o.early or o.late for o in ours))


if __name__ == "__main__":
    sys.exit(main())
