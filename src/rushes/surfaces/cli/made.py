"""What was made of a film, counted."""

from collections.abc import Sequence
from dataclasses import dataclass

from rushes.domain.errors import NotFound
from rushes.domain.observation import Observation
from rushes.index.port import Video
from rushes.library import Library
from rushes.surfaces.cli.text import many


@dataclass(frozen=True, slots=True)
class Made:
    """Words, lines and shots of a film, and where its proxy lies ("" if there is none)."""

    video: str
    words: int
    lines: int
    shots: int
    proxy: str

    @property
    def counts(self) -> str:
        """3912 words  240 lines  214 shots."""
        counted = ((self.words, "word"), (self.lines, "line"), (self.shots, "shot"))
        return "  ".join(many(n, word) for n, word in counted if n)


def made_of(library: Library, video: Video, lines: Sequence[Observation]) -> Made:
    """Count what there is of a video by now."""
    words = sum(len(line.words) or len(line.text.split()) for line in lines)
    proxy = library.house.blobs.address(video.proxy) if video.proxy else ""
    return Made(video.id, words, len(lines), len(shots_of(library, video)), proxy)


def shots_of(library: Library, video: Video) -> list[tuple[int, int]]:
    """Its shots; none if the recipe makes none, or not yet."""
    try:
        return library.shots(video.id)
    except NotFound:
        return []
