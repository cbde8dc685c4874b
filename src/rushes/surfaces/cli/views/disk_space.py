"""Room on the disk, as it is told while work waits for it."""

from rushes.surfaces.cli.text import size
from rushes.worker.inputs import DiskSpace


def words(room: DiskSpace) -> str:
    """How much there is, how much there has to be, and that nothing needs to be done here."""
    if room.enough:
        return "there is room on the disk again: going on"
    return f"disk nearly full: {size(room.free)} free, {size(room.kept)} kept free; goes on by itself"


def fields(room: DiskSpace) -> dict[str, object]:
    """The same for programs: a status that belongs to no job."""
    counted = {"bytes_free": room.free, "bytes_kept_free": room.kept}
    return {"stage": "room", "enough": room.enough, **counted, "message": words(room)}


class News:
    """What was heard of the room and is not told yet; each lane says the same."""

    def __init__(self) -> None:
        self.last = DiskSpace(enough=True)
        self._new = False

    def hear(self, room: DiskSpace) -> None:
        """Called in the middle of anything, so it only takes note."""
        self._new = self._new or room.enough != self.last.enough
        self.last = room

    def tell(self) -> DiskSpace | None:
        """What is new, once."""
        new, self._new = self._new, False
        return self.last if new else None
