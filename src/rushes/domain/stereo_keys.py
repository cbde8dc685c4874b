"""Keys of a 3D job that other tools read: its upload, its source segments, its results. Pure.

The only place where they are built and parsed.
"""

import re
from dataclasses import dataclass

from rushes.domain.keys import is_id

CHECKED = ".checked"  # ends what a job needs whose file is looked at before it is said to be there; nothing lies there
_ENDING = re.compile(r"\.[a-z0-9]+", re.ASCII)
_UPLOAD = re.compile(rf"input/([^/]+)/source({_ENDING.pattern})?\Z", re.ASCII)
_SEGMENT = re.compile(r"segments/([^/]+)/(\d{5,7})_(\d{5,7})_([a-z0-9]+(?:-[a-z0-9]+)*)\.mp4\Z", re.ASCII)
_OUTPUT = re.compile(r"jobs/([^/]+)/segments/(0|[1-9]\d{0,6})\.mp4\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class SegmentKey:
    """One segment of a film that becomes 3D: whose it is, which of how many, and in which mode."""

    job: str
    index: int
    total: int
    mode: str

    def __str__(self) -> str:
        return f"segments/{self.job}/{self.index:05d}_{self.total:05d}_{self.mode}.mp4"


def parse_segment_key(key: str) -> SegmentKey | None:
    """The segment that a key names, None if it names none."""
    found = _SEGMENT.match(key)
    segment = SegmentKey(found[1], int(found[2]), int(found[3]), found[4]) if found else None
    right = segment and is_id(segment.job) and segment.index < segment.total and str(segment) == key
    return segment if right else None


def upload_key(job: str, ending: str = ".mp4") -> str:
    """Where the film of a job is sent to; an ending that no key may have is left out."""
    return f"input/{job}/source{ending if _ENDING.fullmatch(ending) else ''}"


def parse_upload_key(key: str) -> str | None:
    """The job whose film a key is, None if it is none."""
    found = _UPLOAD.match(key)
    return found[1] if found and is_id(found[1]) else None


def output_key(job: str, index: int) -> str:
    """A segment in 3D."""
    return f"jobs/{job}/segments/{index}.mp4"


def parse_output_key(key: str) -> tuple[str, int] | None:
    """Job and number of a segment in 3D; None for anything else, also for the whole film."""
    found = _OUTPUT.match(key)
    return (found[1], int(found[2])) if found and is_id(found[1]) else None


def final_key(job: str) -> str:
    """The whole film in 3D."""
    return f"jobs/{job}/final.mp4"
