"""What people say about footage, as records: corrections, names of films, places to look at, which run counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rushes.domain.errors import NotFound
from rushes.domain.keys import JSON, short
from rushes.home import Home
from rushes.index.follower import CORRECTION, NAME, SELECTION
from rushes.records.port import Record

PATH = "path"  # the kind of record that remembers a place films come from


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place in a film: what a correction holds on to, never a cluster or a row."""

    video: str
    start_us: int
    end_us: int

    def to_json(self) -> dict[str, JSON]:
        """As records keep it."""
        return {"video": self.video, "start_us": self.start_us, "end_us": self.end_us}


def correct(home: Home, kind: str, anchor: Anchor, text: str) -> Record:
    """Say what stands at a place; said again, the last word counts."""
    id = "cor_" + short([kind, anchor.to_json()])
    return home.records.put(CORRECTION, home.settings.owner, id, {"kind": kind, "text": text, **anchor.to_json()})


def delete_record(home: Home, kind: str, id: str) -> None:
    """Delete a record.

    Raises:
        NotFound: there is none.
    """
    if not home.records.delete(kind, home.settings.owner, id):
        raise NotFound(f"no {kind.replace('_', ' ')} {id[:60]!r}")


def rename(home: Home, video: str, name: str) -> None:
    """Give a video a name; an empty one takes it back."""
    if name:
        home.records.put(NAME, home.settings.owner, video, {"name": name})
    else:
        home.records.delete(NAME, home.settings.owner, video)


def select(home: Home, video: str, kind: str, run: str) -> Record:
    """Which run counts for a kind of observations: one that is named, or "" for the newest."""
    doc: Mapping[str, JSON] = {"video": video, "kind": kind, "run": run}
    return home.records.put(SELECTION, home.settings.owner, f"{video}.{kind}", doc)


def add_path(home: Home, path: str) -> Record:
    """Remember a place that films come from."""
    return home.records.put(PATH, home.settings.owner, "path_" + short(path), {"path": path})


def may_be_read(home: Home, path: str) -> bool:
    """Whether a place lies at or below one that the settings name, as seen with links resolved."""
    places = [p.strip() for p in home.settings.sources.split(",") if p.strip()]
    if path.startswith("s3://"):
        return any(f"{path}/".startswith(f"{p.rstrip('/')}/") for p in places)
    real = Path(path).resolve()
    return any(real.is_relative_to(Path(p).resolve()) for p in places if not p.startswith("s3://"))
