"""Every threat of the security page has a test, and that test is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
ROWS = [line for line in PAGE.partition("## Threats")[2].splitlines() if line.startswith("| ")][1:]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)` \|$")


def test_the_table_has_its_threats() -> None:
    assert len(ROWS) >= 40
    assert len({row.split("|")[1] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_a_threat_names_a_test_that_is_there(row: str) -> None:
    found = NAMED.search(row)
    assert found, row
    tree = ast.parse((ROOT / found[1]).read_text("utf-8"))
    assert found[2] in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_whoever_finds_a_hole_is_told_where_to_report_it() -> None:
    assert "docs/security.md" in (ROOT / "SECURITY.md").read_text("utf-8")
    assert "SECURITY.md" in PAGE
