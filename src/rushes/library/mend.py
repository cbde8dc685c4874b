"""Making what is damaged again, here and now, round after round; killed anywhere, the next look tells the rest."""

from collections.abc import Callable
from dataclasses import asdict, replace

from rushes.annotations import every
from rushes.domain.keys import parse_task_id
from rushes.home import Home
from rushes.jobs.intake import IntakeResult
from rushes.jobs.maintenance.missing_results import missing
from rushes.jobs.maintenance.repair import repair, rounds
from rushes.jobs.maintenance.verify import Damage, Verified, verify
from rushes.jobs.maintenance.video_removal import deleted
from rushes.library.run import Looker, OnRoom, RunReport, run

MENDING = "mending"  # records of this kind: results that are taken out of the ledger before their tasks are ready again


def damaged(home: Home, on_progress: Callable[[int, str], None]) -> Verified:
    """What is damaged, what was when a repair was cut short, and what is missing: the ledger says nothing of these."""
    owner = home.settings.owner
    found = verify(home.ledger, home.blobs, owner, on_progress)
    begun = {r.id: Damage(**r.doc) for r in every(home, MENDING)}
    known = home.ledger.known(owner, begun)
    lost = {damage.key: damage for damage in missing(home.ledger, owner, home.specs, deleted(home))}
    lost |= {key: damage for key, damage in begun.items() if key not in known}
    return replace(found, damages=found.damages + tuple(lost.values()))


def mend(
    home: Home,
    damages: tuple[Damage, ...],
    look: Looker | None = None,
    *,
    signals: bool = False,
    on_room: OnRoom = lambda _room: None,
) -> RunReport:
    """Make these again, and nothing else; after a round that does not end well the rest stays damaged."""
    for some in rounds(home.ledger, damages):
        ran = _round(home, some, look, signals, on_room)
        if ran.exit_code:
            break
    return ran


def _round(home: Home, damages: tuple[Damage, ...], look: Looker | None, signals: bool, on_room: OnRoom) -> RunReport:
    owner = home.settings.owner
    for damage in damages:
        home.records.put(MENDING, owner, damage.key, asdict(damage))
    tasks = repair(home.ledger, home.blobs, owner, damages)
    for damage in damages:
        home.records.delete(MENDING, owner, damage.key)
    home.follower.check(owner)
    jobs = [home.ledger.job(j) for j in dict.fromkeys(parse_task_id(t)[0] for t in tasks)]
    return run(home, [IntakeResult(j.name, j) for j in jobs], look=look, signals=signals, on_room=on_room)
