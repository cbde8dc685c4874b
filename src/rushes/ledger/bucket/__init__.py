"""The ledger in a bucket, without a server: a SQLite database for each film, worked on by whoever holds its lock.

Results are acknowledged when their manifest is in the bucket. A database that is late is repaired by adoption.
"""

import contextlib
import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from rushes.bucket.conditional import ConditionalBucket
from rushes.domain.errors import LeaseLost, NotFound, StoreAway, TryAgain, WrongHome
from rushes.domain.event import Event, EventType
from rushes.domain.job import Job, JobCommand, JobState, NewJob
from rushes.domain.result import Result
from rushes.domain.task import Draft, Failure, Finish, Lease, LeaseStatus, Task, TaskState, Verdict
from rushes.domain.worker import Incarnation, Worker
from rushes.files import make_private
from rushes.ledger import process, rules
from rushes.ledger.bucket import merged
from rushes.ledger.bucket.copies import Copies
from rushes.ledger.bucket.directory import Directory, job_of
from rushes.ledger.bucket.film import Film, IsGone
from rushes.ledger.bucket.films import STORE_SECONDS, Films
from rushes.ledger.bucket.mailbox import FilmRequest
from rushes.ledger.bucket.verbs import answering, guarded, looking
from rushes.ledger.clock import Millis, Seconds, awake_seconds, wall_millis
from rushes.ledger.counts import add_up
from rushes.ledger.port import Arrival, Completed, Debt, Page, Renewed, StageCount, Submitted, SweepResult
from rushes.ledger.sqlite import SqliteLedger

T = TypeVar("T")
_BY_REQUEST = (JobCommand.PAUSE, JobCommand.PAUSE_NOW, JobCommand.RESUME, JobCommand.CANCEL, JobCommand.PRIORITY)
MOST_FILMS = 8  # that one process works on at the same time


def _ledger(reader: tuple[str, SqliteLedger]) -> SqliteLedger:
    return reader[1]


class BucketLedger:
    """Jobs, tasks, leases, results, events and workers in one SQLite database per film; see `films` for who writes."""

    batch = 500
    finds_next = True

    def __init__(
        self,
        bucket: ConditionalBucket,
        folder: Path,
        me: Incarnation,
        film_of: Callable[[NewJob], str],
        film_of_key: Callable[[str], str],
        *,
        clock: Seconds = awake_seconds,
        wall: Millis = wall_millis,
        ledger_clock: Seconds | None = None,
        is_gone: IsGone = process.is_gone,
        places: Mapping[str, str] | None = None,
        store_seconds: float = STORE_SECONDS,
    ) -> None:
        """`me` is this process, `folder` is where its machine keeps working copies.

        `film_of` names the film that a job is about, `film_of_key` the film that an uploaded key is.
        """
        make_private(folder)
        workers = folder / "workers.sqlite"  # rows of this machine's workers, whether they hold a film or not
        self._here = SqliteLedger(workers, clock=ledger_clock, wall=wall, is_gone=is_gone, take_over=True)
        self._copies = Copies(bucket, folder / "copies", clock)
        self.films = Films(
            bucket,
            folder / "films",
            me,
            self._copies,
            self._here,
            clock=clock,
            wall=wall,
            ledger_clock=ledger_clock,
            is_gone=is_gone,
            places=places or {},
            store_seconds=store_seconds,
        )
        self._directory = Directory(self.films, self._copies)
        self._film_of, self._film_of_key = film_of, film_of_key
        self.at_work = False
        self._idle: frozenset[str] = frozenset()  # films on which nothing ran when the lock was last renewed

    def for_work(self) -> "BucketLedger":
        """The same for a worker: of results it knows those of films that it holds, and no other film is fetched for it.

        The manifests in the bucket tell a worker the rest.
        """
        view = copy.copy(self)
        view.at_work = True
        return view

    # Taking in
    @guarded
    def submit(self, new: NewJob, first: Draft) -> Submitted:
        name = self._directory.names[new.id] = self._film_of(new)  # the only one that may have it: no other is fetched
        self._do_requests(name)
        try:
            known = self.job(new.id)
        except NotFound:
            return self._steer(name, lambda film: film.ledger.submit(new, first))
        if (film := self.films.held(name)) and film.changed:  # the bucket may not know it yet: it did not answer
            self.films.store(film)
        return Submitted(known, created=False)

    @guarded
    def draft(self, job: str, task: str, fence: int, tasks: Sequence[Draft], facts: str) -> Verdict:
        film = self._directory.held(job)
        return film.ledger.draft(job, task, fence, tasks, facts) if film else Verdict.LOST

    @guarded
    def arrived(self, key: str, etag: str) -> Arrival:
        return self._steer(self._film_of_key(key), lambda film: film.ledger.arrived(key, etag))

    # Working
    @guarded
    def claim(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str] = ()) -> tuple[Lease, ...]:
        self._here.claim(worker, lanes, n)  # raises if its row is over
        if hinted:
            return self._claim_hinted(worker, lanes, n, hinted)
        leases: list[Lease] = []
        with answering(leases):
            for film in self.films:
                leases += film.claim(worker, lanes, n - len(leases)) if len(leases) < n else ()
            if not leases and (film_taken := self._next_film()):
                leases += film_taken.claim(worker, lanes, n)
        return tuple(leases)

    @guarded
    def renew(
        self, worker: Incarnation, holding: Mapping[str, int], progress: Mapping[str, float], note: str = ""
    ) -> Renewed:
        self.films.workers[worker.id] = worker
        here = self._here.renew(worker, {}, {}, note)
        leases, drain, gone = dict.fromkeys(holding, LeaseStatus.LOST), here.drain, here.gone
        self._look()
        for film in self.films:
            if self.films.keep(film):
                mine = {task: fence for task, fence in holding.items() if self._directory.held_of_task(task) is film}
                reply = film.ledger.renew(
                    worker, mine, {task: progress[task] for task in mine if task in progress}, note
                )
                leases |= reply.leases
                drain, gone = drain or reply.drain, gone or reply.gone
        self._release_idle()
        return Renewed(leases, drain, gone)

    @guarded
    def complete(self, worker: str, finishes: Sequence[Finish]) -> Completed:
        verdicts, ready = dict.fromkeys(finishes, Verdict.LOST), list[str]()
        for film, some in self._directory.by_film(finishes, lambda finish: finish.task):
            reply = film.ledger.complete(worker, some)
            verdicts |= dict(zip(some, reply.verdicts, strict=True))
            ready += reply.ready
            self.films.written(film)
        return Completed(tuple(verdicts[finish] for finish in finishes), tuple(ready))

    @guarded
    def fail(self, worker: str, task: str, fence: int, failure: Failure, delay: float | None) -> Verdict:
        film = self._directory.held_of_task(task)
        if film is None:
            return Verdict.LOST
        verdict = film.ledger.fail(worker, task, fence, failure, delay)
        self.films.written(film)
        return verdict

    @guarded
    def give_back(self, worker: str, held: Sequence[tuple[str, int]], reason: str, delay: float = 0.0) -> None:
        for film, some in self._directory.by_film(held, lambda pair: pair[0]):
            film.ledger.give_back(worker, some, reason, delay)
            self.films.written(film)

    @guarded
    def sweep(self, limit: int = 500, paid: Sequence[Debt] = ()) -> SweepResult:
        swept = [self._here.sweep(limit)]
        for film in self.films:
            mine = [debt for debt in paid if self._directory.name(debt.job) == film.name]
            found = film.ledger.sweep(limit, mine)
            if mine or found.released:
                self.films.written(film)
            if found.quiet:
                self.films.release(film)
            swept.append(found)
        found = merged.sweeps(swept)
        return replace(found, quiet=found.quiet and self._nothing_open())

    # Steering
    @guarded
    def control(self, target: str, command: JobCommand, value: int = 0, stages: Collection[str] = ()) -> Job | None:
        if command in (JobCommand.DRAIN, JobCommand.LEAVE):
            self._control_worker(target, command)
            return None
        asked = FilmRequest(target, command, value, stages=tuple(stages)) if command in _BY_REQUEST else None
        return self._steer(
            self._directory.find(target), lambda film: film.ledger.control(target, command, value, stages), asked
        )

    @guarded
    def revive(
        self,
        job: str,
        tasks: Collection[str] = (),
        stages: Collection[str] = (),
        again: bool = False,
        delayed: bool = False,
    ) -> tuple[str, ...]:
        asked = None if again or delayed else FilmRequest(job, tasks=tuple(tasks), stages=tuple(stages))
        name = self._directory.find(job)
        return self._steer(name, lambda film: film.ledger.revive(job, tasks, stages, again, delayed), asked)

    @looking
    def known(self, owner: str, keys: Collection[str]) -> Mapping[str, Result]:
        ledgers = [film.ledger for film in self.films] if self.at_work else map(_ledger, self._directory.readers())
        found: dict[str, Result] = {}
        for ledger in ledgers:
            found |= ledger.known(owner, keys)
        return found

    @guarded
    def set_aside(self, owner: str, keys: Collection[str], reason: str, note_only: bool = False) -> int:
        names = [name for name, ledger in self._directory.readers() if ledger.known(owner, keys)]
        return sum(
            self._steer(name, lambda film: film.ledger.set_aside(owner, keys, reason, note_only)) for name in names
        )

    @guarded
    def log(self, task: str, fence: int, first: int, lines: Sequence[str]) -> None:
        if film := self._directory.held_of_task(task):
            film.ledger.log(task, fence, first, lines)

    # Looking
    @looking
    def job(self, job: str) -> Job:
        if reader := self._directory.reader(job):
            return reader.job(job)
        raise rules.no_job(job)

    @looking
    def jobs(
        self,
        owner: str,
        state: JobState | None = None,
        oldest_first: bool = False,
        cursor: str = "",
        limit: int = 100,
        ids: Collection[str] = (),
        queue: str = "",
    ) -> Page[Job]:
        if ids:
            films = {self._directory.name(id) for id in ids}
            found = (ledger.jobs(owner, ids=ids).rows for _, ledger in self._directory.readers(films))
            return Page(tuple(job for rows in found for job in rows))
        ledgers = map(_ledger, self._directory.readers())
        return merged.jobs(ledgers, owner, state, queue, oldest_first=oldest_first, cursor=cursor, limit=limit)

    @looking
    def tasks(
        self,
        job: str = "",
        state: TaskState | None = None,
        stage: str = "",
        ids: Collection[str] = (),
        cursor: str = "",
        limit: int = 500,
    ) -> Page[Task]:
        if job:
            reader = self._directory.reader(job)
            return reader.tasks(job, state, stage, ids, cursor, limit) if reader else Page(())
        films = {self._directory.name(job_of(id)) for id in ids} if ids else self._directory.films
        return merged.tasks(films, self._directory.readers, state, stage, ids, cursor=cursor, limit=limit)

    @looking
    def events(
        self, job: str, after: int = 0, types: Collection[EventType] = (), task: str = "", limit: int = 500
    ) -> tuple[Event, ...]:
        reader = self._directory.reader(job)
        return reader.events(job, after, types, task, limit) if reader else ()

    @looking
    def changed(self, cursor: str = "") -> tuple[tuple[str, ...], str]:
        cursors, found = merged.parse_cursors(cursor), list[str]()
        for name, ledger in self._directory.readers(self._directory.moving(cursors)):
            rows, cursors[name] = ledger.changed(cursors.get(name, ""))
            found += rows
            if not (rows or self.films.held(name)):
                self._copies.note_quiet(name, ledger, cursors[name])
        return tuple(found), merged.format_cursors(cursors)

    @looking
    def workers(self) -> tuple[Worker, ...]:
        held = (ledger.workers() for _, ledger in self._directory.readers(self._directory.locked))
        return merged.workers(self._here.workers(), held)

    @looking
    def counts(self, jobs: Collection[str] = ()) -> tuple[StageCount, ...]:
        return add_up(count for _, ledger in self._directory.readers() for count in ledger.counts(jobs))

    # Beside the port
    def close(self) -> None:
        """Store and release what is held."""
        self.films.close()
        self._copies.close()
        self._here.close()

    def _claim_hinted(self, worker: str, lanes: Sequence[str], n: int, hinted: Collection[str]) -> tuple[Lease, ...]:
        leases: list[Lease] = []
        with answering(leases):
            for name in dict.fromkeys(self._directory.name(job_of(task)) for task in hinted):
                film = self._try(name) if name else None
                if film and len(leases) < n:
                    mine = [task for task in hinted if self._directory.name(job_of(task)) == name]
                    leases += film.claim(worker, lanes, n - len(leases), mine)
        return tuple(leases)

    def _look(self) -> None:
        """See what is asked of films; while the bucket is away, nothing is."""
        with contextlib.suppress(StoreAway):
            self._copies.names()

    def _next_film(self) -> Film | None:
        """Another film with work left in it, if this process can have one more."""
        held = [film.name for film in self.films]
        if len(held) >= MOST_FILMS:
            return None
        for name in self._copies.free_films():
            try:
                if name not in held and (film := self._try(name)):
                    return film
            except WrongHome as e:
                self._copies.set_damaged(name, e)
        return None

    def _do_requests(self, name: str) -> None:
        """Do what a holder that died was asked, before a newer command follows: to take a film is to do so."""
        asked = name in self._copies.names() and name in self._copies.asked
        if asked and not self.films.held(name) and (film := self._try(name)):
            self.films.release(film)

    def _release_idle(self) -> None:
        """Leave films on which nothing ran at two renewals to others, if this process is busy with another film."""
        films = [*self.films]
        idle = [film for film in films if not film.ledger.tasks(state=TaskState.LEASED, limit=1).rows]
        for film in idle if len(idle) < len(films) else ():
            if film.name in self._idle:
                with contextlib.suppress(StoreAway):  # the next renewal does it
                    self.films.release(film)
        self._idle = frozenset(film.name for film in idle)

    def _nothing_open(self) -> bool:
        """Whether no film that is not held has work left in it, as far as the last look tells."""
        return next((name for name in self._copies.open_films() if not self.films.held(name)), None) is None

    def _try(self, name: str) -> Film | None:
        try:
            return self.films.take(name)
        except LeaseLost:  # another process was quicker
            return None

    def _control_worker(self, worker: str, command: JobCommand) -> None:
        try:
            self._here.control(worker, command)
        except NotFound:
            names = [
                name
                for name, ledger in self._directory.readers(self._directory.locked)
                if any(row.incarnation.id == worker for row in ledger.workers())
            ]
            if command is JobCommand.LEAVE or not names:
                raise
            self.films.request(names[0], FilmRequest(worker, command))  # a worker drains whole, whoever tells it
        self.films.control_worker(worker, command)

    def _steer(self, name: str, verb: Callable[[Film], T], asked: FilmRequest | None = None) -> T:
        """What a person or program asks: stored before it is answered.

        Raises:
            TryAgain: another process works on the film, and this cannot be asked of it.
            Requested: another process works on the film, and will do it.
        """
        was_held = self.films.held(name) is not None
        film = self._try(name)
        if film is None and asked:
            self.films.request(name, asked)
        if film is None:
            holder = f"worker {self.films.holder(name)}".rstrip()
            raise TryAgain(f"{holder} is working on {name}", "Try again when it is done, or stop that worker.")
        try:
            answer = verb(film)
            self.films.store(film)
            return answer
        finally:
            if not was_held:
                self.films.release(film)
