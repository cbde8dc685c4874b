"""Maintenance of a home: check, repair, gc, backup."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rushes import home_folder
from rushes.annotations.imported_sidecars import import_again
from rushes.annotations.sidecars import SidecarReport, import_sidecars
from rushes.blobs.local_disk import free_bytes
from rushes.files import local_path
from rushes.home import Home
from rushes.jobs.maintenance.reports import (
    EVERYTHING,
    BackupReport,
    Check,
    Damage,
    GcProgress,
    GcReport,
    Selection,
    VerifyProgress,
    VerifyReport,
)
from rushes.library.work.progress import RunProgress, RunReport
from rushes.settings import SettingValue, list_settings
from rushes.uploads.expiry import expire, finish_all
from rushes.uploads.service import Uploads
from rushes.wiring.setup import folder_blobs


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What keeps one home whole and small."""

    home: Home

    def verify(
        self,
        on_progress: Callable[[VerifyProgress], None] = lambda _progress: None,
        chosen: Selection = EVERYTHING,
        *,
        restart: bool = False,
    ) -> VerifyReport:
        """Read every file of every result, or of some, and compare it with its hash; goes on where it was cut short."""
        from rushes.library.work.run import find_damages

        return find_damages(self.home, on_progress, chosen, restart=restart)

    def repair(self, damages: tuple[Damage, ...]) -> RunReport:
        """Make what is damaged again, and nothing else."""
        from rushes.library.work.run import report_of

        return report_of(self.repairing(damages))

    def repairing(self, damages: tuple[Damage, ...], *, signals: bool = False) -> Iterator[RunProgress]:
        """`repair` as an iterator of its progress, which ends with the report."""
        from rushes.library.work.run import repairing

        return repairing(self.home, damages, signals=signals)

    def gc(self, on_progress: Callable[[GcProgress], None] = lambda _progress: None) -> GcReport:
        """Clear what is no longer needed; workers do the same by themselves, a little at a time."""
        from rushes.jobs.maintenance.backup import PATIENCE_SECONDS, maintenance_lock
        from rushes.library.work.retention import begin_round, tidy

        with maintenance_lock(self.home.folder, PATIENCE_SECONDS):
            round, file = begin_round(self.home, "gc")
            while round.step():
                on_progress(round.progress)
            report = round.report
            file.remove()
        tidy(self.home)
        return report

    def backup(self, to: str | Path) -> BackupReport:
        """Copy the home, in use or not; repeated it copies only what is new."""
        from rushes.jobs.maintenance.backup import PATIENCE_SECONDS, backup, maintenance_lock

        with maintenance_lock(self.home.folder, PATIENCE_SECONDS):
            snapshots = self.home.stores.snapshots(self.home.ledger, self.home.records)
            made = backup(self.home.folder, self.home.blobs, local_path(to), snapshots, folder_blobs)
        home_folder.remember(local_path(to))
        return made

    def tidy_uploads(self) -> None:
        """Finish uploads that had arrived when a process died, and give up those that nobody continues."""
        uploads = Uploads(self.home)
        finish_all(uploads)
        expire(uploads)

    def read_sidecars(self, paths: Iterable[str | Path]) -> list[SidecarReport]:
        """Make videos searchable from the sidecar files next to them, although their home was lost."""
        return import_sidecars(self.home, [local_path(p) for p in paths])

    def free_bytes(self) -> int | None:
        """Free space for results, None if there is no limit."""
        return free_bytes(self.home.blobs)

    def settings(self) -> list[SettingValue]:
        """Every setting, without secrets, and where its value came from."""
        return list_settings(self.home.loaded)

    def migrate(self, *, check: bool = False) -> tuple[str, ...]:
        """Change the store so that older versions cannot work with it, if this version needs that; what changed."""
        return self.home.stores.migrate(check=check)

    def reindex(self) -> None:
        """Throw the index away and make it again from the artifacts, and from sidecars that were read in."""
        self.home.follower.reindex()
        import_again(self.home)

    def doctor(self) -> tuple[Check, ...]:
        """Check every part, and say what to do."""
        from rushes.library.maintenance.doctor import doctor

        return doctor(self.home)

    def fix(self) -> None:
        """Put right what the doctor can put right."""
        from rushes.library.maintenance.doctor import fix

        fix(self.home)

    def health(self) -> dict[str, str]:
        """Each store, and "ok" or what it says instead."""
        from rushes.library.maintenance.doctor import health

        return health(self.home)

    def check_schema(self) -> None:
        """Raises WrongHome: a newer rushes has changed the store since this process opened it."""
        self.home.stores.check_schema(self.home.ledger)

    def confinement(self) -> dict[str, str]:
        """Each layer that confines the slots of this machine, and "on" or why it is not."""
        from rushes.library.maintenance.doctor import confinement

        return confinement(self.home)
