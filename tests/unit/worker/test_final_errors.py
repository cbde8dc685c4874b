"""What is never retried by itself: whoever is not let in is not let in by asking again."""

import json

import pytest

from rushes.domain import errors
from rushes.domain.errors import RushesError, is_final
from rushes.domain.task import Lease
from rushes.worker import commands, core, inputs
from rushes.worker.broker.failures import failure_of
from rushes.worker.core import Limits
from rushes.worker.slots import outcome

LEASE = Lease("job_a.toy", 1, "job_a", "toy", None, "cpu", "{}", 0, 0)
FINAL = (errors.NeverWorks, errors.BadMedia, errors.SourceMissing, errors.NotAllowed, errors.StoreRefuses)
AGAIN = (errors.TryAgain, errors.DamagedBlob, errors.SlotDied)
BACK = (errors.StoreAway, errors.StoreMissing, errors.NoCredentials, errors.NoRoom, errors.Drained)


def outbox_entry(error: RushesError) -> commands.OutboxEntry:
    """What a worker writes when a slot fails so: through the message of the slot and the core."""
    message = json.loads(json.dumps(failure_of(error)))
    state, _ = core.step(core.begin(Limits(1)), inputs.Claimed(("cpu",), (LEASE,), 1), 0.0)
    _, todo = core.step(state, outcome(LEASE, message, "", ()), 1.0)
    (entry,) = [c for c in todo if isinstance(c, commands.Fail | commands.GiveBack)]
    return entry


@pytest.mark.parametrize("kind", FINAL)
def test_a_dead_letter_at_once(kind: type[RushesError]) -> None:
    entry = outbox_entry(kind("no"))
    assert isinstance(entry, commands.Fail)
    assert (entry.delay, is_final(kind("no"))) == (None, True)
    assert entry.failure.verdict != RushesError.verdict


@pytest.mark.parametrize("kind", AGAIN)
def test_tried_again_after_a_while(kind: type[RushesError]) -> None:
    entry = outbox_entry(kind("no"))
    assert isinstance(entry, commands.Fail)
    assert entry.delay is not None


@pytest.mark.parametrize("kind", BACK)
def test_given_back_and_not_counted(kind: type[RushesError]) -> None:
    assert isinstance(outbox_entry(kind("no")), commands.GiveBack)
