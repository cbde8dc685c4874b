"""Expiry of uploads: given up after a week without data; leftovers of killed processes are deleted."""

import time
from contextlib import suppress

from rushes.domain.errors import RushesError, StoreAway
from rushes.uploads.service import UPLOAD, Uploads
from rushes.uploads.staging import Upload, clear_strays

EXPIRE_SECONDS = 7 * 86400.0
LOST_SECONDS = 28 * 86400.0  # for what is not on this disk: another server may have it


def expire(uploads: Uploads) -> int:
    """Give up what nobody has continued for a week, forget what ended before that; answers how many."""
    begun = time.time_ns() - EXPIRE_SECONDS * 1e9
    for upload in [u for u in uploads.all() if u.state != "open" and u.mtime_ns < begun]:
        uploads.home.records.delete(UPLOAD, uploads.home.owner, upload.id)
    old = [u for u in uploads.all() if _is_abandoned(uploads, u)]
    for upload in old:
        with suppress(RushesError), uploads.exclusive(upload):  # the next one does it
            if _is_abandoned(uploads, now := uploads.get(upload.id)):
                uploads.drop(now, "it was not continued in time")
    return len(old) + _clear_strays(uploads)


def finish_all(uploads: Uploads) -> int:
    """Tell the ledger of everything that had arrived when a process died; answers how many."""
    whole = [u for u in uploads.all() if u.whole]
    for upload in whole:
        with suppress(RushesError):
            uploads.finish(upload)
    return len(whole)


def _is_abandoned(uploads: Uploads, upload: Upload) -> bool:
    """Whether nobody has continued it for too long."""
    if upload.state != "open" or upload.whole:
        return False
    begun = time.time() - upload.mtime_ns / 1e9
    direct = uploads.direct(upload)
    age = begun if upload.put else direct.age(begun) if direct else uploads.staging_file(upload).age()
    return begun > LOST_SECONDS if age is None else age > EXPIRE_SECONDS


def _clear_strays(uploads: Uploads) -> int:
    """What was begun here or in the bucket and has no open record: a process was killed in between."""
    open_ones = [u for u in uploads.all() if u.state == "open"]
    count = clear_strays(uploads.folder, frozenset(u.id for u in open_ones), EXPIRE_SECONDS)
    with suppress(StoreAway):  # the next one does it
        if bucket := uploads.home.multipart:
            count += bucket.abort_older("input", 2 * EXPIRE_SECONDS, {u.multipart for u in open_ones})
    return count
