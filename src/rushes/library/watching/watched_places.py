"""Places in buckets whose storage events any process of a home may hear, and what is wanted of a film there.

They are the remembered places, and those that a `rushes watch` is at: it says so as long as it runs.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict

from rushes.domain.keys import JSON, short
from rushes.domain.video import BUCKETS
from rushes.home import Home
from rushes.jobs.intake import JobRequest
from rushes.library.watching.paths import PATH
from rushes.records.port import Conflict

WATCHED = "watched"  # the kind of record
_TUPLES = ("only", "skip")


def announce_places(home: Home, places: Iterable[str], wanted: JobRequest, seconds: float) -> None:
    """Say that these places are watched for so many seconds more."""
    for place in places:
        if place.startswith(BUCKETS):
            doc = {"place": place, "wanted": asdict(wanted), "until": time.time() + seconds}
            home.records.put(WATCHED, home.owner, short(place), doc)


def watched_places(home: Home) -> Iterator[tuple[str, JobRequest]]:
    """Each place in a bucket, with what is wanted of it."""
    for record in home.all_records(PATH):
        yield str(record.doc["path"]), remembered_request(record.doc)
    for record in home.all_records(WATCHED):
        if float(record.doc["until"]) > time.time():
            doc = record.doc["wanted"]
            yield str(record.doc["place"]), JobRequest(**{**doc, **{name: tuple(doc[name]) for name in _TUPLES}})
        else:
            with suppress(Conflict):  # it has just been announced again
                home.records.delete(WATCHED, home.owner, record.id, record.version)


def remembered_request(doc: Mapping[str, JSON]) -> JobRequest:
    """What is wanted of the films of a remembered place."""
    return JobRequest(profile=doc.get("profile", ""), options=doc.get("options", {}))
