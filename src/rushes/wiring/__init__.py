"""A home and its settings become ledger, blobs, index, stages and workers; `stores` names the backends."""

import os
import platform
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from rushes.blobs.port import Blobs, Multipart
from rushes.domain.errors import Refused, WrongHome
from rushes.domain.keys import parse_task_id
from rushes.domain.stage import StageSpec
from rushes.domain.video import Fingerprint, Footage
from rushes.domain.worker import Incarnation, worker_id
from rushes.engines.models.store import ModelStore
from rushes.index.follower import Follower
from rushes.index.port import Index
from rushes.jobs.opening import Opening
from rushes.jobs.reconcile import Reconciler
from rushes.ledger.clock import boot_id
from rushes.ledger.port import Ledger
from rushes.ledger.process import host_id, process_start
from rushes.records.port import Records
from rushes.settings import HOME_NAME, Loaded, Settings, load, models_folder, own_model
from rushes.sources.port import Awaited, Source
from rushes.sources.storage_events import News
from rushes.stages.port import Stage
from rushes.stages.registry import cards_of, load_stages
from rushes.transport.port import Transport
from rushes.wiring.stores import (
    Stores,
    awaited_of,
    clock_of,
    far_originals,
    multipart_of,
    news_of,
    source_of,
    stores_of,
)
from rushes.worker import core
from rushes.worker.intake import NOW
from rushes.worker.scratch import clear
from rushes.worker.shell import Outfit, Shell

VERSION = version("rushes")
LANES, AUTO = ("cpu", "gpu"), "auto"


@dataclass(frozen=True)
class Home:
    """One home, opened: everything that library and surfaces work with."""

    folder: Path
    loaded: Loaded
    take_over: bool = False

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    @property
    def originals(self) -> Path:
        """The folder that relative paths of originals begin in."""
        return self.folder.parent if self.folder.name == HOME_NAME else self.folder

    @cached_property
    def stores(self) -> Stores:
        """Which backends the settings mean."""
        return stores_of(self.settings, self.folder, take_over=self.take_over)

    @cached_property
    def ledger(self) -> Ledger:
        """Jobs, tasks, leases, results, events."""
        return self.stores.ledger()

    @cached_property
    def records(self) -> Records:
        """What people said."""
        return self.stores.records()

    @cached_property
    def blobs(self) -> Blobs:
        """Immutable files."""
        return self.stores.blobs()

    @cached_property
    def multipart(self) -> Multipart | None:
        """How browsers send films straight to the bucket, if they can."""
        return multipart_of(self.settings)

    @cached_property
    def index(self) -> Index:
        """The projection for readers."""
        return self.stores.index()

    def snapshots(self) -> Mapping[str, Callable[[Path], None]]:
        """The files that a backup must copy through their store."""
        return self.stores.snapshots(self.ledger, self.records)

    @cached_property
    def follower(self) -> Follower:
        """Brings the index up to date."""
        return Follower(self.ledger, self.records, self.blobs, self.index)

    @cached_property
    def transport(self) -> Transport:
        """Hints."""
        return self.stores.transport((*self.every_lane, *NOW))

    def store_clock(self) -> float | None:
        """Seconds since 1970 by the store's own clock, None if that is this machine's."""
        return clock_of(self.settings)

    @cached_property
    def stages(self) -> Mapping[str, Stage]:
        """Every stage there is."""
        return load_stages()

    @cached_property
    def cards(self) -> Mapping[str, StageSpec]:
        """What each stage says of itself."""
        return cards_of(self.stages)

    @cached_property
    def models(self) -> ModelStore:
        """The weights on this machine."""
        own = [own_model(self.settings, c) for c in ("speech", "text", "objects", "faces", "places")]
        return ModelStore(models_folder(self.settings), paths=[Path(path) for path in own if path])

    @property
    def slots(self) -> int:
        """How many slots a worker has unless told."""
        return self.settings.slots or os.cpu_count() or 1

    @cached_property
    def every_lane(self) -> tuple[str, ...]:
        """The lanes that a worker can be told to take, and any that a stage of its own is in."""
        return tuple(sorted({*LANES, *(card.lane for card in self.cards.values())} - {*NOW}))

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes that a worker takes unless told, `auto` being all.

        Raises:
            Refused: there is no such lane; it would be waited for in vain.
        """
        wanted = [lane.strip() for lane in self.settings.lanes.split(",")]
        for lane in wanted:
            if lane not in (*self.every_lane, AUTO):
                raise Refused(f"there is no lane {lane!r}", f"Choose of: {', '.join(self.every_lane)}, {AUTO}")
        return self.every_lane if AUTO in wanted else tuple(wanted)

    def source(self, place: str) -> Source:
        """The place that a path or an address names."""
        return source_of(self.settings, place)

    @cached_property
    def news(self) -> News | None:
        """What storages tell of themselves, if anybody listens."""
        return news_of(self.settings)

    @cached_property
    def awaited(self) -> Awaited | None:
        """Uploads to the home's bucket that jobs wait for."""
        return awaited_of(self.settings, self.ledger)

    def original(self, taken_in: Fingerprint) -> Footage:
        """The original that was taken in as this: a file here, or one in a bucket."""
        return self._far(taken_in) if taken_in.far else self.originals / taken_in.path

    @cached_property
    def _far(self) -> Callable[[Fingerprint], Footage]:
        return far_originals(self.settings, self.folder)

    def worker(
        self,
        *,
        slots: int | None = None,
        lanes: Sequence[str] = (),
        until: Callable[[Shell], bool] | None = None,
        ledger: Ledger | None = None,
    ) -> Shell:
        """A worker of this home; another ledger may stand in for the home's, to hand out only some of its work."""
        s = self.settings
        by_hint = self.transport.queues and ledger is None  # who takes only some work leaves hints to the others
        look_seconds = self.transport.look_seconds if ledger is None else 1.0
        count = self.slots if slots is None else slots
        lanes = tuple(lanes) or self.lanes
        opening = Opening(self.ledger, self.blobs, self.cards)
        outfit = Outfit(
            ledger=ledger or self.ledger,
            transport=self.transport,
            blobs=self.blobs,
            sweeper=Reconciler(self.ledger, self.transport, self.lane_of),
            open_plan=opening,
            check_plan=opening.check,
            opens_plan=lambda stage: self.cards[stage].opens_plan if stage in self.cards else False,
            lane_of=self.lane_of,
            slot_argv=[sys.executable, "-m", "rushes.wiring", str(self.folder)],
            slot_env={"RUSHES_THREADS": str(self._threads(count))},
            limits=core.Limits(count, lanes, s.task_seconds, s.drain_seconds, look_seconds, by_hint),
            born=lambda: incarnation(lanes, count),
            scratch=self.scratch,
            slot_memory=s.slot_memory_mb * 2**20,
            slot_tasks=s.slot_tasks,
            reserve=s.reserve_mb * 2**20,
        )
        return Shell(outfit, until or (lambda _shell: False))

    @property
    def scratch(self) -> Path:
        """Where slots of this machine put what they need for a while."""
        return self.folder / "scratch"

    def lane_of(self, task: str) -> str | None:
        """The lane that a task is announced in; None if its stage is not known here."""
        card = self.cards.get(parse_task_id(task)[1])
        return card.lane if card else None

    def tidy(self) -> None:
        """Remove scratch and temporary files whose process is gone."""
        self.blobs.tidy()
        clear(self.scratch)

    def close(self) -> None:
        """Close what was opened."""
        for name in ("ledger", "records", "index", "transport"):
            if name in self.__dict__:
                self.__dict__[name].close()

    def _threads(self, slots: int) -> int:
        return self.settings.threads or max(1, (os.cpu_count() or 1) // max(1, slots))


def open_home(home: Path, *, create: bool = True, take_over: bool = False) -> Home:
    """Open a home, making it if it is not there.

    Raises:
        WrongHome: it cannot be opened safely from here.
    """
    if not home.is_dir() and not create:
        raise WrongHome(f"there is no home at {home}", "Make one with: rushes init")
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise WrongHome(f"cannot make a home at {home}: {e.strerror}", "Choose another place with --home.") from e
    return Home(home, load(home), take_over)


def incarnation(lanes: Sequence[str], slots: int) -> Incarnation:
    """A new life of a worker in this process: host + boot + random, never used again."""
    host, boot = platform.node() or "localhost", boot_id()
    return Incarnation(
        id=worker_id(machine(), host, boot, secrets.token_hex(4)),
        host=host_id(),
        boot=boot,
        pid=os.getpid(),
        pid_start=process_start() or "",
        lanes=tuple(lanes),
        slots=slots,
        machine=machine(),
        version=VERSION,
    )


def machine() -> str:
    """What kind of machine this is: rates are learnt by it."""
    return f"{platform.machine()}-{os.cpu_count() or 1}"
