"""Making what is damaged again, here and now, round after round."""

from rushes.domain.keys import parse_task_id
from rushes.jobs.repair import repair, rounds
from rushes.jobs.verify import Damage
from rushes.library.intake import Added
from rushes.library.run import Looker, Ran, run
from rushes.wiring import House


def mend(house: House, damages: tuple[Damage, ...], look: Looker | None = None, *, signals: bool = False) -> Ran:
    """Make these again, and nothing else; after a round that does not end well the rest stays damaged."""
    for damaged in rounds(house.ledger, damages):
        ran = _round(house, damaged, look, signals)
        if ran.exit_code:
            break
    return ran


def _round(house: House, damages: tuple[Damage, ...], look: Looker | None, signals: bool) -> Ran:
    owner = house.settings.owner
    tasks = repair(house.ledger, house.blobs, owner, damages)
    house.follower.check(owner)
    jobs = [house.ledger.job(j) for j in dict.fromkeys(parse_task_id(t)[0] for t in tasks)]
    return run(house, [Added(j.name, j) for j in jobs], look=look, signals=signals)
