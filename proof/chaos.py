"""Kill -9 in numbers: every crash point again and again, each run compared with one that nobody disturbed.

python -m proof.chaos --kills 560 --seed 1
python -m proof.chaos --setup all --kills 2000
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
from dataclasses import dataclass, replace
from pathlib import Path

from tests.acceptance.conftest import draw

from proof.audit import Audit
from proof.kills import Film, Kill, Visits, kill, undisturbed
from proof.setups import servers

SETUPS = ("sqlite", "postgres", "postgres+valkey+s3", "aws")
BUSY = {"TOY_SECONDS": "0.4"}  # so that leases are held most of the time
ROUND = 40  # kills on the same servers: a corner is never cleared, and a database takes 8 MB


@dataclass(frozen=True, slots=True)
class Target:
    """One kill to be made."""

    number: int
    point: str
    nth: int


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print a table per set-up, answer 1 if anything was bad."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", choices=[*SETUPS, "all"], default="sqlite")
    parser.add_argument("--kills", type=int, default=560, help="on each set-up")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=2)
    asked = parser.parse_args(argv)
    bad = 0
    for setup in SETUPS if asked.setup == "all" else [asked.setup]:
        begun = time.monotonic()
        kills = []
        with tempfile.TemporaryDirectory() as folder:
            for made in chaos(Path(folder), setup, asked.kills, asked.seed, asked.at_once):
                kills.append(made)
                print(
                    f"\r{setup}: {len(kills)}/{asked.kills} kills, {made.point} ", end="", file=sys.stderr, flush=True
                )
        bad += report(setup, kills, asked.seed, time.monotonic() - begun)
    return 1 if bad else 0


def chaos(folder: Path, setup: str, count: int, seed: int, at_once: int) -> Iterator[Kill]:
    """Make the kills, spread evenly over every point that an undisturbed run passes."""
    first, *guests = (draw(folder / f"film{n}.mp4", seconds) for n, seconds in enumerate((120, 10, 11)))
    film = Film(first, "toy_join", guests=tuple(guests))
    reference, points = _undisturbed(folder / "reference", setup, film)
    chance = random.Random(seed)
    names = sorted(points)
    targets = [Target(n, name, _visit(chance, points[name])) for n, name in zip(range(count), itertools.cycle(names))]
    for begin in range(0, count, ROUND):
        yield from _round(folder / f"round{begin}", setup, film, targets[begin : begin + ROUND], reference, at_once)


def _undisturbed(folder: Path, setup: str, film: Film) -> tuple[Audit, Visits]:
    folder.mkdir()
    with servers(folder / "servers") as found:
        reference, points = undisturbed(folder, replace(film, settings=found.settings(setup, "reference")), **BUSY)
    if reference.bad:
        raise SystemExit(f"the undisturbed run is bad: {reference.bad}")
    return reference, points


def _round(
    folder: Path, setup: str, film: Film, targets: Sequence[Target], reference: Audit, at_once: int
) -> Iterator[Kill]:
    """Some kills, each in a corner of its own."""
    with servers(folder / "servers") as found, ThreadPoolExecutor(at_once) as pool:
        films = [replace(film, settings=found.settings(setup, f"run-{target.number}")) for target in targets]
        yield from pool.map(lambda film, target: _kill(folder, film, target, reference), films, targets)


def _visit(chance: random.Random, visits: Sequence[bool]) -> int:
    """Which visit of a point is the last: one at which leases were held, where there is one."""
    busy = [n for n, held in enumerate(visits, 1) if held]
    return chance.choice(busy or range(1, len(visits) + 1))


def _kill(folder: Path, film: Film, target: Target, reference: Audit) -> Kill:
    return kill(folder / f"run{target.number}", film, target.point, target.nth, reference, **BUSY)


def report(setup: str, kills: Sequence[Kill], seed: int, seconds: float) -> int:
    """Print the table that goes into docs/proof.md; how many were bad."""
    rows: dict[str, list[Kill]] = defaultdict(list)
    for one in kills:
        rows[one.point].append(one)
    died = [k for k in kills if k.died]
    bad = [k for k in kills if k.bad]
    held = sum(k.held > 0 for k in died)
    print(f"\n| on {setup}: crash point | kills | with a lease held | redone | bad |\n|---|---|---|---|---|")
    for point, some in sorted(rows.items()):
        dead = [k for k in some if k.died]
        counts = len(dead), sum(k.held > 0 for k in dead), sum(k.redone for k in dead), sum(bool(k.bad) for k in some)
        print(f"| {point} | {' | '.join(map(str, counts))} |")
    share = 100 * held / max(1, len(died))
    print(
        f"\n{setup}: {len(died)} kills in {seconds:.0f} s, seed {seed}: {held} with a lease held ({share:.0f} %), ",
        end="",
    )
    print(f"at most {max((k.redone for k in died), default=0)} attempts redone in one, {len(bad)} bad")
    for one in bad[:10]:
        print(f"bad: {one.point}#{one.nth}: {'; '.join(one.bad)[:500]}")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main())
