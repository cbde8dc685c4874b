"""What a slot says of its task is believed within limits: it runs code of others on files of others."""

import json

import pytest

from rushes.worker.broker.answers import parse_answer


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
