"""Kill a run at a named point, start it again, and compare with a run that nobody disturbed."""

import os
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proof.audit import Audit, audit, by_content
from rushes.domain.task import TaskState
from rushes.wiring import open_home

Visits = Mapping[str, Sequence[bool]]
Start = Callable[[Sequence[str], Mapping[str, str], Path], int]  # arguments, environment, where to say something

ROOT = Path(__file__).resolve().parent.parent
TOYS = ROOT / "proof" / "toys"


@dataclass(frozen=True, slots=True)
class Film:
    """What is run: a film, which stages, in chunks of how many seconds."""

    path: Path | str
    only: str
    chunk: str = "5"
    slots: int = 2
    guests: tuple[Path | str, ...] = ()  # films that come in while the first is worked on
    settings: str = ""  # the home's rushes.toml: which set-up it is run on
    new_disk: bool = False  # each start is on another machine: the folder of the home is lost with a kill


@dataclass(frozen=True, slots=True)
class Kill:
    """The nth time that any process of a run passes a point, all of it dies."""

    point: str
    nth: int


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A film that was killed, once or again and again, and what came of it."""

    held: tuple[int, ...]  # leases held at each death, in the order of the kills; fewer than those if it ended before
    redone: int  # attempts that the witness saw beyond one per task
    bad: tuple[str, ...]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a driven run: the toys are there, nothing of the caller's settings is."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("RUSHES_") or k == "RUSHES_MODELS"}
    path = os.pathsep.join(map(str, (ROOT, ROOT / "src", TOYS)))
    toys = {"PYTHONPATH": path, "TOY_WITNESS": str(folder / "witness"), "RUSHES_SANDBOX": "off"}  # they write outside
    return clean | toys | more


def drive(folder: Path, film: Film, start: Start, **env: str) -> tuple[int, str]:
    """Run the film in the folder's home to the end, or to its death; the exit code, and what it said."""
    if film.new_disk:
        shutil.rmtree(folder / "home", ignore_errors=True)
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "rushes.toml").write_text(film.settings)
    said = folder / "said"
    code = start(arguments(folder, film), environment(folder, **env), said)
    return code, said.read_text(errors="replace")


def spawned(argv: Sequence[str], env: Mapping[str, str], said: Path) -> int:
    """A run started as anybody starts Python."""
    with said.open("wb") as out:
        whole = [sys.executable, "-m", "proof.film_runner", *argv]
        return subprocess.run(whole, env=env, stdout=out, stderr=out, timeout=300, check=False).returncode


def command(folder: Path, film: Film) -> list[str]:
    """The command line of a driven run."""
    return [sys.executable, "-m", "proof.film_runner", *arguments(folder, film)]


def arguments(folder: Path, film: Film) -> list[str]:
    """What a driven run is told."""
    films = map(str, (film.path, *film.guests))
    return [str(folder / "home"), *films, "--only", film.only, "--chunk", film.chunk, "--slots", str(film.slots)]


def undisturbed(folder: Path, film: Film, **env: str) -> tuple[Audit, Visits]:
    """The reference: a whole run, and every visit of each crash point."""
    trace = folder / "trace"
    code, said = drive(folder, film, spawned, RUSHES_CRASH="none", RUSHES_CRASH_TRACE=str(trace), **env)
    assert code == 0, said
    return audit(folder / "home", folder / "witness"), visits(trace.read_text())


def visits(trace: str) -> Visits:
    """For every point the times that it was passed, each with whether a toy was at work just then."""
    found: dict[str, list[bool]] = defaultdict(list)
    busy: set[str] = set()
    for line in trace.splitlines():
        process, what = line.split()
        if ":" in what:
            found[what].append(bool(busy))
        elif what == "begin":
            busy.add(process)
        else:
            busy.discard(process)
        if what == "ledger.control:after":  # a pause ends what is at work, and nobody writes its end
            busy.clear()
    return found


def disturbed(
    folder: Path, film: Film, kills: Sequence[Kill], reference: Audit, start: Start = spawned, **env: str
) -> Disturbed:
    """Run until the first kill, again until the second, ..., at last to the end; then audit."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    held: list[int] = []
    for n, kill in enumerate(kills):
        armed = {"RUSHES_CRASH": f"{kill.point}#{kill.nth}", "RUSHES_CRASH_COUNT": str(folder / f"count{n}")}
        code, said = drive(folder, film, start, **armed, **env)
        if code != -signal.SIGKILL:
            break
        held.append(held_leases(folder / "home"))
    else:
        code, said = drive(folder, film, start, **env)
    bad = [] if code == 0 else [f"exit {code}: {said[-500:]}"]
    found = audit(folder / "home", folder / "witness")
    bad += found.bad
    named = by_content if film.new_disk else dict  # a film that was uploaded again has another job
    bad += differences(named(reference.outputs), named(found.outputs))
    slots = film.slots + bool(film.guests)  # guests come one by one, each with a slot of its own
    if found.redone > slots * len(held):
        bad.append(f"{found.redone} attempts redone after {len(held)} kills with {slots} slots")
    if not bad:
        shutil.rmtree(folder, ignore_errors=True)
    return Disturbed(tuple(held), found.redone, tuple(bad))


def differences(expected: Mapping[str, str], found: Mapping[str, str]) -> Sequence[str]:
    """Names that are missing, extra, or have other bytes."""
    names = sorted(expected.keys() | found.keys())
    return [f"not the same bytes: {name}" for name in names if expected.get(name) != found.get(name)]


def held_leases(home: Path) -> int:
    """Tasks that are leased, of a run that died."""
    opened = open_home(home, create=False)
    held = len(opened.ledger.tasks(state=TaskState.LEASED).rows)
    opened.close()
    return held
