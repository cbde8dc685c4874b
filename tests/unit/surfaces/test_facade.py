"""Surfaces ask the library: none of them reaches through it into the stores of a home."""

import ast
from pathlib import Path

import pytest

import rushes.surfaces

ROOM = Path(rushes.surfaces.__file__).parent


def reached(tree: ast.AST) -> list[str]:
    """What is asked of a home itself, like `library.home.ledger`; handing the home on to the library is no reach."""
    chains = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Attribute)]
    return [ast.unparse(n) for n in chains if isinstance(n.value, ast.Attribute) and n.value.attr == "home"]


@pytest.mark.parametrize("file", sorted(ROOM.rglob("*.py")), ids=lambda f: str(f.relative_to(ROOM)))
def test_a_surface_reaches_nothing_below_the_library(file: Path) -> None:
    assert reached(ast.parse(file.read_text("utf-8"))) == []


def test_a_reach_is_seen() -> None:
    assert reached(ast.parse("library.home.ledger.jobs()")) == ["library.home.ledger"]
    assert reached(ast.parse("Requests(library.home)")) == []
