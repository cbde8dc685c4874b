"""Ledger and blob store share an id, so that no process combines two homes.

A worker whose `blobs` lead elsewhere would find none of the results that others made, and make some that nobody finds.
"""

import json
import secrets

from rushes.blobs.documents import read_document
from rushes.blobs.port import Blobs
from rushes.domain.errors import Refused, WrongHome
from rushes.records.port import Conflict, Record, Records

MARK = "identity.json"  # the key of the mark
_KIND, _OWNER, _ID = "identity", "", "blobs"  # of the record: it belongs to the store, not to an owner


def check_identity(records: Records, blobs: Blobs, *, restores: bool = False, take_over: bool = False) -> None:
    """Compare the mark with what the store remembers; whoever comes first makes both.

    A mark that is missing is made again where nothing else can be meant (`restores`). With `take_over` whatever is
    there becomes the store's.

    Raises:
        WrongHome: these are not the results of this store.
    """
    known, there = records.get(_KIND, _OWNER, _ID), _read(blobs)
    id = str(known.doc["id"]) if known else ""
    if there and there == id:
        return
    if id and there and not take_over:
        raise WrongHome(f"{blobs.root} has the results of another store", _HINT)
    if id and not there and not (restores or take_over):
        raise WrongHome(f"{blobs.root} does not have the results of this store", _HINT)
    if not there:
        there = _create(blobs, id or secrets.token_hex(16))
    if there != id:
        _remember(records, blobs, known, there)


def copy_identity(source: Blobs, target: Blobs) -> None:
    """Copied results are the same store's.

    Raises:
        Refused: there are those of another store.
    """
    id = _read(source)
    if id and _create(target, id) != id:
        raise Refused(f"{target.root} has the results of another store", "Choose another place.")


_HINT = (
    "Check blobs (or shared and the mounted folder) in the settings: they are the same for every process of a store. "
    "If the results were lost or replaced, run: rushes init --take-over"
)


def _create(blobs: Blobs, id: str) -> str:
    """The id of the mark that is there in the end: of several that make one, the first."""
    blobs.create(MARK, json.dumps({"id": id}).encode())
    return _read(blobs)


def _read(blobs: Blobs) -> str:
    data = read_document(blobs, MARK)
    try:
        return str(json.loads(data)["id"]) if data is not None else ""
    except (ValueError, KeyError, TypeError) as e:
        raise WrongHome(
            f"{MARK} in {blobs.root} is damaged", "Restore it from a backup of the bucket or folder."
        ) from e


def _remember(records: Records, blobs: Blobs, known: Record | None, id: str) -> None:
    try:
        records.put(_KIND, _OWNER, _ID, {"id": id}, expected=known.version if known else 0)
    except Conflict:  # another process has come first: what it found counts
        check_identity(records, blobs)
