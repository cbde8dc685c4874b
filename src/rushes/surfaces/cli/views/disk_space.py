"""Disk space, as it is reported while work waits for it."""

from rushes.surfaces.words import size
from rushes.worker.inputs import DiskSpace


def words(room: DiskSpace) -> str:
    """How much is free, and how much is kept free."""
    if room.enough:
        return "disk space is available again: continuing"
    return f"disk nearly full: {size(room.free)} free, {size(room.kept)} kept free; continues when there is space"


def fields(room: DiskSpace) -> dict[str, object]:
    """The same for programs: a status that belongs to no job."""
    counted = {"bytes_free": room.free, "bytes_kept_free": room.kept}
    return {"stage": "room", "enough": room.enough, **counted, "message": words(room)}


class DiskSpaceNews:
    """The last state of the disk, and whether it was reported; each lane says the same."""

    def __init__(self) -> None:
        self.last = DiskSpace(enough=True)
        self._new = False

    def hear(self, room: DiskSpace) -> None:
        """Called from a signal-like place, so it only remembers."""
        self._new = self._new or room.enough != self.last.enough
        self.last = room

    def tell(self) -> DiskSpace | None:
        """What is new, once."""
        new, self._new = self._new, False
        return self.last if new else None
