"""Space on the disk, as it is told while work waits for it."""

from rushes.library.work.progress import DiskSpace
from rushes.surfaces.words import size


def words(space: DiskSpace) -> str:
    """How much there is, how much there has to be, and that nothing needs to be done here."""
    if space.enough:
        return "disk space is available again: continuing"
    return f"disk nearly full: {size(space.free)} free, {size(space.reserve)} kept free; continues when there is space"


def fields(space: DiskSpace) -> dict[str, object]:
    """The same for programs: a status that belongs to no job."""
    counted = {"bytes_free": space.free, "bytes_kept_free": space.reserve}
    return {"stage": "room", "enough": space.enough, **counted, "message": words(space)}
