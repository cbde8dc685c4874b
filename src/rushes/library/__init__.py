"""The small typed Python API: Library(home).run(path), .search(...), .clip(...).

The command line is a thin layer over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rushes.annotations.imported_sidecars import catch_up
from rushes.files import local_path
from rushes.home import Home, version
from rushes.home_location import find_home, is_named, named_home
from rushes.lazy import offer
from rushes.library.videos import Videos
from rushes.settings import NO_OPTIONS, Options, SettingValue, load
from rushes.wiring import open_home, stores_of
from rushes.wiring.setup import folder_blobs, needed

if TYPE_CHECKING:
    from rushes.annotations.people import People
    from rushes.blobs.port import Blobs
    from rushes.domain.keys import JSON
    from rushes.engines.models.store import ModelSpeed, ModelStatus, ModelStore
    from rushes.estimates.conversion_report import ConversionReport
    from rushes.estimates.cost import CostModel
    from rushes.estimates.report import Estimate
    from rushes.index.port import Hit, SearchResult, SemanticIndex, Summary
    from rushes.jobs.intake import IntakeResult, JobRequest
    from rushes.jobs.maintenance.reports import (
        GcProgress,
        RemovalReport,
        Selection,
        VerifyProgress,
        VerifyReport,
    )
    from rushes.library.clips import Clip, Clips
    from rushes.library.estimates import Estimates
    from rushes.library.jobs import Jobs
    from rushes.library.maintenance import Maintenance
    from rushes.library.queues import Queues
    from rushes.library.spelling import Vocabulary
    from rushes.library.watching.paths import Paths
    from rushes.library.work.progress import RunProgress, RunReport
    from rushes.plan.options import parse_options
    from rushes.plan.recipes import RECIPES
    from rushes.uploads.bucket_puts import BucketPuts
    from rushes.uploads.direct import SignedPart
    from rushes.uploads.expected import ExpectedUpload
    from rushes.uploads.service import Uploads
    from rushes.uploads.staging import Upload, UploadBusy
    from rushes.uploads.writer import UploadWriter

__all__ = ["RECIPES", "Clip", "ConversionReport", "Estimate", "GcProgress", "IntakeResult", "JobRequest", "Library",
           "ModelStatus", "RemovalReport", "RunReport", "Selection", "SettingValue", "SignedPart", "Upload",
           "UploadBusy", "UploadWriter", "Uploads", "VerifyProgress", "VerifyReport", "needed",
           "parse_options", "version"]  # fmt: skip
__getattr__ = offer(__name__, {
    "ConversionReport": "rushes.estimates.conversion_report",
    "Estimate": "rushes.estimates.report",
    "ModelStatus": "rushes.engines.models.store",
    "IntakeResult": "rushes.jobs.intake",
    "JobRequest": "rushes.jobs.intake",
    "GcProgress": "rushes.jobs.maintenance.reports",
    "RemovalReport": "rushes.jobs.maintenance.reports",
    "Selection": "rushes.jobs.maintenance.reports",
    "VerifyProgress": "rushes.jobs.maintenance.reports",
    "VerifyReport": "rushes.jobs.maintenance.reports",
    "Clip": "rushes.library.clips",
    "RunReport": "rushes.library.work.progress",
    "parse_options": "rushes.plan.options",
    "RECIPES": "rushes.plan.recipes",
    "SignedPart": "rushes.uploads.direct",
    "Uploads": "rushes.uploads.service",
    "Upload": "rushes.uploads.staging",
    "UploadBusy": "rushes.uploads.staging",
    "UploadWriter": "rushes.uploads.writer",
})  # fmt: skip

Place = str | Path
Places = Iterable[Place]
Pause = Callable[[float], bool]  # waits that many seconds and answers whether to go on


class Library:
    """A home with its videos: take in, work, look, cut, steer and care."""

    def __init__(
        self,
        home: Place | None = None,
        *,
        create: bool = True,
        take_over: bool = False,
        named: bool | None = None,
        options: Options = NO_OPTIONS,
        process: str = "library",
        places: Places = (),
    ) -> None:
        """Open the home named, else the nearest `.rushes/` upwards, else the user's library.

        Where none is named or found, `places` in one bucket have their home there.

        One that was not `named` by a person must be trusted if its settings reach out or let others in.
        `process` is what a server of the home calls this process where it lists its clients.
        """
        folder = find_home(Path.cwd(), home, map(str, places))
        named = is_named(home) if named is None else named
        self.home: Home = open_home(
            folder, create=create, take_over=take_over, named=named, options=options, process=process
        )
        self.settings, self.folder, self.originals = self.home.settings, self.home.folder, self.home.originals
        self.videos = Videos(self.home)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the home."""
        self.home.close()

    # Rooms, each loaded when it is entered
    @cached_property
    def jobs(self) -> Jobs:
        """What is worked on: looking and steering."""
        from rushes.estimates.learnt import LearntModels
        from rushes.library.jobs import Jobs

        return Jobs(self.home, LearntModels(self._cost_model))

    def _cost_model(self, stages: tuple[str, ...], profile: str) -> CostModel:
        return self.estimates.cost_model(stages, profile)

    @cached_property
    def estimates(self) -> Estimates:
        """How long work takes on this machine."""
        from rushes.library.estimates import Estimates

        return Estimates(self.home)

    @cached_property
    def people(self) -> People:
        """Whose faces are seen."""
        from rushes.annotations.people import People

        return People(self.home)

    @cached_property
    def clips(self) -> Clips:
        """Clips that were asked for."""
        from rushes.library.clips import Clips

        return Clips(self.home)

    @cached_property
    def paths(self) -> Paths:
        """Folders that are watched."""
        from rushes.library.watching.paths import Paths

        return Paths(self.home)

    @cached_property
    def queues(self) -> Queues:
        """Queues of others' work."""
        from rushes.library.queues import Queues

        return Queues(self.home)

    @cached_property
    def uploads(self) -> Uploads:
        """Films that are sent to this server."""
        from rushes.uploads.service import Uploads

        return Uploads(self.home)

    @cached_property
    def puts(self) -> BucketPuts:
        """Films that are sent straight to the bucket."""
        from rushes.uploads.bucket_puts import BucketPuts

        return BucketPuts(self.uploads)

    @cached_property
    def maintenance(self) -> Maintenance:
        """Checking, repairing, clearing up and backing up."""
        from rushes.library.maintenance import Maintenance

        return Maintenance(self.home)

    # Taking in and working
    def add(
        self, paths: Places, wanted: JobRequest | None = None, *, roots: Sequence[str] = (), most: int = 0
    ) -> list[IntakeResult]:
        """Submit files and folders; the same file with the same request is the same job.

        Only files below `roots` (none named: anywhere), and at most so many (0: all).
        """
        from rushes.jobs.intake import JobRequest, add, unseen_by_workers

        refusal = unseen_by_workers(self.home)
        return list(add(self.home, map(str, paths), wanted or JobRequest(), roots, most, refusal))

    def upload(self, paths: Places, wanted: JobRequest | None = None) -> list[IntakeResult]:
        """Send files to the home's bucket and submit them, for workers that do not see this machine's files."""
        from rushes.jobs.intake import JobRequest
        from rushes.uploads.file_upload import upload_files

        return list(upload_files(self.home, [*map(str, paths)], wanted or JobRequest()))

    def run(
        self,
        paths: Places,
        wanted: JobRequest | None = None,
        *,
        slots: int | None = None,
        signals: bool = False,
        beside: bool | None = None,
    ) -> RunReport:
        """Do the work here and now; killed anywhere, the same call goes on.

        What needs models that cannot be fetched waits, and `RunReport.lacks` names them; all else is done.
        """
        from rushes.library.work.run import report_of

        report = report_of(self.running(paths, wanted, slots=slots, signals=signals))
        if self.home.settings.beside if beside is None else beside:
            self.videos.write_beside(report.jobs)
        return report

    def running(
        self, paths: Places, wanted: JobRequest | None = None, *, slots: int | None = None, signals: bool = False
    ) -> Iterator[RunProgress]:
        """`run` as an iterator of its progress, which ends with the report; it writes nothing beside the films."""
        from rushes.jobs.intake import JobRequest
        from rushes.library.work.run import submit_and_run

        return submit_and_run(self.home, [*map(str, paths)], wanted or JobRequest(), slots, signals=signals)

    def expect_upload(self, name: str, wanted: JobRequest | None = None) -> ExpectedUpload:
        """A job for a file that will be put into the home's bucket; `rushes watch` tells when it has arrived."""
        from rushes.jobs.intake import JobRequest
        from rushes.uploads.expected import expect_upload

        return expect_upload(self.home, name, wanted or JobRequest())

    def watch(
        self, places: Places = (), wanted: JobRequest | None = None, *, once: bool = False, pause: Pause | None = None
    ) -> Iterator[IntakeResult]:
        """Take in what is new at these places, look after look, until `pause` says no (or once, all that is there)."""
        from rushes.jobs.intake import JobRequest
        from rushes.library.watching.watch import wait, watch

        return watch(self.home, [*map(str, places)], wanted or JobRequest(), once=once, pause=pause or wait)

    def watching(self, place: Place, *, first: bool = True) -> AbstractContextManager[None]:
        """Take in what is new at a place meanwhile; what is there already is taken in `first`, if wanted."""
        from rushes.library.watching.watch import watching

        return watching(self.home, str(place), first=first)

    def work(self, *, slots: int | None = None, lanes: Sequence[str] = (), until_idle: bool = False) -> int:
        """Be a worker of this home until told to stop; the exit code."""
        from rushes.library.work.workers import HomeWorker

        return HomeWorker(self.home, slots, lanes, until_idle=until_idle).run()

    @property
    def models(self) -> ModelStore:
        """The weights on this machine."""
        return self.home.models

    def bench_models(self, names: Sequence[str] = (), device: str = "") -> list[ModelSpeed]:
        """How long each model that is here (or is named) takes on each device of this machine, or on one of them.

        Raises:
            Refused: there is no such device.
        """
        from rushes.engines.models.benchmark import benchmark
        from rushes.wiring.engines import engines_by_device

        here = [k.model for k in self.models.ls() if k.present and (not names or k.model.id in names)]
        engines = engines_by_device(self.settings, device)
        return [timing for m in here for name, engine in engines.items() if (timing := benchmark(engine, m, name))]

    def where_models_run(self) -> Mapping[str, str]:
        """Where the models of each capability run, as the settings say."""
        from rushes.jobs.needed_models import where_models_run

        return where_models_run(self.home)

    # Looking
    def search(
        self, query: str, limit: int = 20, cursor: str = "", video: str = "", order: str = "best"
    ) -> SearchResult:
        """Time-coded hits over everything that is known by now, best first or by `time`; no text is an error."""
        from rushes.index.search import search

        catch_up(self.home)
        engine = self._semantic(query)
        return search(self.home.index, self.home.owner, query, limit, cursor, video, order, engine)

    def export_hits(self, query: str, kind: str, video: str = "", order: str = "time") -> bytes:
        """All hits of a search as csv, jsonl, edl or otio (cut after cut, whole frames)."""
        from rushes.library.search import export_hits

        return export_hits(self.home, query, kind, lambda cursor: self.search(query, 500, cursor, video, order))

    def next_hit(self, query: str, video: str, at_us: int, *, back: bool = False) -> Hit | None:
        """The hit that follows a moment of a video across the library in shooting order, or the one before it."""
        from rushes.index.search import next_hit

        catch_up(self.home)
        engine = self._semantic(query)
        return next_hit(self.home.index, self.home.owner, query, video, at_us, back=back, semantic=engine)

    def _semantic(self, query: str) -> SemanticIndex | None:
        """An engine of this machine, if the query asks for what means alike (`~about this`)."""
        return self.home.semantic if "~" in query else None

    def vocabulary(self, video: str = "") -> Vocabulary:
        """The words that are said and written in one video, or in the newest."""
        from rushes.library.spelling import VIDEOS, vocabulary

        ids = [video] if video else [v.id for v in self.videos.page("", VIDEOS)[0]]
        return vocabulary(
            line.text for id in ids for kind in ("speech", "text") for line in self.videos.lines(id, kind)
        )

    def similar_query(self, query: str, video: str = "") -> str:
        """A query that finds something, with similar words for those that do not occur; "" if there is none."""
        from rushes.library.spelling import similar_query

        return similar_query(query, self.vocabulary(video), lambda text: self.search(text, 1, "", video).total > 0)

    def summary(self) -> Summary:
        """What there is to find."""
        catch_up(self.home)
        return self.home.index.summary(self.home.owner)

    def clip(
        self,
        video: str,
        start_us: int,
        end_us: int,
        padding_ms: int = 2000,
        out: Place | None = None,
        *,
        proxy: bool = False,
        subtitles: str = "",
        signals: bool = False,
    ) -> Clip:
        """Cut [start - padding, end + padding] here and now, to the exact frame; `video` is a name or an id.

        `subtitles` come as a "track", "burnt" in, or not at all.
        """
        from rushes.library.clips import ClipRequest
        from rushes.library.work.local_clip import cut

        wanted = ClipRequest(start_us, end_us, padding_ms, proxy, subtitles)
        return cut(self.home, self.videos.find(video), wanted, local_path(out) if out else None, signals=signals)

    def recipes(self) -> dict[str, tuple[str, ...]]:
        """What can be wanted of a film: the stages of each recipe."""
        from rushes.plan.recipes import RECIPES, stages_of

        return {name: stages_of(name, self.home.offered_specs) for name in RECIPES}

    def stage_options(self) -> dict[str, dict[str, JSON]]:
        """What a request may set of each stage, with the defaults."""
        specs = self.home.specs.items()
        return {name: {option: spec.options[option] for option in spec.limits} for name, spec in specs if spec.limits}

    def missing_models(self, wanted: JobRequest | None = None) -> tuple[str, ...]:
        """The models that a request needs and that are not on this machine."""
        from rushes.jobs.intake import JobRequest, missing_models

        return missing_models(self.home, wanted or JobRequest())

    # Care
    @staticmethod
    def restore(backup_folder: Place, home: Place) -> int:
        """Make a home from a backup."""
        from rushes.jobs.maintenance.restore import restore

        return restore(local_path(backup_folder), named_home(home), folder_blobs, _blobs_of)


def _blobs_of(home: Path) -> Blobs:
    """Those of a home that is being restored: it has no ledger yet."""
    return stores_of(load(home).settings, home).blobs()
