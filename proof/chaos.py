"""Kill -9 in numbers: every crash point again and again, each run compared with one that nobody disturbed.

python -m proof.chaos --kills 560 --seed 1
python -m proof.chaos --setup all --kills 2000
python -m proof.chaos --setup aws --kills 200 --new-disk
"""

import argparse
import contextlib
import math
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from tests.acceptance.conftest import draw

from proof.audit import Audit
from proof.kills import Disturbed, Film, Kill, Visits, disturbed, environment, undisturbed
from proof.setups import Servers, servers
from proof.zygote import Hand, hands

SETUPS = ("sqlite", "postgres", "postgres+s3", "postgres+valkey+s3", "aws", "bucket")
BUSY = {"TOY_SECONDS": "0.6"}  # so that leases are held most of the time
ROW = 9  # kills of one film, one after the other: a task that lost its worker ten times is not tried again by itself
HEADS = ("ledger.move_in", "migrate")  # only a new home passes them: where a kill there is wanted, it is the first
LATE = ("publish", "ledger.sweep", "ledger.control")  # when a guest is done: leases are held while the film is at work
ROUND = 80  # films on the same servers: a corner is never cleared, and a database takes 8 MB
SECONDS = (180, 5, 6, 7, 8, 9, 10)  # of the film, and of each guest
Row = tuple[Sequence[Kill], Disturbed]


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print a table per set-up, answer 1 if anything was bad."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setup", choices=[*SETUPS, "all"], default="sqlite")
    parser.add_argument("--kills", type=int, default=560, help="on each set-up")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=6, help="films killed at the same time")
    parser.add_argument("--new-disk", action="store_true", help="the disk is lost with each kill (results in a bucket)")
    asked = parser.parse_args(argv)
    bad = 0
    for setup in SETUPS if asked.setup == "all" else [asked.setup]:
        begun, folder, rows, dead = time.monotonic(), Path(tempfile.mkdtemp(prefix="chaos-")), [], 0
        with contextlib.suppress(KeyboardInterrupt):  # enough for today: what was seen so far is told
            for row in chaos(folder, setup, asked.kills, asked.seed, asked.at_once, new_disk=asked.new_disk):
                rows.append(row)
                dead += len(row[1].held)
                print(f"\r{setup}: {dead}/{asked.kills} kills ", end="", file=sys.stderr, flush=True)
        if found := report(setup, rows, asked.seed, time.monotonic() - begun):
            print(f"what is left of them: {folder}")
        else:
            shutil.rmtree(folder)
        bad += found
    return 1 if bad else 0


def chaos(folder: Path, setup: str, count: int, seed: int, at_once: int, *, new_disk: bool = False) -> Iterator[Row]:
    """Make the kills, spread evenly over every point that an undisturbed run passes."""
    first, *guests = (draw(folder / f"film{n}.mp4", seconds) for n, seconds in enumerate(SECONDS))
    film = Film(first, "toy_join", guests=tuple(guests), new_disk=new_disk or setup == "bucket")
    reference, visits = _undisturbed(folder / "reference", setup, film)
    chance, points = random.Random(seed), list(visits)
    waiting, died, number = [points[n % len(points)] for n in range(count)], True, 0
    with hands(at_once, setup, environment(folder)) as free:
        while waiting and died:  # what a run did not come to is tried in another
            chance.shuffle(waiting)
            rows, waiting, died = [_row(chance, visits, some) for some in _dealt(waiting, at_once)], [], False
            for begin in range(0, len(rows), ROUND):
                number += 1
                some = rows[begin : begin + ROUND]
                for kills, run in _round(folder / str(number), setup, film, some, reference, free):
                    waiting += [kill.point for kill in kills[len(run.held) :]]
                    died |= bool(run.held)
                    yield kills, run


def _undisturbed(folder: Path, setup: str, film: Film) -> tuple[Audit, Visits]:
    folder.mkdir()
    with servers(folder / "servers") as found:
        reference, visits = undisturbed(folder, _on(found, setup, "reference", film), **BUSY)
    if reference.bad:
        raise SystemExit(f"the undisturbed run is bad: {reference.bad}")
    return reference, visits


def _on(found: Servers, setup: str, name: str, film: Film) -> Film:
    """The film on a set-up, in a corner of its own."""
    first, *guests = found.films(setup, [Path(path) for path in (film.path, *film.guests)])
    return replace(film, path=first, guests=tuple(guests), settings=found.settings(setup, name))


def _dealt(points: Sequence[str], at_once: int) -> list[list[str]]:
    """Points in rows, at most one head in each: as few as possible, but enough for all hands."""
    heads = [point for point in points if point.startswith(HEADS)]
    rest = [point for point in points if not point.startswith(HEADS)]
    rows = max(len(heads), math.ceil(len(points) / ROW), min(at_once, len(points)))
    return [row for n in range(rows) if (row := heads[n : n + 1] + rest[n::rows])]


def _row(chance: random.Random, visits: Visits, points: Sequence[str]) -> Sequence[Kill]:
    """A row of kills: heads, then what needs guests, then what is passed early; each soon: some work is left."""
    order = {point: (not point.startswith(HEADS), not point.startswith(LATE), n) for n, point in enumerate(visits)}
    row = sorted(points, key=order.__getitem__)
    return [Kill(point, _visit(chance, visits[point], len(row) - n)) for n, point in enumerate(row)]


def _visit(chance: random.Random, visits: Sequence[bool], to_come: int) -> int:
    """Which visit of a point is the last: one of the first half of those at which leases were held, if there are."""
    busy = [n for n, held in enumerate(visits, 1) if held] or range(1, len(visits) + 1)
    return chance.choice(busy[: max(1, len(busy) // max(2, to_come))])


def _round(
    folder: Path, setup: str, film: Film, rows: Sequence[Sequence[Kill]], reference: Audit, free: Sequence[Hand]
) -> Iterator[Row]:
    """Some films, each killed in a corner of its own."""
    idle: SimpleQueue[Hand] = SimpleQueue()
    for hand in free:
        idle.put(hand)
    with servers(folder / "servers") as found, ThreadPoolExecutor(len(free)) as pool:
        films = [_on(found, setup, f"run-{n}", film) for n in range(len(rows))]

        def killed(number: int) -> Row:
            hand = idle.get()
            run = disturbed(folder / str(number), films[number], rows[number], reference, hand.run, **BUSY)
            idle.put(hand)
            return rows[number], run

        yield from pool.map(killed, range(len(rows)))


def report(setup: str, rows: Sequence[Row], seed: int, seconds: float) -> int:
    """Print the table that goes into docs/proof.md; how many films were bad."""
    dead: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for kills, run in rows:
        for kill, leases in zip(kills, run.held, strict=False):
            dead[kill.point] += 1
            held[kill.point] += leases > 0
    print(f"\n| on {setup}: crash point | kills | with a lease held |\n|---|---|---|")
    for point in sorted(dead):
        print(f"| {point} | {dead[point]} | {held[point]} |")
    bad = [(kills, run) for kills, run in rows if run.bad]
    share, redone = 100 * held.total() / max(1, dead.total()), sum(run.redone for _, run in rows)
    print(f"\n{setup}: {dead.total()} kills of {len(rows)} films in {seconds:.0f} s, seed {seed}")
    print(f"{share:.0f} % with a lease held, {redone} attempts redone, {len(bad)} films bad")
    for kills, run in bad[:10]:
        print(f"bad: {', '.join(f'{k.point}#{k.nth}' for k in kills)}: {'; '.join(run.bad)[:500]}")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main())
