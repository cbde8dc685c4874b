"""What is wanted of films: recipes with what this machine needs for them, and requests as programs send them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from rushes.library import JobRequest
from rushes.library.videos.stereo import StereoOptions
from rushes.surfaces.http.deps import LibraryDep, Name

router = APIRouter(tags=["recipes"])
Profile = Literal["", "fast", "balanced", "high_quality"]
HOUR = 3600.0
Seconds = Annotated[float, Query(ge=0, le=10**7, allow_inf_nan=False, description="of film")]
Pixels = Annotated[int, Query(ge=1, le=20_000)]


class JobRequestIn(BaseModel):
    """What is wanted of some films."""

    recipe: Name = ""
    only: list[Name] = Field(default=[], max_length=50)
    skip: list[Name] = Field(default=[], max_length=50)
    profile: Profile = ""
    language: Name = ""
    chunk: Name = Field(default="", description="seconds of a chunk, or large")
    format: Name = Field(default="", description="of 3D: sbs, tb, anaglyph, or a longer name")
    priority: int = Field(default=0, ge=-1000, le=1000)
    again: int = Field(default=0, ge=0, le=1_000_000)

    def wanted(self) -> JobRequest:
        """As the library takes it.

        Raises:
            Refused: there is no such format.
        """
        begun = StereoOptions(self.format).wanted() if self.format else JobRequest()
        return replace(
            begun,
            recipe=self.recipe or begun.recipe,
            only=tuple(self.only),
            skip=tuple(self.skip),
            profile=self.profile,
            language=self.language,
            chunk=self.chunk,
            priority=self.priority,
            again=self.again,
        )


@dataclass(frozen=True, slots=True)
class RecipeShape:
    """A recipe, and for so much film: seconds (p50, p90) if it starts now, of each stage, and bytes that are kept."""

    name: str
    usual: bool
    stages: tuple[str, ...]
    expected: tuple[float, float] | None  # None: not everything in it was learnt yet
    of_stages: Mapping[str, tuple[float, float]]
    size: int


@router.get("/recipes")
def list_recipes(
    library: LibraryDep, seconds: Seconds = HOUR, width: Pixels = 1920, height: Pixels = 1080
) -> list[RecipeShape]:
    """What can be wanted of a film, and what it takes on this machine."""
    found = []
    for name, stages in library.recipes().items():
        told = library.forecast(name, seconds, (width, height))
        whole, usual = None if told.unknown else told.whole, name == library.settings.recipe
        found.append(RecipeShape(name, usual, stages, whole, told.stages, told.size))
    return found
