"""A sample of the corpus: refused with a reason, or right frames; `scripts/prove hostile` tries all of it."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.corpus import corpus
from tests.hostile.trial import Trap, trap, try_case

SEED = 1
CORPUS = {case.name: case for case in corpus(SEED)}
QUICK = sorted(name for name in CORPUS if "0_tags" not in name and "tags_of" not in name)
CHOSEN = random.Random(SEED).sample(QUICK, 40)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trap]:
    with trap(tmp_path_factory.mktemp("trap") / "private") as made:
        yield made


@pytest.mark.parametrize("name", CHOSEN)
def test_an_input_is_refused_with_a_reason_or_its_frames_are_right(name: str, tmp_path: Path, watched: Trap) -> None:
    assert try_case(CORPUS[name], tmp_path / "x", watched).wrong == ()


def test_the_corpus_has_at_least_300_inputs() -> None:
    assert len(CORPUS) >= 300


def test_the_trap_notices_who_opens_a_foreign_file(watched: Trap) -> None:
    watched.sprung()
    watched.lure.text.read_bytes()
    assert watched.sprung() == ["a foreign file was opened"]
