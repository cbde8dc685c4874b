"""People and corrections: what a person says about footage, anchored by video, time and box."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field, model_validator

from rushes.annotations import Anchor, correct, of_video, take_back
from rushes.annotations.acts import undo
from rushes.annotations.people import Seen, everybody, hide_person, merge_people, name_person, split_person
from rushes.index.follower import CORRECTION
from rushes.surfaces.http.deps import MOST, ADesk, Id, Name, Text
from rushes.surfaces.http.schemas import RecordShape

router = APIRouter(tags=["people"])
Us = Annotated[int, Field(ge=0, le=MOST)]


class CorrectionIn(BaseModel):
    """What really stands at a place in a film, in microseconds; an empty text says that nothing does."""

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
    """A name, or whether to leave somebody out of lists and searches; None leaves it as it is."""

    name: Name | None = None
    hidden: bool | None = None


class MergeIn(BaseModel):
    """The person to become one with."""

    into: Name


class SplitIn(BaseModel):
    """The place at which the face is somebody else's, and whose it is if that is known."""

    video_id: Name
    at_us: Us
    name: Name = ""


@router.post("/corrections", status_code=201)
def add_correction(desk: ADesk, body: CorrectionIn) -> RecordShape:
    """Correct a line; said again, the last word counts."""
    anchor = Anchor(desk.video(body.video_id).id, body.start_us, body.end_us)
    return RecordShape.of(correct(desk.home, body.kind, anchor, body.text))


@router.get("/corrections")
def list_corrections(desk: ADesk, video_id: Annotated[str, Query(max_length=100)]) -> list[RecordShape]:
    """What was corrected in a video."""
    return [RecordShape.of(r) for r in of_video(desk.home, CORRECTION, desk.video(video_id).id)]


@router.delete("/corrections/{correction_id}", status_code=204)
def undo_correction(desk: ADesk, correction_id: Id) -> Response:
    """Take a correction back."""
    take_back(desk.home, CORRECTION, correction_id)
    return Response(status_code=204)


@router.get("/people")
def list_people(desk: ADesk, hidden: bool = False) -> list[Seen]:
    """Everybody whose face is known, named first."""
    return everybody(desk.home, hidden=hidden)


@router.post("/people/undo")
def undo_last(desk: ADesk) -> list[Seen]:
    """Take back what was last said about people: a name, a merge, a split, a hiding. Answers everybody."""
    undo(desk.home)
    return everybody(desk.home)


@router.patch("/people/{person_id}")
def change_person(desk: ADesk, person_id: Id, body: PersonIn) -> list[Seen]:
    """Name or hide somebody; the name of somebody else makes the two one. Answers everybody."""
    if body.hidden is not None:
        hide_person(desk.home, person_id, hidden=body.hidden)
    if body.name is not None:
        name_person(desk.home, person_id, body.name)
    return everybody(desk.home)


@router.post("/people/{person_id}/merge")
def merge_person(desk: ADesk, person_id: Id, body: MergeIn) -> list[Seen]:
    """Say that two are one. Answers everybody."""
    merge_people(desk.home, person_id, body.into)
    return everybody(desk.home)


@router.post("/people/{person_id}/split")
def split(desk: ADesk, person_id: Id, body: SplitIn) -> list[Seen]:
    """Say that the face at one place is somebody else's. Answers everybody."""
    split_person(desk.home, person_id, desk.video(body.video_id).id, body.at_us, body.name)
    return everybody(desk.home)
