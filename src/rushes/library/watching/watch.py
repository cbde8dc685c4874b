"""Watching places: what is new there is taken in by itself; of a file that was moved unread, its new job goes on."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from rushes.domain.errors import NotFound, Refused, RushesError, TryAgain
from rushes.domain.job import Job, JobCommand, JobState
from rushes.domain.keys import job_id
from rushes.domain.task import TaskState
from rushes.domain.video import Fingerprint
from rushes.home import Home
from rushes.jobs.control import retry
from rushes.jobs.dead_letters import DeadLetters
from rushes.jobs.intake import IntakeResult, JobRequest, job_spec, take_in
from rushes.jobs.submit import request_id_of
from rushes.ledger.pages import all_tasks, every
from rushes.library.watching.watched_places import announce_places
from rushes.plan.planner import JobSpec
from rushes.sources.port import FoundFile, SkippedFile, StorageEvent, StorageEvents
from rushes.sources.watch import WatchedSource, without_path
from rushes.telemetry import BugLog, Outage, log
from rushes.uploads.bucket_puts import BucketPuts
from rushes.uploads.expiry import finish_all
from rushes.uploads.service import Uploads

PREFIX_SECONDS = 30.0  # between two lists of a bucket by a worker: each is a request for every thousand keys
LOOK_SECONDS = 5.0  # between two looks: what is still being written has changed by then
SCAN_LOOKS = 60  # where storage events tell, what lies there is listed only every five minutes
UPLOAD_LOOKS = 12  # each minute: whoever sends an upload says so, and a look at each that is open is a request
NOTHING = "doctor/"  # where the home has no keys
EVENTS, UPLOADS = "the queue of storage events", "the uploads that jobs wait for"
_MESSAGES = 100  # batches of messages that one look reads at the most
_UNREAD = (JobState.CREATED, JobState.CHUNKING, JobState.FAILED)


def wait(seconds: float) -> bool:
    """Wait, then go on."""
    time.sleep(seconds)
    return True


def watch(
    home: Home, places: Sequence[str], wanted: JobRequest, *, once: bool, pause: Callable[[float], bool]
) -> Iterator[IntakeResult]:
    """Take in what is new at these places (else at those of the settings), look after look.

    `pause` waits that many seconds and answers whether to go on. With `once`, until everything that is there and
    does not grow any more is taken in. The same content at another place is the same video, and no work is done twice.
    Uploads that jobs wait for in the home's bucket are told to the ledger, also when there is no place.
    A place that cannot be seen is told when that changes, and looked at again.
    Raises:
        Refused: no folder or bucket to watch, or the request is invalid.
        NotFound: a place is not there.
        StoreAway: with `once`, a place could not be seen; everything else was taken in.
    """
    sources = {place: home.source(place) for place in _checked(home, places)}
    grows = any(source.grows for source in sources.values())
    gone: dict[Fingerprint, Fingerprint] = {}
    with suppress(TryAgain):  # without it, a move while nobody watched is not recognised
        gone |= find_moved_unread(home) if grows else {}
    watched = {place: WatchedSource(source, gone=gone) for place, source in sources.items()}
    eye = PlaceWatcher(home, watched, wanted, home.storage_events)
    looks = 2 if grows else 1
    while True:
        for one in eye.scan():
            if not once or one.path not in eye.unseen:
                yield one
        looks -= 1
        if once and not looks:
            return eye.check()
        if not pause(LOOK_SECONDS):
            return None


@contextmanager
def watching(home: Home, place: str, *, first: bool = True) -> Iterator[None]:
    """Take in what is new at a place meanwhile, in a thread; what is there at the beginning `first`, if wanted.

    What the queue of storage events tells is taken in at once, whoever of many machines hears it.

    Raises:
        Refused: as `watch`.
    """
    over = threading.Event()
    home.source(place)  # refused here, not in the thread
    for _ in watch(home, [place], JobRequest(), once=True, pause=wait) if first else ():
        pass

    def pause(seconds: float) -> bool:
        return not over.wait(seconds if home.storage_events else PREFIX_SECONDS)

    def look() -> None:
        for added in watch(home, [place], JobRequest(), once=False, pause=pause):
            if added.error:
                log.warning("%s was not added: %s", added.path, added.error)
            if over.is_set():  # a machine that is taken away has no time for thousands more
                return

    thread = threading.Thread(target=_repeat, args=(look, place, over), name="watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _repeat(look: Callable[[], None], place: str, over: threading.Event) -> None:
    outage, bugs = Outage(f"{place} is not watched"), BugLog()
    while not over.is_set():
        try:
            look()
        except RushesError as e:
            outage.began(f"{e}. {e.advice}")
        except Exception as e:  # noqa: BLE001 - the place is watched until the end
            bugs.add(e)
        over.wait(PREFIX_SECONDS)


@dataclass(slots=True)
class PlaceWatcher:
    """Some places and the news of them, look after look."""

    home: Home
    watched: Mapping[str, WatchedSource]
    wanted: JobRequest
    storage_events: StorageEvents | None
    puts: BucketPuts = field(init=False)
    unseen: dict[str, RushesError] = field(default_factory=dict, init=False)  # place -> why
    _looks: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.puts = BucketPuts(Uploads(self.home))

    def scan(self) -> Iterator[IntakeResult]:
        """First what was told, then what was not."""
        if self.storage_events:
            yield from self._hear(self.storage_events)
        due = not self.storage_events or self._looks % SCAN_LOOKS == 0
        if due and self.storage_events:
            with suppress(RushesError):  # the next scan does it
                announce_places(self.home, self.watched, self.wanted, 2 * SCAN_LOOKS * LOOK_SECONDS)
        for name, place in self.watched.items():
            if due or place.source.grows:
                yield from self._take_in(place, place.new())
                yield from self._seen(name, place.trouble)
        if due:
            yield from self._sweep()
        self._looks += 1

    def check(self) -> None:
        """Raise why a place could not be seen, if one could not."""
        for trouble in self.unseen.values():
            raise trouble

    def _seen(self, place: str, trouble: RushesError | None) -> Iterator[IntakeResult]:
        """Tell that a place cannot be seen, or can be seen again, but not at every look."""
        before = self.unseen.pop(place, None)
        if trouble:
            self.unseen[place] = trouble
        if type(trouble) is type(before):
            return
        if trouble:
            log.warning("%s (%s)", trouble, trouble.advice)
            yield IntakeResult(place, error=trouble)
        else:
            log.warning("%s is readable again", place)

    def _hear(self, storage_events: StorageEvents) -> Iterator[IntakeResult]:
        """A message is acknowledged when its events have been dealt with; else it comes again."""
        for _ in range(_MESSAGES):
            try:
                messages = storage_events.receive()
            except TryAgain as e:
                yield from self._seen(EVENTS, e)
                return
            yield from self._seen(EVENTS, None)
            if not messages:
                return
            for message in messages:
                try:
                    added = [one for event in message.events for one in self._on_event(event)]
                except TryAgain as e:
                    log.warning("a storage event is retried later: %s", e)
                    continue
                yield from added
                if not any(isinstance(one.error, TryAgain) for one in added):
                    storage_events.acknowledge([message])

    def _on_event(self, event: StorageEvent) -> list[IntakeResult]:
        if self.home.expected_uploads and (key := self.home.expected_uploads.key_of(event)):
            self.puts.on_key(key)
        return [one for place in self.watched.values() for one in self._take_in(place, place.on_event(event))]

    def _sweep(self) -> Iterator[IntakeResult]:
        if not self.home.expected_uploads:
            return
        try:
            old = self._looks % UPLOAD_LOOKS == 0
            self.puts.look_for_promised(old=old)
            if old:
                self.home.blobs.keys(NOTHING)  # only a list tells a bucket that is not there from one without the key
                self.puts.look(old=True)
                finish_all(self.puts.uploads)  # those whose bytes are looked at first
        except TryAgain as e:
            yield from self._seen(UPLOADS, e)
        else:
            yield from self._seen(UPLOADS, None)

    def _take_in(self, place: WatchedSource, found: Sequence[FoundFile]) -> Iterator[IntakeResult]:
        for one in take_in(self.home, found, self.wanted):
            if isinstance(one.error, TryAgain):
                place.forget(one.path)
            elif one.job and one.path in place.moved:
                self._hand_over(place, one.path, one.job)
            yield one

    def _hand_over(self, place: WatchedSource, path: str, job: Job) -> None:
        """What was asked of a file where it lay; a ledger that is away is asked again at the next look."""
        old = place.moved[path]
        try:
            hand_over(self.home, job_spec(self.home, old, self.wanted), job)
        except TryAgain as e:
            log.warning("the move of %s is handled later: %s", job.name, e)
            place.forget(path)
        else:
            place.gone.pop(without_path(old), None)


def _checked(home: Home, places: Sequence[str]) -> Sequence[str]:
    """The places, absolute. A folder must exist; a bucket may come later."""
    places = places or [place for place in home.settings.sources.split(",") if place]
    if not places and not home.settings.storage_events and not home.settings.blobs:
        raise Refused("no folder or bucket to watch", "Give a folder or a bucket, or set sources in rushes.toml.")
    for place in places:
        source = home.source(place)
        first = next(iter(source.scan()), None) if source.grows else None
        if isinstance(first, SkippedFile) and first.cause:
            raise first.cause
    return [place if "://" in place else str(Path(place).absolute()) for place in places]


def find_moved_unread(home: Home) -> dict[Fingerprint, Fingerprint]:
    """Files that jobs have not read and that are not where they were, by what stays the same when a file is moved."""
    jobs = (job for state in _UNREAD for job in _all(home, state) if not job.facts)
    files = (JobSpec.from_text(job.payload).source for job in jobs)
    top = Path(os.path.realpath(home.originals))
    placed = (replace(file, path=str(top / file.path)) for file in files if not file.far)
    return {without_path(file): file for file in placed if not os.path.lexists(file.path)}


def hand_over(home: Home, before: JobSpec, job: Job) -> None:
    """What was asked of the file where it lay is done by this job now; what has been read needs no file any more."""
    with suppress(NotFound):
        old = home.ledger.job(job_id(before.owner, request_id_of(before, home.specs)))
        if not old.facts and old.id != job.id and not os.path.lexists(home.originals / before.source.path):
            _end(home, old)
            log.warning("%s was moved before it was read: job %s ends, job %s continues", old.name, old.id, job.id)
    if job.state is JobState.CANCELLED:  # it was moved back
        retry(home, job.id)


def _all(home: Home, state: JobState) -> Iterator[Job]:
    return every(lambda cursor: home.ledger.jobs(home.owner, state, cursor=cursor, limit=500))


def _end(home: Home, job: Job) -> None:
    """Cancel it; one that has looked for its file in vain already is no dead letter any more."""
    try:
        home.ledger.control(job.id, JobCommand.CANCEL)
    except Refused:
        dead = all_tasks(home.ledger, job.id, TaskState.DEAD)
        missing = [task for task in dead if task.failure and task.failure.kind == "SourceMissing"]
        DeadLetters(home).dismiss_tasks(missing)
