"""The mutation run: it finds its tests, makes one change at a time, and the same ones for the same seed."""

import ast

import pytest
from proof import mutants


@pytest.mark.parametrize("tests", sorted({tests for some in mutants.TESTS.values() for tests in some}))
def test_every_test_that_is_named_exists(tests: str) -> None:
    for pattern in tests.partition(" -k ")[0].split():
        assert list(mutants.ROOT.glob(pattern)), pattern


def test_a_seed_names_the_same_mutants_of_every_room() -> None:
    once, again, other = (mutants.chosen(14, seed, [*mutants.ROOMS]) for seed in (1, 1, 2))
    assert once == again != other
    assert {mutant.room for mutant in once} == set(mutants.ROOMS)
    assert all(mutants.tests_for(mutant.file) for mutant in once)


def test_a_mutant_is_one_change_of_its_file() -> None:
    for mutant in mutants.chosen(7, 3, [*mutants.ROOMS]):
        before = ast.unparse(ast.parse((mutants.ROOT / mutants.PACKAGE / mutant.file).read_text("utf-8"))).splitlines()
        after = mutants.text_of(mutant).splitlines()
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
    assert [ast.unparse(one) for one in mutants.changes(node)] == changed


def test_every_harmless_mutant_has_its_reason() -> None:
    assert all(why for why in mutants.harmless().values())
