"""The report on 3D conversions of a home: computed from its finished tasks, and stored day by day."""

from dataclasses import dataclass

from rushes.estimates.conversions import (
    STAGES,
    ConversionDay,
    ConversionMetric,
    change,
    conversions_of,
    days_of,
    keep_days,
    metrics_of,
)
from rushes.estimates.rates import RateHistory
from rushes.home import Home
from rushes.model_settings import inference_of


@dataclass(frozen=True, slots=True)
class ConversionReport:
    """Metrics by the size of segments, the history, and the latest day beside earlier ones (1.2: a fifth slower)."""

    metrics: tuple[ConversionMetric, ...]
    history: tuple[ConversionDay, ...]
    change: float | None


def conversion_report(home: Home, machine: str) -> ConversionReport:
    """What conversions took on this kind of machine; the days are added to the history."""
    found, cloud = conversions_of(_rates(home).of(STAGES, machine)), _cloud(home)
    backend, _ = inference_of(home.settings, "depth")
    history = keep_days(home.records, home.owner, days_of(found, cloud, backend))
    return ConversionReport(tuple(metrics_of(found, cloud)), tuple(history), change(history))


def conversion_metrics(home: Home, machine: str) -> tuple[ConversionMetric, ...]:
    """The metrics alone."""
    return tuple(metrics_of(conversions_of(_rates(home).of(STAGES, machine)), _cloud(home)))


def seconds_per_mb(home: Home, machine: str) -> float:
    """How long 3D takes for each megabyte: as learnt on such a machine, else as the settings say; 0 if unknown."""
    found = conversions_of(_rates(home).of(STAGES, machine))
    megabytes = sum(one.megabytes for one in found)
    return sum(one.seconds for one in found) / megabytes if megabytes else home.settings.eta_seconds_per_mb


def _cloud(home: Home) -> str:
    return "aws" if home.settings.store.startswith("dynamodb://") else "local"


def _rates(home: Home) -> RateHistory:
    return RateHistory(home.ledger, home.records, home.blobs, home.owner)
