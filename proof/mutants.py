"""Small mistakes put into the code one at a time: which of them do the tests notice?

Each mutant is one change of one expression or statement (mutations.py), chosen by a seed from all possible ones in
rooms that carry a promise. The tests that execute its lines (line_coverage.py) run, the fastest first; a mutant that
passes all of them survives. Harmless ones (with no visible effect) are listed with reasons in `harmless_mutants.toml`.

Verdicts are kept in out/mutants.jsonl: a run that is cut short goes on, and `--again` tries survivors again.
"""

import argparse
import compileall
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import tomllib
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
import pytest

from proof import line_coverage
from proof.line_coverage import Executed
from proof.mutations import PACKAGE, ROOMS, ROOT, Mutant, chosen, text_of

HARMLESS = Path(__file__).with_name("harmless_mutants.toml")
VERDICTS = ROOT / "out/mutants.jsonl"
ENOUGH = 0.9  # of the mutants that are not harmless must be noticed
FEW = 2
LONG = 60.0  # seconds of tests that a mutant is tried with
TESTS = (
    *(f"tests/unit/{room}" for room in (*ROOMS, "stages", "library", "uploads", "exports")),
    "tests/contract",
    "tests/property",
)
# For lines that only child processes execute.
FAR = {
    "worker": ("tests/unit/worker", "tests/acceptance/test_job_control.py", "tests/acceptance/test_poison.py"),
    "jobs": ("tests/acceptance/test_maintenance.py", "tests/api/test_deletion.py"),
    "index": ("tests/acceptance/test_search_library.py",),
    "plan": ("tests/acceptance/test_grid.py",),
    "media": ("tests/unit/stages", "tests/acceptance/test_odd_films.py"),
    "ledger": ("tests/acceptance/test_job_control.py",),
    "blobs": ("tests/acceptance/test_buckets.py",),
}
PYTEST = ("-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=same")
PRELOADED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
WRONG = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED)
THREADED = "onnxruntime"  # starts a thread when it is imported
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant: the first test that failed, or nothing if it survived."""

    mutant: str
    by: str
    tests: int  # that were to be run
    seconds: float  # of processor time


@dataclass(slots=True)
class Trial:
    """A copy of the sources, and a process with everything imported that others wrote, which forks for each mutant."""

    folder: Path
    tests: Sequence[Executed]
    trusted: dict[str, bool] = field(default_factory=dict)  # tests that noticed -> whether they pass without a mutant

    @classmethod
    def prepared(cls, folder: Path, tests: Sequence[Executed]) -> "Trial":
        """Copy and import."""
        shutil.copytree(ROOT / PACKAGE, folder / "rushes")
        compileall.compile_dir(folder / "rushes", quiet=2)
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # otherwise numpy starts threads when it is imported
        for name in line_coverage.third_party():
            if name.startswith(THREADED):
                continue
            with suppress(Exception), warnings.catch_warnings(action="ignore"):
                importlib.import_module(name)
        assert len(list(Path("/proc/self/task").iterdir())) == 1, "somebody started a thread: nobody may fork here"
        gc.freeze()
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        return cls(folder, tests)

    def verdict(self, mutant: Mutant) -> Verdict:
        """Try one; the copy is as it was afterwards."""
        file, tests = self.folder / "rushes" / mutant.file, self.tests_for(mutant)
        file.write_text(text_of(mutant), "utf-8")
        try:
            by, seconds = self._run(tests) if tests else self._run_far(mutant.room)
        finally:
            shutil.copy2(ROOT / PACKAGE / mutant.file, file)
        if by in {test.test for test in tests} and not self._passes_alone(by):
            self.tests = [test for test in self.tests if test.test != by]
            return self.verdict(mutant)
        return Verdict(mutant.name, by, len(tests), round(seconds, 1))

    def tests_for(self, mutant: Mutant) -> list[Executed]:
        """Those that execute its lines, the fastest first, until they would take too long."""
        found, seconds = [], 0.0
        for test in self.tests:
            if test.runs(mutant.file, mutant.runs):
                found.append(test)
                seconds += test.seconds
            if seconds > LONG:
                break
        return found

    def _passes_alone(self, test: str) -> bool:
        if test not in self.trusted:
            by, _ = self._run([Executed(test, 0.0, {})])
            self.trusted[test] = not by
        return self.trusted[test]

    def _run(self, tests: Sequence[Executed]) -> tuple[str, float]:
        """First those of a few files, because importing all that many files import takes longer than to run a test."""
        files = [*dict.fromkeys(test.file for test in tests)][:FEW]
        near, far = ([test for test in tests if (test.file in files) is is_near] for is_near in (True, False))
        by, seconds = self._run_all(near)
        if by or not far:
            return by, seconds
        by, more = self._run_all(far)
        return by, seconds + more

    def _run_all(self, tests: Sequence[Executed]) -> tuple[str, float]:
        files = dict.fromkeys(test.file for test in tests)
        ids = {test.test: n for n, test in enumerate(tests)}
        return self._forked([*PYTEST, *files], _Chosen(ids), sum(test.seconds for test in tests))

    def _run_far(self, room: str) -> tuple[str, float]:
        return self._forked([*PYTEST, *FAR[room]], _Chosen({}), LONG)

    def _forked(self, argv: Sequence[str], plugin: "_Chosen", expected: float) -> tuple[str, float]:
        """The first test that fails in a fork of this process, or "", and the processor time that it took."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        plugin.said = place / "failed"
        argv = [*argv, *PRELOADED, f"--basetemp={place / 'tests'}"]
        pid = os.fork() or _become(lambda: int(pytest.main(argv, [plugin])), place, self.folder, expected)
        code, seconds = _over(pid, 60 + 3 * expected)
        by = plugin.said.read_text("utf-8") if plugin.said.exists() else ""
        if code in WRONG or (code == pytest.ExitCode.TESTS_FAILED and not by):
            raise SystemExit((place / "log").read_text("utf-8")[-2000:])
        shutil.rmtree(place, ignore_errors=True)
        return (by or f"exit {code}") if code else "", seconds


@dataclass(slots=True, eq=False)  # pytest keeps plugins in sets
class _Chosen:
    """Plugin of pytest: these tests in this order, or all; it writes down which one failed."""

    order: Mapping[str, int]
    said: Path = Path()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.order:
            items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.said.exists():
            self.said.write_text(report.nodeid, "utf-8")


def _become(body: Callable[[], int], place: Path, sources: Path, expected: float) -> int:
    """In the fork: run this on the copied sources, with all that it leaves behind in a place, and end."""
    code = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        os.setsid()
        out = os.open(place / "log", os.O_WRONLY | os.O_CREAT)
        os.dup2(out, 1)
        os.dup2(out, 2)
        most = int(20 + 2 * expected)  # of processor time: a loop that does not end is noticed
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
        os.environ |= {"PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(place)}
        tempfile.tempdir = str(place)
        sys.path.insert(0, str(sources))
        sys.dont_write_bytecode = True
        code = body()
    except BaseException:  # noqa: BLE001 - it is in the log
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _over(pid: int, patience: float) -> tuple[int, float]:
    """Exit code and processor time of a process; who only waits for longer than `patience` is ended."""
    gone, waited = os.pidfd_open(pid), 0
    while not select.select([gone], [], [], 1.0)[0]:
        waited += _only_waits(pid)
        if waited > patience:
            os.kill(pid, 9)
    os.close(gone)
    _, status, used = os.wait4(pid, 0)
    _end(psutil.Process().children(recursive=True))
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


def _only_waits(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        return all(p.status() != psutil.STATUS_RUNNING for p in (first, *first.children(recursive=True)))
    return False


def _end(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    with suppress(ChildProcessError):
        while True:
            os.wait()


# What is known
def harmless() -> dict[str, str]:
    """Mutants that change nothing that anybody could see, and why."""
    entries = tomllib.loads(HARMLESS.read_text("utf-8")).get("mutant", [])
    return {entry["name"]: entry["why"] for entry in entries}


def verdicts() -> dict[str, Verdict]:
    """Those of earlier runs; the last of a mutant counts."""
    if not VERDICTS.exists():
        return {}
    found = (Verdict(**json.loads(line)) for line in VERDICTS.read_text("utf-8").splitlines())
    return {verdict.mutant: verdict for verdict in found}


def _record() -> None:
    """Find out what tests execute that are new or have changed."""
    files = [path for folder in TESTS for path in sorted((ROOT / folder).rglob("test_*.py"))]
    if late := line_coverage.stale(files):
        print(f"recording what {len(late)} test files execute", flush=True)
        argv = [*PYTEST[1:], "-p", "proof.line_coverage", *map(str, late)]
        subprocess.run([sys.executable, "-m", "pytest", *argv], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)


def main() -> int:
    """Try so many mutants; 1 if too many survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=420)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--room", action="append", choices=ROOMS, help="only this one; may be repeated")
    parser.add_argument("--list", action="store_true", help="name them and try none")
    parser.add_argument("--again", action="store_true", help="try those again that survived")
    options = parser.parse_args()
    known = harmless()
    mutants = [m for m in chosen(options.count, options.seed, options.room or [*ROOMS]) if m.name not in known]
    if options.list:
        print("\n".join(f"{m.file}:{m.line}  {m.name}" for m in mutants))
        return 0
    _record()
    _try([m for m in mutants if not _is_settled(m, options.again)])
    return _tally(mutants, options.seed, len(known))


def _is_settled(mutant: Mutant, again: bool) -> bool:
    verdict = verdicts().get(mutant.name)
    return verdict is not None and bool(verdict.by or not again)


def _try(mutants: Sequence[Mutant]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial.prepared(Path(folder), line_coverage.recorded())
        for n, mutant in enumerate(mutants, 1):
            verdict = trial.verdict(mutant)
            with VERDICTS.open("a", encoding="utf-8") as kept:
                kept.write(json.dumps(asdict(verdict)) + "\n")
            print(f"{n}/{len(mutants)} {mutant.file}:{mutant.line} {verdict}", file=sys.stderr, flush=True)


def _tally(mutants: Sequence[Mutant], seed: int, known: int) -> int:
    found = verdicts()
    tried, noticed = Counter(m.room for m in mutants), Counter(m.room for m in mutants if found[m.name].by)
    for mutant in mutants:
        if not found[mutant.name].by:
            print(f"survived: {mutant.file}:{mutant.line}  {mutant.name}")
    for room in tried:
        print(f"{room:<8} {noticed[room]:>4} of {tried[room]:>4} noticed")
    share = noticed.total() / max(1, tried.total())
    seconds = sum(found[m.name].seconds for m in mutants)
    print(f"seed {seed}: {noticed.total()} of {tried.total()} noticed, {share:.0%}; {known} harmless; {seconds:.0f} s")
    return int(share < ENOUGH)


if __name__ == "__main__":
    sys.exit(main())
