"""The mutation run: it finds its tests, makes one change at a time, and the same ones for the same seed."""

import ast
import sys
from pathlib import Path

import pytest
from proof import mutants, mutations
from proof.line_coverage import Executed


@pytest.mark.parametrize("path", [*mutants.TESTS, *(path for far in mutants.FAR.values() for path in far)])
def test_every_test_that_is_named_exists(path: str) -> None:
    assert (mutations.ROOT / path).exists()


def test_a_seed_names_the_same_mutants_of_every_room() -> None:
    once, again, other = (mutations.chosen(14, seed, [*mutations.ROOMS]) for seed in (1, 1, 2))
    assert once == again != other
    assert {mutant.room for mutant in once} == set(mutations.ROOMS)


def test_a_mutant_is_one_change_of_its_file() -> None:
    for mutant in mutations.chosen(7, 3, [*mutations.ROOMS]):
        before = ast.unparse(
            ast.parse((mutations.ROOT / mutations.PACKAGE / mutant.file).read_text("utf-8"))
        ).splitlines()
        after = mutations.text_of(mutant).splitlines()
        assert before != after
        ast.parse("\n".join(after))


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("a < b", ["a <= b"]),
        ("a is None", ["a is not None"]),
        ("a and b", ["a or b"]),
        ("not a", ["a"]),
        ("a + b", ["a - b"]),
        ("True", ["False"]),
        ("3", ["4"]),
        ("'text' + a", []),
        ("'text'", []),
    ],
)
def test_a_slip_is_one_that_people_make(code: str, changed: list[str]) -> None:
    node = ast.parse(code, mode="eval").body
    assert [ast.unparse(one) for one in mutations.changes(node)] == changed


def test_every_harmless_mutant_has_its_reason() -> None:
    assert all(why for why in mutants.harmless().values())


def _mutant(runs: tuple[int, int]) -> mutations.Mutant:
    return mutations.Mutant("plan/grid.py", "grid", runs[0], runs, "1", "2", 0, 1)


def test_a_mutant_is_tried_with_the_tests_that_execute_it_until_they_take_too_long(tmp_path: Path) -> None:
    lines = {"plan/grid.py": frozenset({15})}
    tests = [Executed("a", 0.1, lines), Executed("b", 0.2, {"plan/grid.py": frozenset({16})})]
    tests += [Executed("c", mutants.LONG, lines), Executed("d", mutants.LONG, lines)]
    trial = mutants.Trial(tmp_path, tests)
    assert [test.test for test in trial.tests_for(_mutant((10, 15)))] == ["a", "c"]
    assert [test.test for test in trial.tests_for(_mutant((16, 16)))] == ["b"]


@pytest.mark.parametrize(
    ("code", "runs"),
    [
        ("def f(a=1):\n    return a\n", (1, 2)),
        ("class C:\n    a = 1\n", (1, sys.maxsize)),
        ("def f():\n    if (\n        1\n    ):\n        pass\n", (2, 4)),
        ("def f():\n    return (\n        1\n    )\n", (2, 4)),
    ],
)
def test_it_is_known_which_lines_run_when_a_mutant_does(code: str, runs: tuple[int, int]) -> None:
    found = [
        lines
        for _, lines, parent, name, index in mutations._sites(ast.parse(code))
        if isinstance(mutations._get(parent, name, index), ast.Constant)
    ]
    assert found == [runs]
