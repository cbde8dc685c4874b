"""Small mistakes that people make, one at a time: what may stand for an expression or a statement instead."""

import ast
import copy
import functools
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/rushes")
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
    runs: tuple[int, int]  # one of these lines runs when its statement does, from the first to the last
    before: str
    after: str
    number: int  # in its file
    nth: int  # of those that read the same

    @property
    def name(self) -> str:
        """Stays when lines move."""
        nth = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.file} {self.function}: {self.before} -> {self.after}{nth}"

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
@functools.cache
def mutants_of(room: str) -> list[Mutant]:
    """Every mutant of a room."""
    files = [str(file.relative_to(ROOT / PACKAGE)) for file in sorted((ROOT / PACKAGE / room).rglob("*.py"))]
    return [mutant for file in files for mutant, _ in _mutated(file)]


def text_of(mutant: Mutant) -> str:
    """Its file with the change in it."""
    _, tree = next(islice(_mutated(mutant.file), mutant.number, None))
    return ast.unparse(tree)


def _mutated(file: str) -> Iterator[tuple[Mutant, ast.AST]]:
    """Each mutant of a file, and the tree with its change in it until the next one."""
    tree, numbers, same = ast.parse((ROOT / PACKAGE / file).read_text("utf-8")), count(), Counter[str]()
    for function, runs, parent, field, index in _sites(tree):
        node = _get(parent, field, index)
        for changed in changes(node):
            before, after = _short(node), _short(changed)
            same[name := f"{function} {before} {after}"] += 1
            _set(parent, field, index, changed)
            yield Mutant(file, function, _line(node, parent), runs, before, after, next(numbers), same[name]), tree
            _set(parent, field, index, node)


_Site = tuple[str, tuple[int, int], ast.AST, str, int | None]


def _sites(tree: ast.AST, function: str = "", runs: tuple[int, int] = (0, 0)) -> Iterator[_Site]:
    """Every place in functions and classes where a node stands: what its statement runs, what it belongs to, where."""
    for field, value in ast.iter_fields(tree):
        if field in ("decorator_list", "annotation", "returns", "type_params", "slice"):
            continue  # notes for readers and type checkers; a slice that is one off is seldom a slip
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST):
                continue
            inside, inner = function, _runs(child, tree) or runs
            if isinstance(child, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                inside = f"{function}.{child.name}".strip(".")
            if function:
                yield function, inner, tree, field, index
            yield from _sites(child, inside, inner)


def _runs(node: ast.AST, parent: ast.AST) -> tuple[int, int] | None:
    """The lines of which one runs when a statement does: its head; for defaults the function, for fields the file."""
    match node, parent:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef(), _:
            return node.lineno, node.end_lineno or node.lineno
        case ast.stmt(), ast.ClassDef():
            return 1, sys.maxsize
        case ast.Match(cases=[first, *_]), _:
            return node.lineno, first.body[0].lineno
        case ast.stmt(), _:
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or 0
            return node.lineno, max(node.lineno, last)
    return None


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
        every = mutants_of(room)
        share = total * (n + 1) // len(rooms) - total * n // len(rooms)
        found += chance.sample(every, min(share, len(every)))
    return found
