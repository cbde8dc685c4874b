"""Kill -9 in numbers: every crash point again and again, each run compared with one that nobody disturbed.

python -m proof.chaos --kills 520 --seed 1
"""

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.conftest import draw

from proof.audit import Audit
from proof.kills import Film, Kill, kill, undisturbed

BUSY = {"TOY_SECONDS": "0.4"}  # so that leases are held most of the time


@dataclass(frozen=True, slots=True)
class Target:
    """One kill to be made."""

    number: int
    point: str
    nth: int


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print the table, answer 1 if anything was bad."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=520)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=2)
    asked = parser.parse_args(argv)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        kills = list(chaos(Path(folder), asked.kills, asked.seed, asked.at_once))
    return report(kills, asked.seed, time.monotonic() - begun)


def chaos(folder: Path, count: int, seed: int, at_once: int) -> Iterator[Kill]:
    """Make the kills, spread evenly over every point that an undisturbed run passes."""
    first, *guests = (draw(folder / f"film{n}.mp4", seconds) for n, seconds in enumerate((120, 10, 11)))
    film = Film(first, "toy_join", guests=tuple(guests))
    (folder / "reference").mkdir()
    reference, points = undisturbed(folder / "reference", film, **BUSY)
    if reference.bad:
        raise SystemExit(f"the undisturbed run is bad: {reference.bad}")
    chance = random.Random(seed)
    names = sorted(points)
    targets = [Target(n, name, _visit(chance, points[name])) for n, name in zip(range(count), itertools.cycle(names))]
    with ThreadPoolExecutor(at_once) as pool:
        for n, made in enumerate(pool.map(lambda t: _kill(folder, film, t, reference), targets), 1):
            print(f"\r{n}/{count} kills, {made.point} ", end="", file=sys.stderr, flush=True)
            yield made


def _visit(chance: random.Random, visits: Sequence[bool]) -> int:
    """Which visit of a point is the last: one at which leases were held, where there is one."""
    busy = [n for n, held in enumerate(visits, 1) if held]
    return chance.choice(busy or range(1, len(visits) + 1))


def _kill(folder: Path, film: Film, target: Target, reference: Audit) -> Kill:
    return kill(folder / f"run{target.number}", film, target.point, target.nth, reference, **BUSY)


def report(kills: Sequence[Kill], seed: int, seconds: float) -> int:
    """Print the table that goes into docs/proof.md."""
    rows: dict[str, list[Kill]] = defaultdict(list)
    for one in kills:
        rows[one.point].append(one)
    died = [k for k in kills if k.died]
    bad = [k for k in kills if k.bad]
    held = sum(k.held > 0 for k in died)
    print("\n| crash point | kills | with a lease held | redone | bad |\n|---|---|---|---|---|")
    for point, some in sorted(rows.items()):
        dead = [k for k in some if k.died]
        counts = len(dead), sum(k.held > 0 for k in dead), sum(k.redone for k in dead), sum(bool(k.bad) for k in some)
        print(f"| {point} | {' | '.join(map(str, counts))} |")
    share = 100 * held / max(1, len(died))
    print(f"\n{len(died)} kills in {seconds:.0f} s, seed {seed}: {held} with a lease held ({share:.0f} %), ", end="")
    print(f"at most {max((k.redone for k in died), default=0)} attempts redone in one, {len(bad)} bad")
    for one in bad[:10]:
        print(f"bad: {one.point}#{one.nth}: {'; '.join(one.bad)[:500]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
