"""Report types of estimates: for a video, and for a file."""

from dataclasses import dataclass

from rushes.domain.errors import RushesError

Range = tuple[float, float]  # seconds that nine of ten runs stay between


@dataclass(frozen=True, slots=True)
class FilmCost:
    """What a recipe takes of one film; nine of ten runs stay inside each range."""

    seconds: Range
    stages: dict[str, Range]
    size: int  # bytes that will be kept
    unknown: tuple[str, ...]  # stages that are not in it: nothing is known of them on this machine

    def times(self, factor: float) -> "FilmCost":
        """So many such films, one after the other."""
        low, high = self.seconds
        stages = {stage: (a * factor, b * factor) for stage, (a, b) in self.stages.items()}
        return FilmCost((low * factor, high * factor), stages, int(self.size * factor), self.unknown)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate for one file."""

    path: str
    duration: float = 0.0
    chunks: int = 0
    cost: FilmCost = FilmCost((0.0, 0.0), {}, 0, ())
    measured: bool = False  # by a trial just now, not from earlier work
    error: RushesError | None = None
