"""Sidecars that were imported earlier, read again into a new index; loads little, since every search calls it."""

import os
import time
from pathlib import Path

from rushes.home import Home
from rushes.index.changes import CursorMove
from rushes.index.follower import SIDECAR_FILE

AGAIN_SECONDS = 60.0  # between two looks for those whose drive may not be plugged in
_ALL = "read"  # the cursor of an index that has read them all; else when it tried, and the ids of those left


def catch_up(home: Home) -> None:
    """Bring the index up to what the ledger says, and the sidecars that were read in."""
    home.follower.catch_up()
    import_again(home)


def import_again(home: Home) -> None:
    """Read what was read in before into an index that is new; what could not be opened is tried again each minute."""
    at, *left = home.index.cursor(SIDECAR_FILE).split() or [""]
    if at == _ALL or (at and abs(time.time() - float(at)) < AGAIN_SECONDS):
        return
    wanted = {r.id: Path(str(r.doc["path"])) for r in home.all_records(SIDECAR_FILE) if not at or r.id in left}
    away = [id for id, path in wanted.items() if (at and not os.access(path, os.R_OK)) or _is_away(home, path)]
    with home.index.lock(60.0):
        home.index.apply(CursorMove(SIDECAR_FILE, " ".join([str(time.time()), *away]) if away else _ALL))
    home.follower.catch_up()


def _is_away(home: Home, path: Path) -> bool:
    from rushes.annotations.sidecars import read_sidecar  # noqa: PLC0415 - much is loaded to read one

    return read_sidecar(home, path).away
