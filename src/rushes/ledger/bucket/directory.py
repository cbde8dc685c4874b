"""Which film a job belongs to, and which ledger answers for it: the working copy of one that is held, else a copy."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from rushes.domain.errors import NotFound
from rushes.domain.keys import parse_task_id
from rushes.ledger import rules
from rushes.ledger.bucket.copies import Copies
from rushes.ledger.bucket.film import Film
from rushes.ledger.bucket.films import Films
from rushes.ledger.sqlite import SqliteLedger

T = TypeVar("T")


class Directory:
    """The films of a bucket, as one process finds them."""

    def __init__(self, films: Films, copies: Copies) -> None:
        self._films, self._copies = films, copies
        self.names: dict[str, str] = {}  # the film of a job

    @property
    def films(self) -> Collection[str]:
        """Every film."""
        return dict.fromkeys([*self._copies.names(), *(film.name for film in self._films)])

    @property
    def locked(self) -> Collection[str]:
        """Those that somebody holds, we or others."""
        self._copies.names()
        return {film.name for film in self._films} | self._copies.locks.keys()

    def readers(self, films: Collection[str] | None = None) -> Iterator[tuple[str, SqliteLedger]]:
        """These films (else all) with the ledger that readers ask. Only the last ones stay open: ask one by one."""
        for name in self.films if films is None else films:
            if ledger := self._ledger(name):
                yield name, ledger

    def moving(self, cursors: Mapping[str, str]) -> Collection[str]:
        """Films in which something may have changed after these cursors, as is known without opening them."""
        return [
            name
            for name in self.films
            if self._films.held(name) or not self._copies.is_quiet(name, cursors.get(name, ""))
        ]

    def reader(self, job: str) -> SqliteLedger | None:
        """The ledger that knows a job, None if none does."""
        return self._ledger(self.name(job))

    def name(self, job: str) -> str:
        """The film of a job, "" if it is not known here."""
        try:
            return self.find(job)
        except NotFound:
            return ""

    def find(self, job: str) -> str:
        """The film of a job.

        Raises:
            NotFound: no such job.
        """
        if job not in self.names:
            ours = ((film.name, film.ledger) for film in self._films)  # first: no database is fetched for them
            name = next((name for name, ledger in chain(ours, self.readers()) if _has(ledger, job)), None)
            if name is None:
                raise rules.no_job(job)
            self.names[job] = name
        return self.names[job]

    def held(self, job: str) -> Film | None:
        """The film of a job, if it is ours."""
        name = self.name(job)
        return self._films.held(name) if name else None

    def held_of_task(self, task: str) -> Film | None:
        """The film of a task, if it is ours."""
        return self.held(job_of(task))

    def by_film(self, items: Iterable[T], task_of: Callable[[T], str]) -> list[tuple[Film, list[T]]]:
        """What is about films that are ours, film by film."""
        groups: dict[str, list[T]] = defaultdict(list)
        for item in items:
            groups[self.name(job_of(task_of(item)))].append(item)
        return [(film, some) for name, some in groups.items() if (film := self._films.held(name))]

    def _ledger(self, name: str) -> SqliteLedger | None:
        film = self._films.held(name)
        return film.ledger if film else self._copies.ledger(name)


def _has(ledger: SqliteLedger, job: str) -> bool:
    try:
        ledger.job(job)
    except NotFound:
        return False
    return True


def job_of(task: str) -> str:
    """The job of a task, "" if that is no task's id."""
    try:
        return parse_task_id(task)[0]
    except ValueError:
        return ""
