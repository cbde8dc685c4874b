"""Whoever reads the films of a bucket home: as many as there are, and no more work than what has changed."""

import pytest
from bucket_machines import FILM, OTHER, Machines, begin
from ledger_kit import first_of, new_job

from rushes.domain.job import JobCommand
from rushes.ledger.bucket import copies
from rushes.ledger.pages import every


def test_a_reader_of_more_films_than_it_may_open_sees_them_all(
    machine: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each copy is three files, and a process has often 1024."""
    monkeypatch.setattr(copies, "_most_open", lambda: 2)
    a, reader = machine("a"), machine("reader")
    films = [new_job(f"film{n}") for n in range(5)]
    for new in films:
        begin(a, new)
    a.ledger.films.store_changes()
    read = reader.ledger
    ids = {new.id for new in films}
    assert {job.id for job in read.jobs("ann").rows} == {job.id for job in read.jobs("ann", ids=ids).rows} == ids
    tasks = [task.id for task in every(lambda cursor: read.tasks(cursor=cursor, limit=3))]
    assert len(tasks) == len({*tasks}) == 25
    assert {row.id for row in read.tasks(ids=tasks[:8]).rows} == {*tasks[:8]}
    assert {*read.changed()[0]} == ids
    assert sum(count.ready for count in read.counts()) == 15
    assert [worker.incarnation.id for worker in read.workers()] == ["a"]
    assert len(read._copies._copies) == 2


def test_who_looks_for_changes_opens_no_film_that_is_as_it_was(
    machine: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server looks four times a second."""
    a, reader = machine("a"), machine("reader")
    for new in (FILM, OTHER):
        a.ledger.submit(new, first_of(new))
    _, cursor = reader.ledger.changed()
    assert reader.ledger.changed(cursor) == ((), cursor)
    asked, real = list[str](), copies.CopiedLedger.changed

    def changed(self: copies.CopiedLedger, cursor: str = "") -> tuple[tuple[str, ...], str]:
        asked.append(cursor)
        return real(self, cursor)

    monkeypatch.setattr(copies.CopiedLedger, "changed", changed)
    assert reader.ledger.changed(cursor) == ((), cursor)
    assert asked == []
    assert len(reader.ledger.changed()[0]) == 2, "from the beginning"
    a.ledger.control(FILM.id, JobCommand.CANCEL)
    reader.clock.advance(10)
    assert reader.ledger.changed(cursor)[0] == (FILM.id,)


def test_a_copy_that_is_fetched_while_an_older_one_is_asked_is_not_taken_for_quiet(
    machine: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, reader = machine("a"), machine("reader")
    a.ledger.submit(FILM, first_of(FILM))
    _, cursor = reader.ledger.changed()
    real = copies.CopiedLedger.changed

    def changed(self: copies.CopiedLedger, cursor: str = "") -> tuple[tuple[str, ...], str]:
        """Another thread looks just now, and sees what came."""
        found = real(self, cursor)
        monkeypatch.setattr(copies.CopiedLedger, "changed", real)
        a.ledger.control(FILM.id, JobCommand.CANCEL)
        reader.clock.advance(10)
        reader.ledger.job(FILM.id)
        return found

    monkeypatch.setattr(copies.CopiedLedger, "changed", changed)
    assert reader.ledger.changed(cursor) == ((), cursor)
    assert reader.ledger.changed(cursor)[0] == (FILM.id,)
