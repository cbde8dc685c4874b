"""The films that this process holds: taken when needed, stored in the background, released when all is done."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from rushes.bucket.conditional import ConditionalBucket
from rushes.domain.errors import LeaseLost, NotFound, Requested, RushesError, StoreAway
from rushes.domain.job import JobCommand
from rushes.domain.task import RENEW_SECONDS
from rushes.domain.worker import Incarnation
from rushes.ledger.bucket.copies import LOOK_SECONDS, Copies
from rushes.ledger.bucket.film import FOLDER, Film, IsGone, lock_key
from rushes.ledger.bucket.lock import FilmLock
from rushes.ledger.bucket.mailbox import FilmRequest, Mailbox
from rushes.ledger.clock import Millis, Seconds
from rushes.ledger.port import Ledger
from rushes.telemetry import BugLog, Outage, log

DONE_SECONDS = RENEW_SECONDS + LOOK_SECONDS  # until what is asked of a holder is done
STORE_SECONDS = 2.0  # between two uploads of a database while work goes on, unless told otherwise


class Films:
    """Which films are ours. A film is ours from `take` until it is released, or lost to another process."""

    def __init__(
        self,
        bucket: ConditionalBucket,
        folder: Path,
        me: Incarnation,
        copies: Copies,
        here: Ledger,
        *,
        clock: Seconds,
        wall: Millis,
        ledger_clock: Seconds | None,
        is_gone: IsGone,
        places: Mapping[str, str],
        store_seconds: float,
    ) -> None:
        """`here` has the rows of this machine's workers."""
        self.me, self.copies, self._here, self._store_seconds = me, copies, here, store_seconds
        self._bucket, self._folder = bucket, folder
        self._clock, self._wall, self._ledger_clock, self._is_gone = clock, wall, ledger_clock, is_gone
        self._places = places
        self._held: dict[str, Film] = {}
        self._locks: dict[str, FilmLock] = {}  # what was seen of the locks of others
        self.workers: dict[str, Incarnation] = {}  # of this process; they have a row in every film that is held
        self.guard = threading.RLock()  # no film changes hands while it is held
        self._wake, self._over = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._bugs, self._outage = BugLog(), Outage("a film cannot be stored in the bucket")

    def __iter__(self) -> Iterator[Film]:
        with self.guard:
            return iter([*self._held.values()])

    def held(self, name: str) -> Film | None:
        """A film that is ours."""
        return self._held.get(name)

    def take(self, name: str) -> Film | None:
        """A film that is ours, or becomes it now; None while another process holds it."""
        with self.guard:
            if name in self._held:
                return self._held[name]
            lock = self._locks.setdefault(
                name, FilmLock(self._bucket, lock_key(name), self.me, self._clock, self._wall)
            )
            lock.saw(*self.copies.locks.get(name, ("", float("-inf"))))
            if not lock.acquire(self.copies.stat(name).token):
                return None
            film = Film(self._bucket, name, self._folder, lock)
            try:
                film.open(self.me, self._ledger_clock, self._wall, self._is_gone, self._places)
            except BaseException:
                with contextlib.suppress(StoreAway):
                    lock.release()
                raise
            del self._locks[name]
            if lock.taken_from:
                log.warning("%s was held by %s, which has stopped; continuing with it", name, lock.taken_from)
            film.ledger.sweep()  # whoever worked on it before is gone
            for row in self._here.workers():
                if row.alive and (worker := self.workers.get(row.incarnation.id)):
                    film.ledger.renew(worker, {}, {})
            self._held[name] = film
            return film

    def holder(self, name: str) -> str:
        """The worker that held a film when we last asked for it in vain, "" if it is not known."""
        lock = self._locks.get(name)
        return lock.held_by if lock else ""

    def keep(self, film: Film) -> bool:
        """Renew its lock; whether it is still ours. While the bucket is away, nobody has said that it is not."""
        try:
            ours = film.lock.renew()
        except StoreAway:
            return True
        if not ours:
            self.lose(film)
        elif film.name in self.copies.asked:
            self._do_requests(film)
        return film.name in self._held

    def _do_requests(self, film: Film) -> None:
        try:
            film.do_requests()
        except LeaseLost:
            self.lose(film)
        except StoreAway as e:
            log.warning("a request for %s is postponed: %s", film.name, e)

    def request(self, name: str, request: FilmRequest) -> NoReturn:
        """Ask whoever holds a film. If it was released meanwhile, it is done here and now.

        Raises:
            Requested: always.
        """
        Mailbox(self._bucket, f"{FOLDER}/{name}").put(request, self._wall())
        with contextlib.suppress(LeaseLost, StoreAway):  # it is stored: whoever holds the film next does it
            if film := self.take(name):
                self.release(film)
        raise Requested(f"requested: the worker that holds {name} does it within {DONE_SECONDS:.0f} s")

    def lose(self, film: Film) -> None:
        """Another process has it: write nothing more."""
        with self.guard:
            if self._held.pop(film.name, None):
                log.warning("%s is now held by another process; the work on it here is dropped", film.name)
                film.forget()

    def written(self, film: Film) -> None:
        """Something was written in it: it is stored soon."""
        film.touch()
        self._start()
        self._wake.set()

    def store(self, film: Film) -> None:
        """Something was written for a person or program, who is answered when it is stored.

        Raises:
            LeaseLost: it is not ours any more; nothing of it counts.
        """
        film.touch()
        try:
            film.store()
        except LeaseLost:
            self.lose(film)
            raise
        self.copies.note(film.name, film.etag)

    def release(self, film: Film) -> None:
        """Store it and let others have it; one that is not ours any more is left alone."""
        with self.guard:
            if self._held.get(film.name) is not film:
                return
            try:
                film.release()
            except LeaseLost:
                self.lose(film)
            except StoreAway:
                if not self.workers:  # nobody would renew its lock
                    self._leave(film)
                raise
            else:
                self._held.pop(film.name, None)
                self.copies.note(film.name, film.etag)

    def _leave(self, film: Film) -> None:
        """Its lock ends by itself, and this machine's copy is taken up the next time."""
        self._held.pop(film.name, None)
        film.close()

    def control_worker(self, worker: str, command: JobCommand) -> None:
        """A worker of this process drains or leaves; with the last one that leaves, every film is released."""
        if command is JobCommand.LEAVE:
            self.workers.pop(worker, None)
        for film in self:
            with contextlib.suppress(NotFound):
                film.ledger.control(worker, command)
            film.touch()
            if not self.workers:
                self.release(film)

    def close(self) -> None:
        """Store and release what is still held."""
        self._over.set()
        self._wake.set()
        if self._thread:
            self._thread.join()
        for film in self:
            try:
                self.release(film)
            except RushesError as e:
                log.warning("%s could not be stored: %s", film.name, e)
                self._leave(film)

    def _start(self) -> None:
        with self.guard:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
                self._thread.start()

    def store_changes(self) -> None:
        """Store every film that was written in; what cannot be stored now is tried again."""
        for film in self:
            self._store(film)

    def _run(self) -> None:
        while not self._over.is_set():
            self._wake.wait()
            self._wake.clear()
            try:
                self.store_changes()
            except Exception as e:  # noqa: BLE001 - the thread is needed until the end
                self._bugs.add(e)
                self._wake.set()
            self._over.wait(self._store_seconds)

    def _store(self, film: Film) -> None:
        try:
            film.store()
        except LeaseLost:
            self.lose(film)
        except RushesError as e:  # the bucket is away, or the disk is full
            self._outage.began(f"{film.name}: {e}")
            self._wake.set()
        else:
            self._outage.ended()
