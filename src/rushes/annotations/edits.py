"""Acts: what was said about people, step by step, so that the last can be taken back."""

from collections.abc import Mapping
from contextlib import suppress

from rushes.domain.errors import NotFound
from rushes.domain.keys import JSON
from rushes.home import Home
from rushes.index.people import PERSON
from rushes.records.port import Conflict, Record

EDITS = "acts"  # one record of this kind: doc = {"acts": [{"what": ..., "before": {record id: doc or None}}, ...]}
_ID = "people"
_KEPT = 50


def edit_people(home: Home, what: str, said: Mapping[str, Mapping[str, JSON]]) -> None:
    """Write records about faces; what stood there is kept first, so that a kill between loses no way back."""
    there = {id: home.records.get(PERSON, home.settings.owner, id) for id in said}
    before = {id: dict(record.doc) if record else None for id, record in there.items()}
    _remember(home, {"what": what, "before": before})
    for id, doc in said.items():
        home.records.put(PERSON, home.settings.owner, id, doc)
    home.follower.catch_up()


def undo(home: Home) -> str:
    """Take the last act back; answers what it was.

    Raises:
        NotFound: there is none.
    """
    known, owner = _known(home), home.settings.owner
    if known is None or not known.doc["acts"]:
        raise NotFound("there is nothing to undo", "See: rushes people ls")
    *rest, last = known.doc["acts"]
    for id, doc in last["before"].items():
        if doc is None:
            home.records.delete(PERSON, owner, id)
        else:
            home.records.put(PERSON, owner, id, doc)
    with suppress(Conflict):  # somebody acted meanwhile: taking this back again does no harm
        home.records.put(EDITS, owner, _ID, {"acts": rest}, known.version)
    home.follower.catch_up()
    return str(last["what"])


def _remember(home: Home, new: JSON) -> None:
    while True:
        known = _known(home)
        acts = [*(known.doc["acts"] if known else ()), new][-_KEPT:]
        with suppress(Conflict):
            home.records.put(EDITS, home.settings.owner, _ID, {"acts": acts}, known.version if known else 0)
            return


def _known(home: Home) -> Record | None:
    return home.records.get(EDITS, home.settings.owner, _ID)
