"""People and corrections: what users say about footage, anchored by video, time and box."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field, model_validator

from rushes.library.people import PersonSummary
from rushes.surfaces.http.deps import MOST, Id, LibraryDep, Name, Text
from rushes.surfaces.http.schemas import RecordShape

router = APIRouter(tags=["people"])
Us = Annotated[int, Field(ge=0, le=MOST)]


class CorrectionIn(BaseModel):
    """The right text at a time in a video, in microseconds; an empty text removes the line."""

    video_id: Name
    start_us: Us
    end_us: Us
    kind: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")] = "speech"
    text: Text

    @model_validator(mode="after")
    def _forwards(self) -> "CorrectionIn":
        if self.end_us < self.start_us:
            raise ValueError("the end is before the start")
        return self


class PersonIn(BaseModel):
    """A new name, or whether the person is hidden; null leaves it unchanged."""

    name: Name | None = None
    hidden: bool | None = None


class MergeIn(BaseModel):
    """The person to merge into."""

    into: Name


class SplitIn(BaseModel):
    """Where another person's face is, and the name of that person if known."""

    video_id: Name
    at_us: Us
    name: Name = ""


@router.post("/corrections", status_code=201)
def add_correction(library: LibraryDep, body: CorrectionIn) -> RecordShape:
    """Correct a line; a later correction of the same line replaces it."""
    video = library.videos.get(body.video_id)
    return RecordShape.of(library.videos.correct(video, body.start_us, body.end_us, body.text, body.kind))


@router.get("/corrections")
def list_corrections(library: LibraryDep, video_id: Annotated[str, Query(max_length=100)]) -> list[RecordShape]:
    """List the corrections of a video."""
    return [RecordShape.of(r) for r in library.videos.corrections(library.videos.get(video_id))]


@router.delete("/corrections/{correction_id}", status_code=204)
def undo_correction(library: LibraryDep, correction_id: Id) -> Response:
    """Undo a correction."""
    library.videos.undo_correction(correction_id)
    return Response(status_code=204)


@router.get("/people")
def list_people(library: LibraryDep, hidden: bool = False) -> list[PersonSummary]:
    """List all known people, named ones first."""
    return library.people.all(hidden=hidden)


@router.post("/people/undo")
def undo_last(library: LibraryDep) -> list[PersonSummary]:
    """Undo the last change of people: a name, a merge, a split or a hide. Returns all people."""
    library.people.undo()
    return library.people.all()


@router.patch("/people/{person_id}")
def change_person(library: LibraryDep, person_id: Id, body: PersonIn) -> list[PersonSummary]:
    """Name or hide a person; the name of another person merges the two. Returns all people."""
    if body.hidden is not None:
        library.people.hide(person_id, hidden=body.hidden)
    if body.name is not None:
        library.people.name(person_id, body.name)
    return library.people.all()


@router.post("/people/{person_id}/merge")
def merge_person(library: LibraryDep, person_id: Id, body: MergeIn) -> list[PersonSummary]:
    """Merge two people. Returns all people."""
    library.people.merge(person_id, body.into)
    return library.people.all()


@router.post("/people/{person_id}/split")
def split(library: LibraryDep, person_id: Id, body: SplitIn) -> list[PersonSummary]:
    """Separate the face at a time from a person. Returns all people."""
    library.people.split(person_id, library.videos.get(body.video_id).id, body.at_us, body.name)
    return library.people.all()
