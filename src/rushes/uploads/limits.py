"""Limits of uploads: the size of a file, and the total of open uploads on the disk and per user. Pure."""

from collections.abc import Iterable, Sequence

from rushes.domain.errors import OverLimit
from rushes.settings import Settings
from rushes.uploads.direct import OTHER_SIZE
from rushes.uploads.staging import Upload

_GB = 10**9


def check_upload(size: int, settings: Settings) -> None:
    """Refuse a file that is too large by itself.

    Raises:
        OverLimit: it is.
    """
    if size > settings.upload_gb * _GB:
        hint = "Raise upload_gb, or add the file from a folder."
        raise OverLimit(f"the file is larger than {settings.upload_gb} GB", hint)


def why_not_taken(size: int, upload: Upload, settings: Settings) -> str:
    """Why a file that came to the bucket as a whole is not taken, "" if it is; whether it is footage, its job tells."""
    try:
        check_upload(size, settings)
    except OverLimit:
        return f"is larger than {settings.upload_gb} GB"
    return OTHER_SIZE if upload.size and size != upload.size else ""


def check_caller(size: int, promised: Sequence[Upload], settings: Settings) -> None:
    """Refuse one more upload of somebody who has promised these and not finished them.

    Raises:
        OverLimit: it is too many, or too much.
    """
    if len(promised) >= settings.open_uploads:
        hint = "Finish or discard some first, or raise open_uploads."
        raise OverLimit(f"{len(promised)} uploads are open, the limit is {settings.open_uploads}", hint)
    if unsent(promised) + size > settings.open_uploads_gb * _GB:
        hint = "Finish or discard some first, or raise open_uploads_gb."
        raise OverLimit(f"open uploads together are larger than {settings.open_uploads_gb} GB", hint)


def check_disk(size: int, promised: Iterable[Upload], free: int, settings: Settings) -> None:
    """Refuse what does not fit beside what was promised before.

    Raises:
        OverLimit: there is no room for it.
    """
    if size + unsent(promised) + settings.reserve_mb * 2**20 > free:
        raise OverLimit("not enough disk space, with what other uploads need", "Free some space (rushes gc helps).")


def unsent(promised: Iterable[Upload]) -> int:
    """Bytes that are still to come."""
    return sum(max(0, upload.size - upload.offset) for upload in promised)
