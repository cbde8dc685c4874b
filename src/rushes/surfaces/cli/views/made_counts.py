"""What was made from a video, counted."""

from collections.abc import Sequence
from dataclasses import dataclass

from rushes.domain.errors import NotFound
from rushes.domain.observation import Observation
from rushes.library import Library
from rushes.library.videos import Video
from rushes.surfaces.words import plural


@dataclass(frozen=True, slots=True)
class MadeCounts:
    """What is said, seen and cut in a video, and the path of its proxy ("" if there is none)."""

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
        return "  ".join(plural(n, word) for n, word in counted if n)


def count_made(library: Library, video: Video, lines: Sequence[Observation]) -> MadeCounts:
    """Count what is known of a video so far."""
    words = sum(len(line.words) or len(line.text.split()) for line in lines)
    proxy = library.videos.address(video.proxy) if video.proxy else ""
    texts = len(library.videos.lines(video.id, "text"))
    objects, places = ({seen.text for seen in library.videos.lines(video.id, kind)} for kind in ("object", "place"))
    shots = len(shots_of(library, video))
    return MadeCounts(video.id, words, len(lines), shots, proxy, texts, len(objects), len(places - {"unknown"}))


def shots_of(library: Library, video: Video) -> list[tuple[int, int]]:
    """Its shots; none if the recipe makes none, or not yet."""
    try:
        return library.videos.shots(video)
    except NotFound:
        return []
