"""Small mistakes put into the code one at a time: which of them do the tests notice?

Each mutant is one change of one expression or statement, chosen by a seed from all that the operators below can make in
rooms that carry a promise. The nearest tests run first, then those a step further away; a mutant that passes them all
survives. What is harmless (nobody could see what it changes) is named with its reason in `harmless_mutants.toml`.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/rushes")
HARMLESS = Path(__file__).with_name("harmless_mutants.toml")
ENOUGH = 0.9  # of the mutants that are not harmless must be noticed
LONG = 600  # seconds: a mutant that hangs is noticed
_LEDGER = "tests/contract/test_ledger*.py"
# What stands in a folder is tried by these, the nearest first. The longest name that fits counts.
TESTS: dict[str, tuple[str, ...]] = {
    "ledger": (f"tests/unit/ledger {_LEDGER} -k memory or sqlite or rules", f"{_LEDGER} -k postgres18"),
    "ledger/postgres": (f"{_LEDGER} tests/contract/test_postgres.py -k postgres",),
    "ledger/dynamodb": (f"{_LEDGER} tests/unit/ledger -k dynamodb", "tests/contract/test_dynamodb*.py"),
    "worker": ("tests/unit/worker", "tests/acceptance/test_steering.py tests/acceptance/test_poison.py"),
    "jobs": ("tests/unit/jobs", "tests/acceptance/test_maintenance.py tests/api/test_deleting.py tests/unit/library"),
    "blobs": ("tests/unit/blobs tests/contract/test_blobs*.py -k not ministack",),
    "blobs/s3": ("tests/contract/test_blobs*.py -k not memory and not folder",),
    "index": (
        "tests/unit/index tests/contract/test_index.py -k not postgres",
        "tests/acceptance/test_search_library.py",
    ),
    "index/postgres": ("tests/contract/test_index.py -k postgres",),
    "plan": ("tests/unit/plan", "tests/acceptance/test_grid.py tests/unit/jobs"),
    "media": ("tests/unit/media", "tests/unit/stages tests/acceptance/test_odd_films.py"),
}
ROOMS = ("ledger", "worker", "jobs", "blobs", "index", "plan", "media")

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file: which node, how it was written and how it is written now."""

    file: str  # below the package
    function: str
    line: int
    before: str
    after: str
    number: int  # in its file

    @property
    def name(self) -> str:
        """Stays when lines move."""
        return f"{self.file} {self.function}: {self.before} -> {self.after}"

    @property
    def room(self) -> str:
        """Where it is."""
        return self.file.partition("/")[0]


# Operators: each answers what may stand for a node instead
def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Realistic slips in this node: one off, the wrong way round, forgotten."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARE:
            yield _with(node, ops=[_COMPARE[type(op)]()])
        case ast.BoolOp(op=op, values=[*_, _]):
            yield _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.BinOp(op=op, left=left) if type(op) in _ARITHMETIC and not _is_text(left):
            yield _with(node, op=_ARITHMETIC[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)) | ast.Constant(value=float(value)):
            yield ast.Constant(value + 1)
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.UnaryOp):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=[_, *_]):
            yield _with(node, ifs=[])
        case ast.Expr(value=ast.Call()) | ast.Raise():
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


# Sites
def mutants_of(file: str) -> list[Mutant]:
    """Every mutant of a file."""
    return [mutant for mutant, _ in _mutated(file)]


def text_of(mutant: Mutant) -> str:
    """Its file with the change in it."""
    _, tree = next(islice(_mutated(mutant.file), mutant.number, None))
    return ast.unparse(tree)


def _mutated(file: str) -> Iterator[tuple[Mutant, ast.AST]]:
    """Each mutant of a file, and the tree with its change in it until the next one."""
    tree, numbers = ast.parse((ROOT / PACKAGE / file).read_text("utf-8")), count()
    for function, parent, field, index in _sites(tree):
        node = _get(parent, field, index)
        for changed in changes(node):
            _set(parent, field, index, changed)
            yield Mutant(file, function, _line(node, parent), _short(node), _short(changed), next(numbers)), tree
            _set(parent, field, index, node)


def _sites(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST, str, int | None]]:
    """Every place in functions where a node stands: what it belongs to, and where in that."""
    for field, value in ast.iter_fields(tree):
        if field in ("decorator_list", "annotation", "returns", "type_params", "slice"):
            continue  # notes for readers and type checkers; a slice that is one off is seldom a slip
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST):
                continue
            inside = function
            if isinstance(child, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                inside = f"{function}.{child.name}".strip(".")
            if function:
                yield function, tree, field, index
            yield from _sites(child, inside)


def _get(parent: ast.AST, field: str, index: int | None) -> ast.AST:
    value = getattr(parent, field)
    found: ast.AST = value if index is None else value[index]
    return found


def _set(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _line(node: ast.AST, parent: ast.AST) -> int:
    return getattr(node, "lineno", 0) or getattr(parent, "lineno", 0)


def _short(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:90]


def chosen(total: int, seed: int, rooms: list[str]) -> list[Mutant]:
    """So many mutants, as many of each room as there are, the same for the same seed and sources."""
    chance = random.Random(seed)
    found: list[Mutant] = []
    for n, room in enumerate(rooms):
        files = sorted((ROOT / PACKAGE / room).rglob("*.py"))
        every = [m for file in files for m in mutants_of(str(file.relative_to(ROOT / PACKAGE)))]
        share = total * (n + 1) // len(rooms) - total * n // len(rooms)
        found += chance.sample(every, min(share, len(every)))
    return found


# Trying
def tests_for(file: str) -> tuple[str, ...]:
    """What is run for a file, the nearest first."""
    folders = [file.rsplit("/", n)[0] for n in range(1, file.count("/") + 1)]
    return next(TESTS[folder] for folder in folders if folder in TESTS)


def passes(tree: Path, tests: str) -> bool:
    """Whether these tests pass with the package that lies there."""
    paths, _, words = tests.partition(" -k ")
    files = [str(p) for pattern in paths.split() for p in sorted(ROOT.glob(pattern))]
    only = ["-k", words] if words else []
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files, *only]
    env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(pytest, cwd=ROOT, env=env, capture_output=True, timeout=LONG, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def survives(tree: Path, mutant: Mutant) -> bool:
    """Whether every test passes with the mutant in place; the sources are as they were afterwards."""
    file = tree / "rushes" / mutant.file
    before = file.read_bytes()
    file.write_text(text_of(mutant), "utf-8")
    try:
        return all(passes(tree, tests) for tests in tests_for(mutant.file))
    finally:
        file.write_bytes(before)


def harmless() -> dict[str, str]:
    """Mutants that change nothing that anybody could see, and why."""
    entries = tomllib.loads(HARMLESS.read_text("utf-8")).get("mutant", [])
    return {entry["name"]: entry["why"] for entry in entries}


def main() -> int:
    """Try so many mutants; 1 if too many survive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=420)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--room", action="append", choices=ROOMS, help="only this one; may be repeated")
    parser.add_argument("--list", action="store_true", help="name them and try none")
    options = parser.parse_args()
    known = harmless()
    mutants = [m for m in chosen(options.count, options.seed, options.room or [*ROOMS]) if m.name not in known]
    if options.list:
        print("\n".join(f"{m.file}:{m.line}  {m.name}" for m in mutants))
        return 0
    tried: Counter[str] = Counter()
    noticed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        shutil.copytree(ROOT / PACKAGE, tree / "rushes", ignore=shutil.ignore_patterns("__pycache__"))
        for tests in {tests for m in mutants for tests in tests_for(m.file)}:
            if not passes(tree, tests):
                raise SystemExit(f"these fail without any mutant: {tests}")
        for mutant in mutants:
            alive = survives(tree, mutant)
            tried[mutant.room] += 1
            noticed[mutant.room] += not alive
            if alive:
                print(f"survived: {mutant.file}:{mutant.line}  {mutant.name}", flush=True)
    for room in tried:
        print(f"{room:<8} {noticed[room]:>4} of {tried[room]:>4} noticed")
    share = noticed.total() / max(1, tried.total())
    print(f"seed {options.seed}: {noticed.total()} of {tried.total()} noticed, {share:.0%}; {len(known)} harmless")
    return int(share < ENOUGH)


if __name__ == "__main__":
    sys.exit(main())
