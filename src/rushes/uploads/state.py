"""Where one upload stands, as its record says and its bytes show."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Upload:
    """One upload: what was promised, and how much of it is there."""

    id: str
    name: str
    size: int
    job: str
    key: str
    path: str  # beside the home's other uploads
    mtime_ns: int  # given to the file at the end: the job was told before there was a file
    sha256: str = ""
    state: str = "open"  # open, arrived or refused
    why: str = ""
    multipart: str = ""  # its id in the bucket that its parts go to, and the size of each
    part: int = 0
    need: str = ""  # what its job waits for, if that is not its key: bytes that are not checked meet no need
    offset: int = 0
    version: int = 0  # of its record

    @property
    def whole(self) -> bool:
        """Whether all of it is there and the ledger may not know yet."""
        return self.state == "open" and self.offset >= self.size
