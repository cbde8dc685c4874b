"""People and corrections: what a person says about footage, anchored by video, time and box."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field, model_validator

from rushes.library.desk import Desk
from rushes.library.said import (
    CORRECTION,
    PERSON,
    Anchor,
    Person,
    correct,
    name_person,
    of_video,
    people,
    rename_person,
    take_back,
)
from rushes.surfaces.api.reach import MOST, ADesk, Id, Name, Text
from rushes.surfaces.api.shapes import RecordShape

router = APIRouter(tags=["people"])
Part = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Us = Annotated[int, Field(ge=0, le=MOST)]


class AnchorIn(BaseModel):
    """A place in a film, in microseconds, and in the picture as parts of it."""

    video_id: Name
    start_us: Us
    end_us: Us
    box: tuple[Part, Part, Part, Part] | None = None

    @model_validator(mode="after")
    def _forwards(self) -> "AnchorIn":
        if self.end_us < self.start_us:
            raise ValueError("the end is before the start")
        return self

    def anchor(self, desk: Desk) -> Anchor:
        """The place, in a video that is there."""
        return Anchor(desk.video(self.video_id).id, self.start_us, self.end_us, self.box)


class CorrectionIn(AnchorIn):
    """What really stands there."""

    kind: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")] = "speech"
    text: Text


class FaceIn(AnchorIn):
    """Whose face it is."""

    name: Name = Field(min_length=1)


class PersonIn(BaseModel):
    """A name."""

    name: Name = Field(min_length=1)


@router.post("/corrections", status_code=201)
def add_correction(desk: ADesk, body: CorrectionIn) -> RecordShape:
    """Correct a line; said again, the last word counts."""
    return RecordShape.of(correct(desk.house, body.kind, body.anchor(desk), body.text))


@router.get("/corrections")
def list_corrections(desk: ADesk, video_id: Annotated[str, Query(max_length=100)]) -> list[RecordShape]:
    """What was corrected in a video."""
    return [RecordShape.of(r) for r in of_video(desk.house, CORRECTION, desk.video(video_id).id)]


@router.delete("/corrections/{correction_id}", status_code=204)
def undo_correction(desk: ADesk, correction_id: Id) -> Response:
    """Take a correction back."""
    take_back(desk.house, CORRECTION, correction_id)
    return Response(status_code=204)


@router.get("/people")
def list_people(desk: ADesk) -> list[Person]:
    """Everybody who was named."""
    return list(people(desk.house))


@router.post("/people", status_code=201)
def name_face(desk: ADesk, body: FaceIn) -> RecordShape:
    """Say whose face is seen at a place."""
    return RecordShape.of(name_person(desk.house, body.anchor(desk), body.name))


@router.patch("/people/{person_id}")
def change_person(desk: ADesk, person_id: Id, body: PersonIn) -> Person:
    """Another name; the name of somebody else makes the two one."""
    return rename_person(desk.house, person_id, body.name)


@router.delete("/people/faces/{face_id}", status_code=204)
def undo_face(desk: ADesk, face_id: Id) -> Response:
    """Take a name at one place back."""
    take_back(desk.house, PERSON, face_id)
    return Response(status_code=204)
