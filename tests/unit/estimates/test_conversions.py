"""Conversions: metrics by size, a table of days, the latest beside earlier ones."""

from pathlib import Path

from rushes.estimates.conversions import (
    NAMESPACE,
    ConversionDay,
    change,
    conversions_of,
    days_of,
    keep_days,
    metrics_of,
)
from rushes.estimates.rates import Rate
from rushes.library import Library


def rate(stage: str, chunk: int, seconds: float, megabytes: float, day: str = "2026-11-18", machine: str = "m") -> Rate:
    task = f"job_a.{stage}.{chunk:05d}"
    at = f"{day}T10:00:0{chunk}Z"
    return Rate(task, stage, machine, seconds, 60.0, 100, at, source_bytes=int(megabytes * 1e6))


def both(chunk: int, megabytes: float, day: str = "2026-11-18") -> dict[str, list[Rate]]:
    return {"depth": [rate("depth", chunk, 10, megabytes, day)], "stereo": [rate("stereo", chunk, 20, megabytes, day)]}


def test_a_segment_counts_when_every_stage_of_it_was_measured() -> None:
    whole = both(0, 4)
    rates = {"depth": [*whole["depth"], rate("depth", 1, 5, 4)], "stereo": whole["stereo"], "develop": whole["depth"]}
    (one,) = conversions_of(rates)
    assert (one.seconds, one.megabytes, one.seconds_per_mb, one.bucket) == (30, 4, 7.5, "0-5")


def test_metrics_have_the_documents_names_and_dimensions() -> None:
    sizes = [1, 4.9, 5, 20, 49.9, 50, 900]
    found = [one for n, size in enumerate(sizes) for one in conversions_of(both(n, size))]
    told = metrics_of(found, "aws")
    assert {m.namespace for m in told} == {NAMESPACE}
    counts = {(m.name, m.dimensions["SegmentSizeBucket"]): m.count for m in told}
    by_size = {"0-5": 2, "5-20": 1, "20-50": 2, "50+": 2}
    names = ("SegmentConversionDurationSeconds", "ConversionSecondsPerMb")
    assert counts == {(name, bucket): count for name in names for bucket, count in by_size.items()}
    largest = {m.name: m.average for m in told if m.dimensions == {"Cloud": "aws", "SegmentSizeBucket": "5-20"}}
    assert largest == {"SegmentConversionDurationSeconds": 30, "ConversionSecondsPerMb": 6}


def test_the_history_has_the_documents_columns_and_the_latest_day_is_compared() -> None:
    found = [*conversions_of(both(0, 10, "2026-11-16")), *conversions_of(both(1, 5, "2026-11-18"))]
    days = days_of(found, "aws", "local")
    assert [(d.date, d.avg_duration_sec, d.eta_seconds_per_mb) for d in days] == [
        ("2026-11-16", 30, 3),
        ("2026-11-18", 30, 6),
    ]
    assert (change(days), change(days[:1]), change([])) == (2.0, None, None)


def test_a_day_is_kept_once_and_days_of_which_nothing_is_known_any_more_stay(tmp_path: Path) -> None:
    old, new = (
        ConversionDay("local", "local", "m", 1.0, eta, date) for eta, date in ((2.0, "2026-11-01"), (3.0, "2026-11-02"))
    )
    with Library(tmp_path / "home") as library:
        records, owner = library.home.records, library.home.owner
        assert keep_days(records, owner, [old]) == [old]
        assert keep_days(records, owner, [new]) == [old, new]
        assert keep_days(records, owner, [new]) == [old, new]
