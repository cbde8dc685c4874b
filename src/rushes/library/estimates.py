"""Estimates on this machine: for a run, a recipe or a 3D conversion, from earlier runs."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from rushes.estimates import estimate
from rushes.estimates.conversion_report import ConversionReport, conversion_report, seconds_per_mb
from rushes.estimates.cost import CostModel
from rushes.estimates.report import Estimate, FilmCost
from rushes.home import Home, machine
from rushes.jobs.intake import JobRequest


class Estimates:
    """Estimates of a home on this machine."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def of_run(
        self, paths: Iterable[str | Path], wanted: JobRequest | None = None, *, signals: bool = False
    ) -> list[Estimate]:
        """How long the work on some files would take, as a range; stages that never ran here are tried first."""
        from rushes.library.work.run import try_out  # noqa: PLC0415 - workers come along

        work = partial(try_out, self._home, signals=signals)
        return estimate.estimate(self._home, [*map(str, paths)], wanted or JobRequest(), machine(), work)

    def of_recipe(self, recipe: str, seconds: float, pixels: tuple[int, int]) -> FilmCost:
        """How long so many seconds of video would take."""
        return estimate.forecast(self._home, recipe, seconds, pixels, machine())

    def conversions(self) -> ConversionReport:
        """What 3D took here: metrics by size, and the history of days, to which the latest is added."""
        return conversion_report(self._home, machine())

    def conversion_seconds_per_mb(self) -> float:
        """How long 3D takes per megabyte, as learnt here or as the settings say; 0 if that is not known."""
        return seconds_per_mb(self._home, machine())

    def cost_model(self, stages: tuple[str, ...], profile: str) -> CostModel:
        """What was learnt of some stages."""
        return estimate.model_of(self._home, stages, profile, machine())
