"""Rates are learnt from what was done, once for each task, and outlive the index."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rushes.blobs.folder import FolderBlobs
from rushes.domain.errors import NotFound
from rushes.estimates import rates
from rushes.estimates.rates import KIND, RateHistory
from rushes.index.changes import Reset
from rushes.index.sqlite import SqliteIndex
from rushes.ledger.memory import MemoryLedger
from rushes.records.port import Conflict
from rushes.records.sqlite import SqliteRecords
from tests.unit.index_kit import Studio, line


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    index = SqliteIndex(tmp_path / "index.sqlite")
    yield Studio(MemoryLedger(), FolderBlobs(tmp_path / "files"), SqliteRecords(Path(":memory:")), index)
    index.close()


@pytest.fixture
def history(studio: Studio) -> RateHistory:
    return RateHistory(studio.ledger, studio.records, studio.blobs, "anna")


def test_rates_are_learnt_from_what_was_done(studio: Studio, history: RateHistory) -> None:
    studio.open("job_a")
    studio.chunk("job_a", 1, line("word", 61))
    found = history.of(["probe", "transcribe", "develop"], "arm-4")
    (rate,) = found["transcribe"]
    assert (rate.machine, rate.seconds, rate.media_seconds, rate.pixels) == ("arm-4", 2.5, 60.0, 100)
    assert rate.size > 0
    assert found["probe"][0].media_seconds == 180.0
    assert found["develop"] == []
    assert history.of(["transcribe"], "x86-2") == {"transcribe": []}


def test_a_task_counts_once_and_a_new_one_comes_first(studio: Studio, history: RateHistory) -> None:
    studio.open("job_a")
    studio.chunk("job_a", 0, line("word", 1))
    first = history.of(["transcribe"], "arm-4")["transcribe"]
    studio.chunk("job_a", 1, line("word", 61))
    found = history.of(["transcribe"], "arm-4")["transcribe"]
    assert len(found) == 2
    assert found[1:] == first
    assert found == sorted(found, key=lambda rate: (rate.at, rate.task), reverse=True)


def test_only_the_newest_are_kept(studio: Studio, history: RateHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "NEWEST_TASKS", 2)
    studio.open("job_a")
    for n in range(3):
        studio.chunk("job_a", n, line("word", n * 60))
        history.learn()
    kept = history.of(["transcribe"], "arm-4")["transcribe"]
    assert [rate.task for rate in kept] == ["job_a.transcribe.00002", "job_a.transcribe.00001"]


def test_a_long_film_does_not_drive_out_the_others(
    studio: Studio, history: RateHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "NEWEST_TASKS", 3)
    monkeypatch.setattr(rates, "OF_A_FILM", 2)
    for job, chunks in (("job_a", 1), ("job_b", 3)):
        studio.open(job)
        for n in range(chunks):
            studio.chunk(job, n, line("word", n * 60))
    kept = [rate.task for rate in history.of(["transcribe"], "arm-4")["transcribe"]]
    assert kept == ["job_b.transcribe.00002", "job_b.transcribe.00001", "job_a.transcribe.00000"]


def test_nothing_is_read_again_while_nothing_changes(
    studio: Studio, history: RateHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio.open("job_a")
    history.learn()
    monkeypatch.setattr(MemoryLedger, "events", _fail)
    assert len(history.of(["probe"], "arm-4")["probe"]) == 1


def test_they_outlive_the_index(studio: Studio, history: RateHistory) -> None:
    studio.open("job_a")
    before = history.of(["probe"], "arm-4")
    studio.index.apply(Reset())
    studio.follower.reindex()
    assert history.of(["probe"], "arm-4") == before


def test_of_two_that_learn_at_once_one_wins_and_nothing_is_lost(
    studio: Studio, history: RateHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio.open("job_a")
    with monkeypatch.context() as patch:
        patch.setattr(SqliteRecords, "put", _conflict)
        assert history.of(["probe"], "arm-4") == {"probe": []}
    assert len(history.of(["probe"], "arm-4")["probe"]) == 1


def test_a_job_that_is_gone_and_a_result_that_is_damaged_do_no_harm(
    studio: Studio, history: RateHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio.open("job_a")
    studio.chunk("job_a", 0, line("word", 1))
    for key in list(studio.blobs.keys("results/")):
        studio.blobs.delete(key)
    (rate,) = history.of(["transcribe"], "arm-4")["transcribe"]
    assert rate.size == 0
    studio.open("job_b")
    monkeypatch.setattr(MemoryLedger, "job", _missing)
    assert history.of(["transcribe"], "arm-4")["transcribe"] == [rate]
    assert studio.records.get(KIND, "anna", "cursor") is not None


def _fail(*_some: object, **_more: object) -> None:
    raise AssertionError("asked again")


def _conflict(*_some: object, **_more: object) -> None:
    raise Conflict


def _missing(*_some: object, **_more: object) -> None:
    raise NotFound("gone")
