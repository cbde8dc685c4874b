"""Two runs of one video side by side: what each says at the same time. Pure but for reading them."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from rushes.domain.errors import NotFound
from rushes.domain.observation import Observation
from rushes.home import Home
from rushes.index.port import Video
from rushes.index.tokenizer import words


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A stretch of the film and what the two runs say in it."""

    start_us: int
    end_us: int
    left: str
    right: str

    @property
    def same(self) -> bool:
        """Whether they say the same words."""
        return words(self.left) == words(self.right)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side, and how much of their words they share (0 to 1)."""

    kind: str
    left: str
    right: str
    alike: float
    rows: tuple[ComparedRow, ...]


def compare(home: Home, video: Video, left: str, right: str, kind: str = "speech") -> Comparison:
    """What two runs offer of a kind.

    Raises:
        NotFound: a run is none of this video's, or offers nothing of the kind.
    """
    runs = [_run(video, left), _run(video, right)]
    lines = [home.follower.run_lines(video.owner, video.id, run, kind) for run in runs]
    for run, found in zip(runs, lines, strict=True):
        results = home.index.state(video.owner, video.id).results
        if not found and not any(r.job == run and r.kind == kind for r, _ in results):
            raise NotFound(f"{run} has no {kind}", f"See: rushes show {video.id}")
    a, b = ([w for line in some for w in words(line.text)] for some in lines)
    alike = SequenceMatcher(None, a, b, autojunk=False).ratio() if a or b else 1.0
    return Comparison(kind, runs[0], runs[1], round(alike, 4), tuple(align_lines(*lines)))


def align_lines(left: Sequence[Observation], right: Sequence[Observation]) -> list[ComparedRow]:
    """Lines that overlap in time stand in one row, in order of time."""
    both = [(o.span.start_us, max(o.span.end_us, o.span.start_us + 1), n, o) for n in (0, 1) for o in (left, right)[n]]
    rows: list[tuple[int, int, tuple[list[str], list[str]]]] = []
    for start, end, side, line in sorted(both, key=lambda row: row[:3]):
        if not rows or start >= rows[-1][1]:
            rows.append((start, end, ([], [])))
        first, last, texts = rows[-1]
        texts[side].append(line.text)
        rows[-1] = first, max(last, end), texts
    return [ComparedRow(start, end, " ".join(a), " ".join(b)) for start, end, (a, b) in rows]


def _run(video: Video, name: str) -> str:
    found = [job for job in video.jobs if job.startswith(name) or job == f"job_{name}"]
    if len(found) != 1 and name not in found:
        raise NotFound(f"{name[:60]!r} is not a run of {video.name}", f"Its runs: {', '.join(video.jobs)}")
    return name if name in found else found[0]
