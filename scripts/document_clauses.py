"""docs/documents.md: the clauses of the design documents with the tests that show them, and what was decided."""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests" / "conformance"
PLACES = (ROOT / "src" / "rushes", ROOT)  # where the files lie that hold a clause
NOTE = "<!-- Made by scripts/make_reference.py from tests/conformance; change it there. -->\n"
WORDS = (
    "Five design documents stand behind rushes. A client for each was written from its text alone; `tests/conformance` "
    "runs them against a real server with a real worker. A row is a clause, the file that holds it (in `src/rushes` or "
    "`infra`), and the test that shows it. How to add one: [tests/conformance](../tests/conformance/README.md).\n"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a document: where it stands in it, in our words, what holds it and what shows it."""

    place: str
    words: str
    where: tuple[str, ...]
    test: str


def page() -> str:
    """The whole page."""
    parts = ["# The design documents, clause by clause\n", NOTE, WORDS]
    for folder in sorted(file.parent for file in TESTS.glob("*/decided.toml")):
        parts += _document(folder)
    return "\n".join(parts)


def _document(folder: Path) -> Iterator[str]:
    told = tomllib.loads((folder / "decided.toml").read_text("utf-8"))
    clauses = [clause for file in sorted(folder.glob("test_*.py")) for clause in clauses_of(file)]
    yield f"## {told['title']}\n"
    yield f"Clauses shown by `tests/conformance/{folder.name}`: {len(clauses)}.\n"
    if clauses:
        yield table(("place", "clause", "where", "test"), [_row(clause) for clause in clauses])
    if decided := told.get("decided", []):
        yield "Decided differently:\n"
        yield table(("clause", "what rushes does", "why"), [_decision(one) for one in decided])


def clauses_of(file: Path) -> Iterator[Clause]:
    """The clauses that the tests of a file show, in its order.

    Raises:
        ValueError: a test does not name its clause, or what holds it, or that is not there.
    """
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield _clause(file, node)


def _clause(file: Path, node: ast.FunctionDef) -> Clause:
    test = f"{file.parent.name}/{file.name}::{node.name}"
    first, _, rest = (ast.get_docstring(node) or "").partition("\n")
    place, colon, words = first.partition(": ")
    if not (place and colon and words):
        raise ValueError(f"{test}: its docstring begins with 'place in the document: the clause'")
    lines = (line.partition("Where: ")[2] for line in rest.splitlines() if line.startswith("Where: "))
    where = tuple(name.strip() for line in lines for name in line.split(","))
    if not where:
        raise ValueError(f"{test}: its docstring has a line 'Where: the file that holds it'")
    if missing := [name for name in where if not any((place / name).exists() for place in PLACES)]:
        raise ValueError(f"{test}: not below src/rushes: {', '.join(missing)}")
    return Clause(place, words.strip(), where, test)


def _row(clause: Clause) -> tuple[str, ...]:
    return clause.place, clause.words, ", ".join(f"`{name}`" for name in clause.where), f"`{clause.test}`"


def _decision(one: dict[str, Any]) -> tuple[str, ...]:
    return one["clause"], one["instead"], one["why"]


def table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table of Markdown; what is in a cell cannot break it."""
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |\n" for row in lines)
