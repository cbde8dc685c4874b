"""Making damaged results again, here and now, round after round; killed anywhere, the next `verify` finds the rest."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace

from rushes.domain.keys import parse_task_id
from rushes.home import Home
from rushes.jobs.control import announce
from rushes.jobs.intake import IntakeResult
from rushes.jobs.maintenance.missing_results import find_missing
from rushes.jobs.maintenance.repair import repair, rounds
from rushes.jobs.maintenance.verify import Damage, VerifyReport, verify
from rushes.jobs.maintenance.video_removal import deleted_jobs
from rushes.library.work.progress import RunProgress, RunReport
from rushes.library.work.run import running

REPAIRING = "repair"  # kind of the records of results that left the ledger before their tasks were ready again


def find_damages(home: Home, on_progress: Callable[[int, str], None]) -> VerifyReport:
    """Results that are damaged, that a repair left unfinished, and that are missing from the ledger."""
    owner = home.settings.owner
    found = verify(home.ledger, home.blobs, owner, on_progress)
    begun = {r.id: Damage(**r.doc) for r in home.all_records(REPAIRING)}
    known = home.ledger.known(owner, begun)
    lost = {damage.key: damage for damage in find_missing(home.ledger, owner, home.specs, deleted_jobs(home))}
    lost |= {key: damage for key, damage in begun.items() if key not in known}
    return replace(found, damages=found.damages + tuple(lost.values()))


def repairing(home: Home, damages: tuple[Damage, ...], *, signals: bool = False) -> Iterator[RunProgress]:
    """Make these again, and nothing else; after a round that does not end well the rest stays damaged."""
    progress: RunProgress | None = None
    for some in rounds(home.ledger, damages):
        for progress in running(home, _begin(home, some), signals=signals):
            if not isinstance(progress, RunReport):
                yield progress
        if isinstance(progress, RunReport) and progress.exit_code:
            break
    if progress:
        yield progress


def _begin(home: Home, damages: tuple[Damage, ...]) -> list[IntakeResult]:
    """Make the tasks of a round ready again; their jobs."""
    owner = home.settings.owner
    for damage in damages:
        home.records.put(REPAIRING, owner, damage.key, asdict(damage))
    tasks = repair(home.ledger, home.blobs, owner, damages)
    announce(home, tasks)
    for damage in damages:
        home.records.delete(REPAIRING, owner, damage.key)
    home.follower.check(owner)
    jobs = [home.ledger.job(j) for j in dict.fromkeys(parse_task_id(t)[0] for t in tasks)]
    return [IntakeResult(j.name, j) for j in jobs]
