"""The cost of a task: seconds = fixed + slope * work, fitted to finished tasks; and the error of the fit."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

from rushes.domain.grouping import grouped
from rushes.domain.job import Job
from rushes.domain.keys import parse_task_id
from rushes.domain.stage import Scope, StageSpec
from rushes.domain.video import VideoFacts
from rushes.estimates.rates import Rate
from rushes.estimates.report import Range

PIXELS = 1920 * 1080  # of a picture that counts as one
ENOUGH = 3  # tasks of a stage that make a trial unnecessary
NINE_OF_TEN = 1.645  # standard deviations to each side that hold nine of ten
UNKNOWN_SPREAD = 0.7  # of a stage that was never measured here: within a factor of three
FIRST_SPREAD, FIRST_FILMS = 0.25, 2.0  # what is assumed before films were compared, and how many that counts for
_LEAST_VOICED = 0.5  # seconds of speech below which a time says nothing about transcription
_APART = 1.5  # two tasks tell a slope if one is this much larger
_TICK = 0.01  # seconds: what is quicker than that is all the same
_LIKE = 0.3  # a film of a picture 1.35 times as large (exp of this) says about a third as much
_SLOPES = 10  # that make a line; with fewer, time is proportional to work

# Seconds per second of film (of 1080p, or of speech) on two cores without a GPU: said before anything was measured.
REFERENCE = {
    "develop": 0.16, "audio": 0.02, "transcribe": 0.20, "read_text": 0.12, "objects": 0.02, "faces": 0.05,
    "places": 0.01, "pictures": 0.05, "stills": 0.02, "depth": 0.6, "source_segments": 0.02, "stereo": 1.0,
    "join": 0.05,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LinearCost:
    """Seconds by work: by the second of film, of film at its size, or of speech."""

    fixed: float
    slope: float

    def at(self, work: float) -> float:
        """Seconds for so much work."""
        return self.fixed + self.slope * work


@dataclass(frozen=True, slots=True)
class Footage:
    """What of a film decides its cost."""

    pixels: int
    sound: bool = True
    seconds: float = 0.0
    size: int = 0

    @staticmethod
    def of(facts: VideoFacts) -> "Footage":
        """A film as probe found it."""
        pixels = facts.video.width * facts.video.height if facts.video else 0
        return Footage(pixels, bool(facts.audio), float(facts.duration), facts.size)

    @staticmethod
    def of_job(job: Job) -> "Footage":
        """The film of a job that was opened."""
        doc = json.loads(job.facts)
        pixels = (doc.get("width") or 0) * (doc.get("height") or 0)
        return Footage(pixels, bool(doc.get("audio")), doc["duration_us"] / 1e6, doc.get("size") or 0)


@dataclass(frozen=True, slots=True)
class StageCost:
    """The cost of one stage on one kind of machine."""

    line: LinearCost
    by_pixels: bool
    voiced: float | None  # the share of speech in films; None if it listens to nothing
    bytes_per_second: float
    measured: int  # tasks; none: by the reference

    def seconds(self, media_seconds: float, footage: Footage) -> float:
        """What a task on so much footage takes."""
        if self.voiced is not None:
            return self.line.at(self.voiced * media_seconds) if footage.sound else self.line.fixed
        return self.line.at(media_seconds * (footage.pixels / PIXELS if self.by_pixels else 1.0))


@dataclass(frozen=True, slots=True)
class FilmError:
    """How far a film lay off the sum of its tasks' usual times."""

    pixels: int
    log: float  # of what it took by what was said


@dataclass(frozen=True, slots=True)
class CostModel:
    """The costs of some stages, and the spread (the standard deviation of the logarithm) of whole films around them."""

    stages: Mapping[str, StageCost]
    spread: float
    films: Sequence[FilmError] = ()
    scale: float = 1.0  # films of this picture size took so much longer than the sum of their tasks' usual times

    def for_size(self, pixels: int) -> "CostModel":
        """The same for films of a picture size."""
        return replace(self, scale=math.exp(_usual_error(self.films, pixels)))

    def seconds(self, stage: str, media_seconds: float, footage: Footage) -> float:
        """What a task takes; nothing if nothing is known of its stage."""
        cost = self.stages.get(stage)
        return cost.seconds(media_seconds, footage) * self.scale if cost else 0.0

    def around(self, seconds: float, films: int = 1) -> Range:
        """The range around a time; of many films, what is off in one is made up for by another, half of it."""
        factor = math.exp(NINE_OF_TEN * self.spread * math.sqrt(0.5 + 0.5 / max(1, films)))
        return seconds / factor, seconds * factor


def cost_model(history: Mapping[str, Sequence[Rate]], specs: Mapping[str, StageSpec], profile: str) -> CostModel:
    """Fit the stages, then see how far films lie off, each beside the others."""
    history = {s: [r for r in rates if not specs[s].models or r.profile == profile] for s, rates in history.items()}
    stages = {stage: _stage_cost(specs[stage], rates) for stage, rates in history.items()}
    known = {stage: cost for stage, cost in stages.items() if cost}
    films = list(_errors(history, known))
    others = [films[:n] + films[n + 1 :] for n in range(len(films))]
    off = sum((film.log - _usual_error(rest, film.pixels)) ** 2 for film, rest in zip(films, others, strict=True))
    spread = math.sqrt((FIRST_FILMS * FIRST_SPREAD**2 + off) / (FIRST_FILMS + len(films)))
    guessed = any(not cost.measured for cost in known.values())
    return CostModel(known, max(spread, UNKNOWN_SPREAD) if guessed else spread, films)


def _usual_error(films: Sequence[FilmError], pixels: int) -> float:
    """The mean of films of about this picture size, and of one that was as said."""
    weights = [math.exp(-abs(math.log(max(1, film.pixels) / max(1, pixels))) / _LIKE) for film in films]
    return sum(weight * film.log for weight, film in zip(weights, films, strict=True)) / (1.0 + sum(weights))


def _stage_cost(spec: StageSpec, rates: Sequence[Rate]) -> StageCost | None:
    size = median(r.size / r.media_seconds for r in rates) if rates else 0.0
    heard = [r for r in rates if r.voiced_seconds is not None]
    voiced = sum(r.voiced_seconds or 0.0 for r in heard) / sum(r.media_seconds for r in heard) if heard else None
    if telling := [r for r in rates if r.voiced_seconds is None or r.voiced_seconds >= _LEAST_VOICED]:
        line, by_pixels = _better_fit(telling, usual=_by_pixels(spec))
        return StageCost(line, by_pixels, voiced, size, len(rates))
    if spec.name in REFERENCE:
        spoken = 1.0 if spec.name == "transcribe" and not heard else voiced
        return StageCost(LinearCost(0.0, REFERENCE[spec.name]), _by_pixels(spec), spoken, size, len(rates))
    quick = StageCost(LinearCost(0.0, 0.0), by_pixels=False, voiced=None, bytes_per_second=0.0, measured=ENOUGH)
    return None if spec.scope is Scope.CHUNK else quick


def _by_pixels(spec: StageSpec) -> bool:
    """Whether a stage decodes the original's pictures; `audio` reads the whole file, but only its sound."""
    return spec.reads_source and spec.scope is Scope.CHUNK


def _better_fit(rates: Sequence[Rate], *, usual: bool) -> tuple[LinearCost, bool]:
    """By length, or by length and size of the picture: whichever is less off; it tells which."""
    found = []
    for by_pixels in (usual, not usual):
        points = [(_work(rate, by_pixels=by_pixels), rate.seconds) for rate in rates]
        line = _fit(points)
        off = median(abs(math.log(max(line.at(work), _TICK) / max(seconds, _TICK))) for work, seconds in points)
        found.append((off, by_pixels != usual, line, by_pixels))
    _, _, line, by_pixels = min(found, key=lambda one: one[:2])
    return line, by_pixels


def _work(rate: Rate, *, by_pixels: bool) -> float:
    if rate.voiced_seconds is not None:
        return rate.voiced_seconds
    return rate.media_seconds * (rate.pixels / PIXELS if by_pixels and rate.pixels else 1.0)


def _fit(points: Sequence[tuple[float, float]]) -> LinearCost:
    """The median of the slopes between tasks of different size (Theil-Sen), so that a few odd tasks change nothing."""
    slopes = [
        (s2 - s1) / (w2 - w1) for (w1, s1), (w2, s2) in combinations(points, 2) if max(w1, w2) > _APART * min(w1, w2)
    ]
    if len(slopes) < _SLOPES:
        return LinearCost(0.0, median(seconds / work for work, seconds in points))
    slope = max(0.0, median(slopes))
    return LinearCost(max(0.0, median(seconds - slope * work for work, seconds in points)), slope)


def _errors(history: Mapping[str, Sequence[Rate]], costs: Mapping[str, StageCost]) -> Iterable[FilmError]:
    rates = [rate for stage in costs for rate in history[stage]]
    for some in grouped(rates, lambda rate: parse_task_id(rate.task)[0]).values():
        took = sum(rate.seconds for rate in some)
        said = sum(costs[rate.stage].seconds(rate.media_seconds, Footage(rate.pixels)) for rate in some)
        if took > 0 and said > 0:
            yield FilmError(some[0].pixels, math.log(took / said))
