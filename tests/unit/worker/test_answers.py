"""What a slot says of its task is believed within limits: it runs code of others on files of others."""

import json
from collections.abc import Collection

import pytest

from rushes.domain.errors import BadMedia, Drained, LeaseLost, NoRoom, RushesError, SourceMissing, StoreAway, TryAgain
from rushes.domain.keys import JSON
from rushes.worker.broker.answers import parse_answer
from rushes.worker.broker.failures import failure_of


@pytest.mark.parametrize(("said", "meant"), [("0.5", 0.5), ("7", 1.0), ("-1", 0.0), ("1e308", 1.0)])
def test_progress_is_a_part_of_the_whole(said: str, meant: float) -> None:
    assert parse_answer(b'{"type": "progress", "fraction": %s}' % said.encode())["fraction"] == meant


@pytest.mark.parametrize("said", ["NaN", "Infinity", "-Infinity", "1e999", '"nan"'])
def test_progress_that_is_no_number_is_dropped(said: str) -> None:
    assert parse_answer(b'{"type": "progress", "fraction": %s}' % said.encode()) is None


@pytest.mark.parametrize(
    ("said", "meant"), [("2.5", 2.5), ("NaN", 0.0), ("Infinity", 0.0), ("-3", 0.0), ("1e300", 604800.0)]
)
def test_the_time_that_a_task_took_is_a_time(said: str, meant: float) -> None:
    assert parse_answer(b'{"type": "finished", "seconds": %s}' % said.encode())["seconds"] == meant


@pytest.mark.parametrize("said", [{"type": "adopted"}, {"type": "exited", "code": 0}, {"type": "not_sent"}, {}, [], 1])
def test_a_slot_cannot_say_what_only_its_worker_says(said: object) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        parse_answer(json.dumps(said).encode())


def failed(error: RushesError, told: Collection[str] = (), **lies: object) -> JSON:
    return parse_answer(json.dumps({**failure_of(error), **lies}).encode(), told)


@pytest.mark.parametrize("error", [TryAgain("later"), BadMedia("no film", "Bring a film."), NoRoom("full")])
def test_an_honest_failure_is_believed_as_it_is(error: RushesError) -> None:
    assert failed(error).items() >= failure_of(error).items()


@pytest.mark.parametrize("error", [StoreAway("away"), LeaseLost("lost"), Drained("stop"), SourceMissing("gone")])
def test_what_only_a_worker_knows_is_believed_if_it_has_said_so(error: RushesError) -> None:
    kind = type(error).__name__
    assert failed(error, told=[kind]).items() >= failure_of(error).items()
    assert failed(error, told=["BadMedia"]).items() >= {"kind": "TryAgain", "final": False, "counts": True}.items()


@pytest.mark.parametrize("kind", ["ZeroDivisionError", "BadMedia", "is_final", "__doc__", ""])
def test_only_a_known_kind_of_failure_is_not_counted(kind: str) -> None:
    assert failed(NoRoom("full"))["counts"] is False
    assert failed(NoRoom("full"), kind=kind)["counts"] is True


def test_whether_a_failure_is_final_is_told_by_its_kind() -> None:
    assert failed(TryAgain("later"), final=True)["final"] is False
    assert failed(BadMedia("no film"), final=False, counts=False).items() >= {"final": True, "counts": True}.items()
    assert failed(TryAgain("later"), kind="OfAnotherPackage", final=True)["final"] is True


@pytest.mark.parametrize("name", ["kind", "message", "hint", "verdict"])
def test_the_words_of_a_failure_are_short_and_without_secrets(name: str) -> None:
    said = "password=hunter22 " + "x" * 100_000
    told = failed(TryAgain("later"), (), **{name: said})[name]
    assert len(told) <= 2000
    assert "hunter22" not in told


@pytest.mark.parametrize("name", ["kind", "message", "hint", "verdict"])
@pytest.mark.parametrize("said", [None, 1, ["text"], {"a": "text"}])
def test_a_failure_is_told_in_words(name: str, said: object) -> None:
    with pytest.raises(TypeError, match="must be a string"):
        failed(TryAgain("later"), (), **{name: said})


@pytest.mark.parametrize("name", ["final", "replace", "counts"])
def test_what_is_neither_yes_nor_no_makes_a_failure_that_counts(name: str) -> None:
    told = failed(TryAgain("later"), (), **{name: "perhaps"})
    assert (told["final"], told["replace"], told["counts"]) == (False, False, True)
