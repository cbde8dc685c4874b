"""Scans of a source: files that are new since the last one and have stopped growing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from rushes.domain.errors import RushesError
from rushes.domain.video import Fingerprint
from rushes.sources.port import FoundFile, SkippedFile, Source, StorageEvent

_GONE = 100_000  # files that are remembered after they went


def find(sources: Iterable[Source]) -> Iterator[FoundFile | SkippedFile]:
    """Everything in some sources, each file once."""
    known: set[str] = set()
    for source in sources:
        for entry in source.scan():
            if entry.path not in known:
                known.add(entry.path)
                yield entry


@dataclass(slots=True)
class WatchedSource:
    """A source, and what was found there by the scans so far.

    A file is taken in when size and time of change are the same in two scans: whoever still writes it changes them.
    """

    source: Source
    before: dict[str, Fingerprint] = field(default_factory=dict)
    given: dict[str, Fingerprint] = field(default_factory=dict)
    gone: dict[Fingerprint, Fingerprint] = field(
        default_factory=dict
    )  # by `without_path`; shared by sources watched together
    trouble: RushesError | None = None  # why the last scan failed
    moved: dict[str, Fingerprint] = field(default_factory=dict)  # what the last scan found at another path than before

    def new(self) -> list[FoundFile]:
        """What is to be taken in now: each content at each path once. What cannot be seen now is not forgotten."""
        entries = list(self.source.scan())
        found = [e for e in entries if isinstance(e, FoundFile)]
        self.trouble = next((e.cause for e in entries if isinstance(e, SkippedFile) and e.cause), None)
        seen = {f.path: f.fingerprint for f in found}
        if not self.trouble:
            self._miss(old for path, old in self.given.items() if path not in seen)
        identities = {path: without_path(now) for path, now in seen.items()} if self.gone else {}
        self.moved = {path: self.gone[id] for path, id in identities.items() if id in self.gone}
        settled = [f for f in found if self.given.get(f.path) != f.fingerprint and self._has_settled(f)]
        self.before = (self.before if self.trouble else {}) | seen
        self.given = {path: old for path, old in self.given.items() if path in self.before}
        self.given |= {f.path: f.fingerprint for f in settled}
        return settled

    def on_event(self, event: StorageEvent) -> list[FoundFile]:
        """What a storage event brought here, each content once. What lies there now counts, not what the event says.

        Raises:
            StoreAway: the bucket does not answer; to be tried again.
        """
        found = [f for f in self.source.at(event.bucket, event.key) if self.given.get(f.path) != f.fingerprint]
        self.given |= {f.path: f.fingerprint for f in found}
        return found

    def forget(self, path: str) -> None:
        """It could not be taken in now: the next scan brings it again."""
        self.given.pop(path, None)

    def _miss(self, files: Iterable[Fingerprint]) -> None:
        """They are not where they were; those that have not been found elsewhere for long are given up."""
        self.gone.update((without_path(file), file) for file in files)
        for oldest in list(self.gone)[:-_GONE]:
            del self.gone[oldest]

    def _has_settled(self, found: FoundFile) -> bool:
        return not self.source.grows or found.path in self.moved or self.before.get(found.path) == found.fingerprint


def without_path(file: Fingerprint) -> Fingerprint:
    """What stays the same when a file is moved."""
    return replace(file, path="", site="")
