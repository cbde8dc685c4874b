"""Watching places: what is new there since the last look, once it has stopped growing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from rushes.domain.errors import RushesError
from rushes.domain.video import Fingerprint
from rushes.sources.port import FoundFile, LeftOut, Source
from rushes.sources.storage_events import Arrival

_GONE = 100_000  # files that are remembered after they went


def find(sources: Iterable[Source]) -> Iterator[FoundFile | LeftOut]:
    """Everything at some places, each thing once."""
    met: set[str] = set()
    for source in sources:
        for entry in source.look():
            if entry.path not in met:
                met.add(entry.path)
                yield entry


@dataclass(slots=True)
class Watched:
    """A place, and what was met there by the looks so far.

    A file is believed when size and time of change are the same in two looks: whoever still writes it changes them.
    """

    source: Source
    before: dict[str, Fingerprint] = field(default_factory=dict)
    given: dict[str, Fingerprint] = field(default_factory=dict)
    gone: dict[Fingerprint, Fingerprint] = field(default_factory=dict)  # by `look`; places watched together share it
    trouble: RushesError | None = None  # why the last look could not see the place
    moved: dict[str, Fingerprint] = field(default_factory=dict)  # what the last look found at another path than before

    def new(self) -> list[FoundFile]:
        """What is to be taken in now: each content at each path once. What cannot be seen now is not forgotten."""
        entries = list(self.source.look())
        found = [e for e in entries if isinstance(e, FoundFile)]
        self.trouble = next((e.cause for e in entries if isinstance(e, LeftOut) and e.cause), None)
        seen = {f.path: f.fingerprint for f in found}
        if not self.trouble:
            self._miss(old for path, old in self.given.items() if path not in seen)
        looks = {path: look(now) for path, now in seen.items()} if self.gone else {}
        self.moved = {path: self.gone[met] for path, met in looks.items() if met in self.gone}
        settled = [f for f in found if self.given.get(f.path) != f.fingerprint and self._has_settled(f)]
        self.before = (self.before if self.trouble else {}) | seen
        self.given = {path: old for path, old in self.given.items() if path in self.before}
        self.given |= {f.path: f.fingerprint for f in settled}
        return settled

    def told(self, arrival: Arrival) -> list[FoundFile]:
        """What a storage event brought here, each content once. What lies there now counts, not what was told.

        Raises:
            StoreAway: nobody can tell; to be told again.
        """
        found = [f for f in self.source.at(arrival.bucket, arrival.key) if self.given.get(f.path) != f.fingerprint]
        self.given |= {f.path: f.fingerprint for f in found}
        return found

    def forget(self, path: str) -> None:
        """It could not be taken in now: the next look brings it again."""
        self.given.pop(path, None)

    def _miss(self, files: Iterable[Fingerprint]) -> None:
        """They are not where they were; those that have not been found elsewhere for long are given up."""
        self.gone.update((look(file), file) for file in files)
        for oldest in list(self.gone)[:-_GONE]:
            del self.gone[oldest]

    def _has_settled(self, found: FoundFile) -> bool:
        return not self.source.grows or found.path in self.moved or self.before.get(found.path) == found.fingerprint


def look(file: Fingerprint) -> Fingerprint:
    """What stays the same when a file is moved."""
    return replace(file, path="")
