"""3D conversions: seconds per segment by size, and their history by day, for tables and alarms."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median

from rushes.domain.grouping import grouped
from rushes.domain.keys import parse_task_id, short
from rushes.estimates.rates import Rate
from rushes.records.port import Records, all_records

KIND = "conversions"  # records of this kind: what a kind of machine took on a day
NAMESPACE = "StereoSpot/Conversion"
STAGES = ("depth", "stereo")  # what turns a segment into 3D
_BUCKETS = ((5, "0-5"), (20, "5-20"), (50, "20-50"))  # megabytes
_MB = 1e6


@dataclass(frozen=True, slots=True)
class Conversion:
    """One segment that was made in 3D: how long that took, and how large it is in the original."""

    machine: str
    seconds: float
    megabytes: float
    at: str

    @property
    def seconds_per_mb(self) -> float:
        """What an estimate by file size goes by."""
        return self.seconds / self.megabytes

    @property
    def bucket(self) -> str:
        """Its size in megabytes, as metrics name it."""
        return next((name for most, name in _BUCKETS if self.megabytes < most), "50+")


@dataclass(frozen=True, slots=True)
class ConversionMetric:
    """A metric under the name that alarms and tables know it by."""

    namespace: str
    name: str
    unit: str
    dimensions: Mapping[str, str]
    count: int
    average: float


@dataclass(frozen=True, slots=True)
class ConversionDay:
    """What conversions took on one kind of machine on one day."""

    cloud: str
    backend: str
    instance_type: str
    avg_duration_sec: float
    eta_seconds_per_mb: float
    date: str


def conversions_of(rates: Mapping[str, Iterable[Rate]]) -> list[Conversion]:
    """Segments whose every stage was measured, oldest first."""
    mine = (rate for stage in STAGES for rate in rates.get(stage, ()) if rate.source_bytes)
    segments = grouped(mine, lambda rate: parse_task_id(rate.task)[::2]).values()
    whole = [some for some in segments if {rate.stage for rate in some} == set(STAGES)]
    return sorted(map(_conversion, whole), key=lambda one: one.at)


def _conversion(rates: Sequence[Rate]) -> Conversion:
    seconds, latest = sum(rate.seconds for rate in rates), max(rates, key=lambda rate: rate.at)
    return Conversion(latest.machine, seconds, latest.source_bytes / _MB, latest.at)


def metrics_of(conversions: Iterable[Conversion], cloud: str) -> list[ConversionMetric]:
    """Duration and seconds for each megabyte, by the size of the segment."""
    found = []
    for bucket, some in grouped(conversions, lambda one: one.bucket).items():
        about = {"Cloud": cloud, "SegmentSizeBucket": bucket}
        took, each = fmean(one.seconds for one in some), fmean(one.seconds_per_mb for one in some)
        named = (("SegmentConversionDurationSeconds", took), ("ConversionSecondsPerMb", each))
        found += [ConversionMetric(NAMESPACE, name, "Seconds", about, len(some), value) for name, value in named]
    return found


def days_of(conversions: Iterable[Conversion], cloud: str, backend: str) -> list[ConversionDay]:
    """A row for each kind of machine and day, oldest first."""
    days = grouped(conversions, lambda one: (one.at[:10], one.machine))
    return [
        ConversionDay(cloud, backend, machine, round(fmean(one.seconds for one in some), 3), _eta(some), date)
        for (date, machine), some in sorted(days.items())
    ]


def _eta(some: Sequence[Conversion]) -> float:
    return round(sum(one.seconds for one in some) / sum(one.megabytes for one in some), 3)


def change(history: Sequence[ConversionDay]) -> float | None:
    """The latest day beside the median of earlier ones on such a machine: 1.2 is a fifth slower; None for the first."""
    *earlier, latest = history or (None,)
    before = [day.eta_seconds_per_mb for day in earlier if latest and day and day.instance_type == latest.instance_type]
    return round(latest.eta_seconds_per_mb / median(before), 3) if latest and before else None


def keep_days(records: Records, owner: str, days: Iterable[ConversionDay]) -> list[ConversionDay]:
    """Add these days to the history, in place of what was known of them; answers all of it, oldest first."""
    for day in days:
        records.put(KIND, owner, short([day.date, day.cloud, day.backend, day.instance_type]), asdict(day))
    known = [ConversionDay(**record.doc) for record in all_records(records, KIND, owner)]
    return sorted(known, key=lambda day: (day.date, day.instance_type))
