"""Videos that rushes wrote itself: remembered, so that a folder scan does not process them again."""

from pathlib import Path

from rushes.blobs.documents import address
from rushes.domain.keys import short
from rushes.domain.text import clean_text
from rushes.files import copy_whole
from rushes.home import Home
from rushes.sources.folder import fingerprint
from rushes.sources.port import FoundFile
from rushes.telemetry import effect

# Keys of a home with films
_WRITTEN = ("input/job_", "segments/job_", "jobs/job_", "videos/proxy/", "videos/clips/", "videos/3d/")
CLIP = "clip_file"  # the kind of record that remembers a clip written where somebody wanted it


def copy_out(home: Home, source: Path, target: Path) -> None:
    """Copy a finished clip or film to where somebody wants it, and remember it.

    Raises:
        NoRoom: it does not fit.
    """
    copy_whole(source, target, effect("publish"))
    remember(home, target)


def remember(home: Home, clip: Path) -> None:
    """A clip lies there now."""
    now = fingerprint(clip)
    doc = {"path": clean_text(now.path), "size": now.size, "mtime_ns": now.mtime_ns}
    home.records.put(CLIP, home.owner, short(now.path), doc)


def own_output_reason(home: Home, found: FoundFile) -> str:
    """Why a file is not footage that was given to us, "" if it is."""
    if Path(found.path).is_relative_to(home.folder.resolve()) or _is_in_the_homes_bucket(home, found):
        return "it belongs to the home"
    record = home.records.get(CLIP, home.owner, short(found.path))
    now = found.fingerprint
    if record and (record.doc["size"], record.doc["mtime_ns"]) == (now.size, now.mtime_ns):
        return "a clip that rushes cut: name it to add it"
    return ""


def _is_in_the_homes_bucket(home: Home, found: FoundFile) -> bool:
    prefix = address(home.blobs, "input").removesuffix("input") if found.fingerprint.far else ""
    return bool(prefix) and found.path.startswith(tuple(prefix + key for key in _WRITTEN))
