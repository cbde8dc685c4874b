"""PostgreSQL with hints by Valkey, against PostgreSQL alone and against queues that live in the same Valkey.

Ours: jobs of 40 tasks and a join by the product's own verbs: hints taken, claim 2,000, complete 2,000 with a result
each (fence, count-down, event, counters, durable). Peers keep nothing on disk and have no ledger. Rounds are
interleaved; medians of tasks per wall second and per CPU second of the processes that drain (servers are not counted).
With and without hints differ by less than one run from the next: there, each process takes a batch of one home and a
batch of the other in turns.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import redis
from proof.peer_faults import Engine, environment
from proof.setups import servers

from benchmarks.filled_homes import FilledHomes
from benchmarks.ledger import Spent, judge, rate, table
from benchmarks.noops import drain, drain_in_turns, together

SCRIPT = Path(__file__).parent / "peers" / "on_valkey.py"
OURS, ALONE = "PostgreSQL + Valkey", "PostgreSQL alone"
SETUPS = {OURS: "postgres+valkey", ALONE: "postgres"}
PEERS = (
    Engine("dramatiq", "valkey", ("dramatiq[redis]==2.2.1",)),
    Engine("taskiq", "valkey", ("taskiq==0.13.0", "taskiq-redis==1.2.4")),
    Engine("arq", "valkey", ("arq==0.28.0",)),
)
BARS = {"alone": 0.95, "peers": 8.0}

Measure = Callable[[int, int], Spent]  # tasks, processes


def ours(homes: FilledHomes, setup: str, tasks: int, processes: int) -> Spent:
    """Work off the jobs of a fresh corner of a set-up."""
    with homes.home(setup, tasks) as home:
        ran = together(drain, home, processes)
    done = sum(r.count for r in ran)
    if done != tasks:
        raise SystemExit(f"{setup}: {done} of {tasks} tasks were done")
    return Spent(done, max(r.end for r in ran) - min(r.begin for r in ran), sum(r.cpu for r in ran))


def of_alone(homes: FilledHomes, tasks: int, processes: int) -> float:
    """How fast it is with hints beside how fast it is without them, batch by batch."""
    with homes.home(SETUPS[OURS], tasks) as home, homes.home(SETUPS[ALONE], tasks) as other:
        ran = together(functools.partial(drain_in_turns, other), home, processes)
    return sum(r.seconds[1] for r in ran) / sum(r.seconds[0] for r in ran)


def peer(engine: Engine, python: Path, url: str, tasks: int, processes: int) -> Spent:
    """The same with a peer, from its first task to its last."""
    command = [str(python), str(SCRIPT), engine.name]
    with redis.Redis.from_url(url) as server:
        server.flushall()
    env = {**os.environ, "PEER_URL": url}  # with its password, which everybody would see on a command line
    subprocess.run([*command, "fill", str(tasks)], check=True, env=env)
    drainers = [
        subprocess.Popen([*command, "drain"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        for _ in range(processes)
    ]
    for one in drainers:
        if one.stdout is None or one.stdout.readline() != "ready\n":
            raise SystemExit(f"{engine.name} does not start")
    for one in drainers:
        if one.stdin:
            one.stdin.write("\n")
            one.stdin.flush()
    ran = [json.loads(one.communicate(timeout=120)[0]) for one in drainers]
    busy = [r for r in ran if r[0]]
    if sum(r[0] for r in busy) != tasks:
        print(f"{engine.name}: {sum(r[0] for r in busy)} of {tasks} tasks were done", file=sys.stderr)
    return Spent(sum(r[0] for r in busy), max(r[2] for r in busy) - min(r[1] for r in busy), sum(r[3] for r in busy))


def rounds(measures: dict[str, tuple[Measure, int]], count: int, processes: int) -> dict[str, list[Spent]]:
    """Interleaved rounds, each turning the order round, so that nobody always comes after the same one."""
    spent: dict[str, list[Spent]] = {name: [] for name in measures}
    for n in range(count):
        for name in list(measures)[:: 1 if n % 2 == 0 else -1]:
            measure, tasks = measures[name]
            spent[name].append(measure(tasks, processes))
            print(".", end="", file=sys.stderr, flush=True)
    return spent


def verdicts(spent: dict[str, list[Spent]], alone: Sequence[float], processes: int) -> bool:
    """The table, and whether every bar holds."""
    table(f"{processes} process(es)", spent, OURS, ("ours/wall", "ours/CPU"))
    ok = judge("of PostgreSQL alone, wall, batch by batch", statistics.median(alone), BARS["alone"])
    for clock in ("wall", "cpu"):
        best = max(rate(spent[p.name], clock) for p in PEERS)
        ok &= judge(f"best peer, {clock}", rate(spent[OURS], clock) / best, BARS["peers"])
    return ok


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; 1 if a bar does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small run: the figures mean little")
    parser.add_argument("--rounds", type=int, default=0)
    asked = parser.parse_args(argv)
    count, (many, few) = asked.rounds or (1 if asked.quick else 5), (4_100, 500) if asked.quick else (61_500, 8_000)
    ok = True
    with tempfile.TemporaryDirectory() as place, servers(Path(place) / "servers") as found:
        homes = FilledHomes(found, Path(place))
        measures: dict[str, tuple[Measure, int]] = {
            name: (functools.partial(ours, homes, setup), many) for name, setup in SETUPS.items()
        }
        for engine in PEERS:
            python = environment(engine, Path(place))
            measures[engine.name] = functools.partial(peer, engine, python, found.valkey.url), few
        for processes in (1, 2):
            spent = rounds(measures, count, processes)
            alone = [of_alone(homes, many, processes) for _ in range(2 * count)]
            ok &= verdicts(spent, alone, processes)
    return 0 if ok or asked.quick else 1


if __name__ == "__main__":
    sys.exit(main())
