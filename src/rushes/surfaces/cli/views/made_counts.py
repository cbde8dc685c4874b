"""What was made of a film, counted."""

from collections.abc import Sequence
from dataclasses import dataclass

from rushes.blobs.documents import address
from rushes.domain.errors import NotFound
from rushes.domain.observation import Observation
from rushes.index.port import Video
from rushes.library import Library
from rushes.surfaces.cli.text import many


@dataclass(frozen=True, slots=True)
class Made:
    """What is said, seen and cut in a film, and where its proxy lies ("" if there is none)."""

    video: str
    words: int
    lines: int
    shots: int
    proxy: str
    texts: int = 0  # lines of text in the picture
    objects: int = 0  # kinds of them
    places: int = 0

    @property
    def counts(self) -> str:
        """3912 words  240 lines  118 texts  21 objects  214 shots."""
        seen = ((self.texts, "text"), (self.objects, "object"), (self.places, "place"))
        counted = ((self.words, "word"), (self.lines, "line"), *seen, (self.shots, "shot"))
        return "  ".join(many(n, word) for n, word in counted if n)


def made_of(library: Library, video: Video, lines: Sequence[Observation]) -> Made:
    """Count what there is of a video by now."""
    index, owner = library.home.index, video.owner
    words = sum(len(line.words) or len(line.text.split()) for line in lines)
    proxy = address(library.home.blobs, video.proxy) if video.proxy else ""
    texts = len(index.lines(owner, video.id, "text"))
    objects, places = ({seen.text for seen in index.lines(owner, video.id, kind)} for kind in ("object", "place"))
    shots = len(shots_of(library, video))
    return Made(video.id, words, len(lines), shots, proxy, texts, len(objects), len(places - {"unknown"}))


def shots_of(library: Library, video: Video) -> list[tuple[int, int]]:
    """Its shots; none if the recipe makes none, or not yet."""
    try:
        return library.shots(video.id)
    except NotFound:
        return []
