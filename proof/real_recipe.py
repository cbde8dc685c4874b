"""Kill -9 of the real recipes at random moments: everything at once, or the worker alone, then the same command again.

    python -m proof.real_recipe --kills 200 --seed 1                # on each of the five set-ups
    python -m proof.real_recipe --setup postgres --kills 40

Two films in turn: one with speech, text, a face and a cup through `searchable`, one through `3d`. On a bucket the
disk of the machine is lost with each kill. Every result and every published file is compared with an undisturbed run on
SQLite; manifests without their provenance.
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from tests.acceptance.conftest import VOICE, draw, sights

from proof.audit import Audit, audit, by_content
from proof.kills import Film, differences, drive, held_leases, spawned, undisturbed
from proof.setups import Servers, servers

SETUPS = ("sqlite", "postgres", "postgres+valkey+s3", "aws", "bucket")
ROW = 8  # kills of one run: a task that lost its worker ten times is a dead letter
PATIENCE = 300  # seconds for a run that nobody kills


@dataclass(frozen=True, slots=True)
class Subject:
    """A film, what an undisturbed run made of it, and how long that took."""

    film: Film
    reference: Audit
    seconds: float


@dataclass(slots=True)
class Tally:
    """What happened on one set-up."""

    kills: int = 0
    held: int = 0
    runs: int = 0
    bad: int = 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print a line per set-up, answer 1 if anything was bad."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setup", choices=[*SETUPS, "all"], default="all")
    parser.add_argument("--kills", type=int, default=200, help="on each set-up")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(argv)
    folder, bad = Path(tempfile.mkdtemp(prefix="real-")), 0
    subjects = make_subjects(folder)
    for setup in SETUPS if asked.setup == "all" else [asked.setup]:
        begun = time.monotonic()
        with servers(folder / "servers" / setup) as found:
            tally = kill_runs(folder / setup, found, setup, subjects, asked.kills, random.Random(asked.seed))
        share = 100 * tally.held / max(1, tally.kills)
        print(
            f"{setup}: {tally.kills} kills of {tally.runs} runs in {time.monotonic() - begun:.0f} s, seed {asked.seed}"
        )
        print(f"{share:.0f} % with a lease held, {tally.bad} runs bad", flush=True)
        bad += tally.bad
    if bad:
        print(f"what is left of them: {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if bad else 0


def make_subjects(folder: Path) -> list[Subject]:
    """The two films, with their references."""
    seen = draw(folder / "seen.mp4", 12, (640, 360), voice=VOICE, paint=sights)
    small = draw(folder / "small.mp4", 12, (160, 90), rate=5)
    subjects = []
    for number, film in enumerate((Film(seen, "", chunk="5"), Film(small, "join", chunk="5"))):
        place = folder / f"reference{number}"
        place.mkdir()
        begun = time.monotonic()
        reference, _ = undisturbed(place, film)
        if reference.bad:
            raise SystemExit(f"the undisturbed run is bad: {reference.bad}")
        subjects.append(Subject(film, reference, time.monotonic() - begun))
    return subjects


def kill_runs(
    folder: Path, found: Servers, setup: str, subjects: Sequence[Subject], count: int, chance: random.Random
) -> Tally:
    """Runs of both films, each killed up to eight times, until there were enough kills."""
    tally = Tally()
    while tally.kills < count:
        subject = subjects[tally.runs % len(subjects)]
        film = _on(found, setup, f"real-{tally.runs}", subject.film)
        bad = kill_run(folder / str(tally.runs), film, subject, chance, tally)
        tally.runs += 1
        tally.bad += bool(bad)
        for line in bad[:5]:
            print(f"bad: {setup} run {tally.runs}: {line[:500]}", flush=True)
        print(f"\r{setup}: {tally.kills}/{count} kills ", end="", file=sys.stderr, flush=True)
    return tally


def _on(found: Servers, setup: str, name: str, film: Film) -> Film:
    """The film on a set-up, in a corner of its own; in a bucket it is all that machines share."""
    (path,) = found.films(setup, [Path(film.path)])
    return replace(film, path=path, settings=found.settings(setup, name), new_disk=setup == "bucket")


def kill_run(folder: Path, film: Film, subject: Subject, chance: random.Random, tally: Tally) -> list[str]:
    """One run: killed at random moments, at last left alone, then audited."""
    folder.mkdir(parents=True)
    for _ in range(ROW):
        start = Killed(chance.uniform(0.0, subject.seconds), whole=chance.random() < 0.5)
        code, said = drive(folder, film, start)
        if code != -signal.SIGKILL:
            break
        tally.kills += 1
        tally.held += held_leases(folder / "home") > 0
    else:
        code, said = drive(folder, film, spawned)
    found = audit(folder / "home")
    bad = [*([f"exit {code}: {said[-500:]}"] if code else []), *found.bad]
    bad += differences(by_content(subject.reference.outputs), by_content(found.outputs))
    if not bad:
        shutil.rmtree(folder)
    return bad


@dataclass(frozen=True, slots=True)
class Killed:
    """Starts a run and kills it after a while: with all its processes, or the worker alone, which its slots survive."""

    after: float
    whole: bool

    def __call__(self, argv: Sequence[str], env: Mapping[str, str], said: Path) -> int:
        """The exit code."""
        with said.open("wb") as out:
            argv = [sys.executable, "-m", "proof.film_runner", *argv]
            process = subprocess.Popen(argv, env=env, stdout=out, stderr=out)
            try:
                return process.wait(self.after)
            except subprocess.TimeoutExpired:
                self._kill(process)
                return process.wait(PATIENCE)

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        children = psutil.Process(process.pid).children(recursive=True) if self.whole else []
        process.kill()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()


if __name__ == "__main__":
    sys.exit(main())
