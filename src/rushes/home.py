"""A home: settings, and the ports of its stores, each opened when it is first used."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rushes.blob_identity import check_identity
from rushes.blobs.port import Blobs, Multipart
from rushes.domain.errors import NotFound, Refused, RushesError
from rushes.domain.keys import parse_task_id
from rushes.domain.stage import StageSpec
from rushes.domain.task_types import describe_task
from rushes.domain.video import BUCKETS, BlockOriginal, Fingerprint, RemoteOriginal
from rushes.domain.worker import NOW, QUEUE_SOURCE, QUEUE_STAGE, bound_lane, queue_lane
from rushes.home_folder import originals_of
from rushes.index.follower import Follower
from rushes.index.port import Index, SemanticIndex
from rushes.ledger.port import Ledger
from rushes.ledger.process import host_id
from rushes.media.originals import LocalOriginal
from rushes.model_settings import (
    LOCAL,
    PICTURES,
    STUB,
    inference_by_stage,
    inference_of,
    models_folder,
    own_model,
    own_models,
    uses_stub,
)
from rushes.records.port import Record, Records, all_records
from rushes.settings import REMOTE, Loaded, Settings
from rushes.sources.port import ExpectedUploads, Source, StorageEvents
from rushes.stores import Stores
from rushes.telemetry import log
from rushes.tracing import traced
from rushes.transport.port import Transport

if TYPE_CHECKING:
    from rushes.engines.models.store import ModelStore
    from rushes.plan.job_names import JobNames

LANES, AUTO = ("cpu", "gpu"), "auto"


SEARCH = "search"  # asks an engine as a stage does


@dataclass(frozen=True)
class Home:
    """One home, opened: everything that library and surfaces work with."""

    folder: Path
    loaded: Loaded
    stores: Stores
    take_over: bool = False  # whatever results are there become this store's

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    @property
    def owner(self) -> str:
        """Whose videos, jobs and results these are."""
        return self.settings.owner

    @property
    def originals(self) -> Path:
        """The folder that relative paths of originals begin in."""
        return originals_of(self.folder)

    def place_of(self, path: str) -> str:
        """Where an original lies, as an absolute path or as it is addressed; "" if nobody said where."""
        return path if not path or path.startswith((*BUCKETS, QUEUE_SOURCE)) else str(self.originals / path)

    @cached_property
    def ledger(self) -> Ledger:
        """Jobs, tasks, leases, results, events."""
        return traced(self.stores.ledger(), "ledger")

    @cached_property
    def records(self) -> Records:
        """What people said."""
        return self.stores.records()

    def all_records(self, kind: str, video: str = "") -> Iterator[Record]:
        """The owner's records of a kind, or those of them that are about one video."""
        found = all_records(self.records, kind, self.settings.owner)
        return (record for record in found if video in ("", record.doc.get("video")))

    def delete_record(self, kind: str, id: str) -> None:
        """Delete a record of the owner.

        Raises:
            NotFound: there is none.
        """
        if not self.records.delete(kind, self.settings.owner, id):
            raise NotFound(f"no {kind} {id[:60]!r}")

    @cached_property
    def blobs(self) -> Blobs:
        """Immutable files, once they are known to be those of this store.

        Raises:
            WrongHome: they are another's.
        """
        blobs, s = self.stores.blobs(), self.settings
        check_identity(self.records, blobs, restores=not (s.store or s.blobs), take_over=self.take_over)
        return blobs

    @cached_property
    def job_names(self) -> JobNames:
        """The published names of a result that a job has."""
        from rushes.plan.job_names import JobNames  # noqa: PLC0415 - the planner is loaded when it is needed

        return JobNames(self.ledger, self.settings.transcripts_prefix, self.settings.video_prefix)

    @cached_property
    def multipart(self) -> Multipart | None:
        """How browsers send films straight to the bucket, if they can."""
        return self.stores.multipart()

    @cached_property
    def index(self) -> Index:
        """The projection for readers."""
        return traced(self.stores.index(), "index")

    @cached_property
    def semantic(self) -> SemanticIndex:
        """Search by meaning, with the engine of the settings."""
        from rushes.index.search.pictures import BothSearches  # noqa: PLC0415 - numpy is loaded when it is needed
        from rushes.index.search.semantic import MODEL, open_semantic  # noqa: PLC0415

        engine, made_up = self.stores.engine(SEARCH), inference_of(self.settings, SEARCH)[0] == STUB
        sentences = open_semantic(engine, STUB if made_up else self.models.known[MODEL].name, self.folder)
        pictures = self._pictures(engine, made_up=made_up)
        return BothSearches(sentences, pictures) if pictures else sentences

    def _pictures(self, engine: Any, *, made_up: bool) -> SemanticIndex | None:
        """Search by what is seen; None without a pair of nets for it."""
        from rushes.engines.models.pictures import describe_pair  # noqa: PLC0415
        from rushes.index.search.pictures import PictureSearch  # noqa: PLC0415

        if not (pair := own_model(self.settings, PICTURES, self.settings.profile)):
            return None
        try:
            folder = self.models.find(pair)
            least, model = describe_pair(folder).least, self.models.name_of(folder)
        except RushesError as e:
            log.warning("pictures are not searched: %s", e)
            return None
        return PictureSearch(engine, STUB if made_up else model, least)

    @cached_property
    def follower(self) -> Follower:
        """Brings the index up to date."""
        return Follower(self.ledger, self.records, self.blobs, self.index, uses_stub(self.settings))

    @cached_property
    def transport(self) -> Transport:
        """Hints."""
        return self.stores.transport(self.hinted_lanes, self.describe)

    @cached_property
    def specs(self) -> Mapping[str, StageSpec]:
        """What each stage says of itself.

        Raises:
            Refused: stage_inference names a stage that does not exist.
        """
        from rushes.stages.registry import load_stages, specs_of  # noqa: PLC0415 - stages import their media libraries

        specs = specs_of(load_stages(lambda stage: inference_of(self.settings, stage)[0] != LOCAL))
        if unknown := ", ".join(inference_by_stage(self.settings).keys() - specs.keys() - {SEARCH}):
            asking = (name for name, spec in specs.items() if spec.asks_engine)
            raise Refused(f"stage_inference names unknown stages: {unknown}", f"Choose from: {', '.join(asking)}.")
        return specs

    @property
    def offered_specs(self) -> Mapping[str, StageSpec]:
        """Stages that recipes here have: pictures are embedded only by a model that is configured."""
        has_pair = any(capability == PICTURES for capability, _ in own_models(self.settings))
        return {name: spec for name, spec in self.specs.items() if name != PICTURES or has_pair}

    @cached_property
    def models(self) -> ModelStore:
        """The weights on this machine."""
        from rushes.engines.models.store import ModelStore  # noqa: PLC0415 - most commands use no model

        paths = [Path(path) for _, path in own_models(self.settings)]
        return ModelStore(models_folder(self.settings), paths=paths)

    @property
    def slots(self) -> int:
        """How many slots a worker has unless told."""
        return self.settings.slots or os.cpu_count() or 1

    @cached_property
    def every_lane(self) -> tuple[str, ...]:
        """The lanes that a worker can be told to take, and any that a stage of its own is in."""
        return tuple(sorted({*LANES, *(spec.lane for spec in self.specs.values())} - {*NOW}))

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of its own queues, which programs use over gRPC."""
        return tuple(name for part in self.settings.queues.split(",") if (name := part.strip()))

    @property
    def hinted_lanes(self) -> tuple[str, ...]:
        """The lanes that hints are sent about, those of its own queues too."""
        return (*self.every_lane, *NOW, *(queue_lane(self.owner, queue) for queue in self.queues))

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes that a worker takes unless told, `auto` being all.

        Raises:
            Refused: there is no such lane; it would be waited for in vain.
        """
        wanted = [lane.strip() for lane in self.settings.lanes.split(",")]
        for lane in wanted:
            if lane not in (*self.every_lane, AUTO):
                raise Refused(f"unknown lane {lane!r}", f"Choose from: {', '.join(self.every_lane)}, {AUTO}")
        return self.every_lane if AUTO in wanted else tuple(wanted)

    def source(self, place: str) -> Source:
        """The place that a path or an address names."""
        return self.stores.source(place)

    @cached_property
    def storage_events(self) -> StorageEvents | None:
        """What storages tell of themselves, if anybody listens."""
        return self.stores.storage_events()

    @cached_property
    def expected_uploads(self) -> ExpectedUploads | None:
        """Uploads to the home's bucket that jobs wait for."""
        return self.stores.expected_uploads()

    def original(self, taken_in: Fingerprint, sha256: str = "") -> RemoteOriginal:
        """The original that was taken in as this, with that content if it is known: a file here, or one in a bucket."""
        return self._bucket_original(taken_in) if taken_in.far else LocalOriginal(self.originals, taken_in, sha256)

    @cached_property
    def _bucket_original(self) -> Callable[[Fingerprint], BlockOriginal]:
        return self.stores.bucket_originals()

    @property
    def scratch(self) -> Path:
        """Where slots of this machine put what they need for a while."""
        return self.folder / "scratch"

    @cached_property
    def site(self) -> str:
        """What the machines that see the same files as this one are called; "" where all work is done on this one."""
        if not self.settings.store or self.settings.store.startswith(REMOTE):
            return ""
        if self.settings.site:
            return self.settings.site
        name = re.sub(r"[^A-Za-z0-9-]", "-", platform.node())[:30]
        return f"{name}-{hashlib.sha256(host_id().encode()).hexdigest()[:6]}"

    def seen_by(self, source: Fingerprint) -> Fingerprint:
        """An original with the site that sees it; what lies in a bucket, or in a folder that is shared, all see."""
        shared = self.settings.shared and not Path(source.path).is_absolute()
        return replace(source, site="" if source.far or shared else self.site)

    def lane_of(self, task: str) -> str | None:
        """The lane that a task is announced in; None if its stage is not known here."""
        job, stage, _ = parse_task_id(task)
        if stage == QUEUE_STAGE:
            return self._queue_lane_of(job)
        spec = self.specs.get(stage)
        if spec is None or not spec.reads_source or not self.site:
            return spec.lane if spec else None
        try:
            return bound_lane(spec.lane, self._site_of(job))
        except (RushesError, ValueError, LookupError, TypeError, AttributeError):  # a hint is worth no failure
            return spec.lane

    def describe(self, tasks: Sequence[str]) -> dict[str, str]:
        """What some tasks are about, in JSON and in the words of the documents; nothing if that cannot be read."""
        try:
            rows = self.ledger.tasks(ids=tasks, limit=len(tasks)).rows
            jobs = {job: self.ledger.job(job) for job in {row.job for row in rows}}
            places = {id: self.place_of(json.loads(job.payload)["source"]["path"]) for id, job in jobs.items()}
            return {row.id: describe_task(row, jobs[row.job], places[row.job]) for row in rows}
        except (RushesError, ValueError, LookupError, TypeError, AttributeError):  # a hint is worth no failure
            return {}

    @cached_property
    def _queue_lane_of(self) -> Callable[[str], str | None]:
        """The lane of a job in one of its own queues, None if it is in no queue here."""

        def found(job: str) -> str | None:
            row = self.ledger.job(job)
            return queue_lane(row.owner, row.queue) if row.owner == self.owner and row.queue in self.queues else None

        return lru_cache(4096)(found)

    @cached_property
    def _site_of(self) -> Callable[[str], str]:
        """The site of a job's original; it never changes."""
        return lru_cache(4096)(lambda job: str(json.loads(self.ledger.job(job).payload)["source"].get("site", "")))

    def close(self) -> None:
        """Close what was opened."""
        for name in ("ledger", "records", "index", "transport"):
            if name in self.__dict__:
                self.__dict__[name].close()


def machine() -> str:
    """What kind of machine this is: rates are learnt by it."""
    return f"{platform.machine()}-{os.cpu_count() or 1}"


@cache
def version() -> str:
    """The version of this package."""
    from importlib import metadata  # noqa: PLC0415 - it takes longer to load than a home to open

    return metadata.version("rushes")
