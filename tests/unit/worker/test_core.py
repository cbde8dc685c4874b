"""The worker's decisions, one sentence each."""

from dataclasses import replace

from rushes.domain.task import Failure, Finish, Lease, LeaseStatus
from rushes.domain.worker import DiskSpace
from rushes.worker import commands as c
from rushes.worker import inputs as i
from rushes.worker.core import SWEEP_BUSY_SECONDS, SWEEP_IDLE_SECONDS, Limits, State, begin, step

LIMITS = Limits(slots=2, task_seconds=100.0, drain_seconds=20.0)
HINT = i.Hinted(("cpu",), ("job_a.toy.00001",))
WHY = Failure("SlotDied", "ended by signal 11", "hint", "may work next time")


def lease(n: int = 1, lane: str = "cpu", failures: int = 0, chunk: int | None = 0) -> Lease:
    return Lease(f"job_a.toy.{n:05d}", 7, "job_a", "toy", chunk, lane, "{}", failures, 0)


def said_of(lease: Lease) -> tuple[str, int]:
    """What an order of a renewal names."""
    return lease.task, lease.fence


def kinds(commands: tuple[c.Command, ...]) -> list[str]:
    return [type(d).__name__ for d in commands]


def quiet(now: float = 0.0) -> State:
    """A worker after its first tick: nothing is due for a while."""
    state, _ = step(begin(LIMITS), i.Tick(), now)
    state, _ = step(state, i.Claimed(("cpu",), (), 2), now)
    state, _ = step(state, i.Claimed(("now",), (), 1), now)
    return state


def holding(*leases: Lease, now: float = 0.0) -> State:
    state, _ = step(quiet(now), i.Claimed(("cpu",), leases, 2), now)
    return answered(state, now)


def answered(state: State, now: float) -> State:
    """The same worker when every claim it made brought nothing."""
    for lanes in [group.lanes for group in state.lane_groups if group.asking]:
        state, _ = step(state, i.Claimed(lanes, (), 1), now)
    return state


def test_the_first_tick_renews_sweeps_and_claims_both_lanes() -> None:
    _, commands = step(begin(LIMITS), i.Tick(), 0.0)
    assert kinds(commands) == ["Renew", "Sweep", "Claim", "Claim"]
    assert commands[2:] == (c.Claim(("cpu",), 2), c.Claim(("now",), 1))


def sweeps(state: State, seconds: int) -> list[int]:
    """When it sweeps, looked at once a second."""
    found = []
    for now in range(seconds + 1):
        state, commands = step(state, i.Tick(), now)
        state = answered(state, now)
        found += [now] if c.Sweep() in commands else []
    return found


def test_it_sweeps_though_every_slot_is_busy_and_more_often_while_one_waits() -> None:
    busy = replace(holding(lease(1, chunk=None), lease(2, chunk=None)), sweep_at=0.0)
    assert sweeps(busy, 60) == list(range(0, 61, int(SWEEP_BUSY_SECONDS)))
    waiting = replace(holding(lease(1, chunk=None)), sweep_at=0.0)
    assert sweeps(waiting, 60) == list(range(0, 61, int(SWEEP_IDLE_SECONDS)))
    assert SWEEP_BUSY_SECONDS <= 15.0


def test_where_nothing_goes_on_a_sweep_waits_as_long_as_an_empty_look_is_believed() -> None:
    state = replace(quiet(), limits=replace(LIMITS, look_seconds=30.0))
    state, _ = step(state, i.Swept(frozenset(), quiet=True), 1.0)
    assert sweeps(state, 60)[0] == 31
    state, _ = step(state, i.Hinted(("cpu",), ("job_a.toy.00001",)), 2.0)
    assert sweeps(state, 60)[0] == 2 + SWEEP_IDLE_SECONDS, "whoever takes it may vanish"


def test_a_sweep_comes_soon_while_somebody_holds_a_task() -> None:
    state = replace(quiet(), limits=replace(LIMITS, look_seconds=30.0))
    state, _ = step(state, i.Swept(frozenset()), 1.0)
    assert sweeps(state, 60)[0] == SWEEP_IDLE_SECONDS
    state, _ = step(state, i.Swept(frozenset(), quiet=True), 1.0)
    state, _ = step(state, i.Claimed(("cpu",), (lease(1),), 2), 2.0)
    assert sweeps(state, 60)[0] == 2 + SWEEP_IDLE_SECONDS


def test_a_worker_that_became_busy_keeps_the_sweep_it_had_planned() -> None:
    state = holding(lease(1, chunk=None), lease(2, chunk=None))  # its first tick swept while nothing was held
    assert sweeps(state, 40) == [5, 20, 35]


def test_a_claim_that_was_not_answered_yet_is_not_asked_again() -> None:
    state, _ = step(begin(LIMITS), i.Tick(), 0.0)
    assert step(state, HINT, 0.1)[1] == ()
    state, _ = step(state, i.StoreUnavailable(), 0.2)
    assert kinds(step(state, HINT, 0.3)[1]).count("Claim") == 1
    assert kinds(step(state, i.Tick(), 1.3)[1]) == ["Claim", "Claim"]


def test_an_empty_claim_is_believed_until_a_hint_comes() -> None:
    state = quiet()
    assert step(state, i.Tick(), 0.5)[1] == ()
    assert step(state, HINT, 0.5)[1] == (c.Claim(("cpu",), 2),)
    assert kinds(step(state, i.Tick(), 1.5)[1]) == ["Claim", "Claim"]


def test_it_claims_no_more_than_its_free_slots() -> None:
    state = holding(lease(1), lease(2))
    _, commands = step(state, i.Tick(), 1.5)
    assert [d for d in commands if isinstance(d, c.Claim)] == [c.Claim(("now",), 1)]


def test_lane_now_has_a_slot_of_its_own() -> None:
    state = holding(lease(1), lease(2))
    _, commands = step(state, i.Claimed(("now",), (lease(3, lane="now"),), 1), 0.5)
    assert c.Start(2, lease(3, lane="now")) in commands


def test_a_finish_is_posted_and_the_slot_is_free_at_once() -> None:
    state = holding(lease(1), lease(2))
    finish = Finish(lease(1).task, 7)
    state, commands = step(state, i.TaskFinished(finish), 1.0)
    assert c.Complete(lease(1), finish) in commands
    assert c.Claim(("cpu",), 1) in commands


def test_a_finish_is_posted_again_until_the_store_answers() -> None:
    state = holding(lease(1))
    finish = Finish(lease(1).task, 7)
    state, _ = step(state, i.TaskFinished(finish), 1.0)
    state, commands = step(state, i.StoreUnavailable(), 1.1)
    assert c.Complete not in map(type, commands)
    state, commands = step(state, i.Tick(), 3.0)
    assert c.Complete(lease(1), finish) in commands
    state, _ = step(state, i.OutboxEntryWritten(c.Complete(lease(1), finish)), 3.1)
    assert not state.held
    assert not state.outbox


def test_a_finish_of_an_old_fence_is_not_ours() -> None:
    state = holding(lease(1))
    state, commands = step(state, i.TaskFinished(Finish(lease(1).task, 6)), 0.5)
    assert commands == ()
    assert not state.held[lease(1).task].settled


def test_a_failure_backs_off_and_the_fourth_is_dead() -> None:
    delays = []
    for failures in range(4):
        state = holding(lease(1, failures=failures))
        _, commands = step(state, i.TaskFailed(lease(1).task, 7, WHY, jitter=0.5), 1.0)
        delays += [d.delay for d in commands if isinstance(d, c.Fail)]
    assert delays == [60.0, 300.0, 900.0, None]


def test_what_never_works_is_dead_at_once() -> None:
    state = holding(lease(1))
    _, commands = step(state, i.TaskFailed(lease(1).task, 7, WHY, jitter=0.5, final=True), 1.0)
    assert [d.delay for d in commands if isinstance(d, c.Fail)] == [None]


def test_no_room_gives_the_task_back_and_stops_intake_until_there_is_room() -> None:
    state = holding(lease(1))
    state, commands = step(state, i.TaskFailed(lease(1).task, 7, replace(WHY, kind="NoRoom"), 0.5, counts=False), 1.0)
    assert c.GiveBack(lease(1), "NoRoom") in commands
    state, _ = step(answered(state, 1.0), i.OutboxEntryWritten(c.GiveBack(lease(1), "NoRoom")), 1.0)
    state, commands = step(answered(state, 1.0), DiskSpace(enough=False), 1.0)
    assert "Claim" not in kinds(commands)
    assert state.note == "disk full"
    _, commands = step(state, DiskSpace(enough=True), 9.0)
    assert "Claim" in kinds(commands)


def test_when_the_room_changes_the_ledger_hears_of_it_at_once() -> None:
    state, commands = step(quiet(), DiskSpace(enough=False), 1.0)
    assert [d.note for d in commands if isinstance(d, c.Renew)] == ["disk full"]
    state, commands = step(state, DiskSpace(enough=False), 1.1)
    assert "Renew" not in kinds(commands)
    _, commands = step(state, DiskSpace(enough=True), 2.0)
    assert [d.note for d in commands if isinstance(d, c.Renew)] == [""]


def test_a_cancelled_or_lost_task_is_killed_and_forgotten() -> None:
    for order in (LeaseStatus.CANCELLED, LeaseStatus.LOST):
        state, commands = step(
            holding(lease(1)), i.RenewalReply({said_of(lease(1)): order}, drain=False, gone=False), 1.0
        )
        assert c.Kill(0, order.value) in commands
        assert not state.held


def test_what_a_renewal_says_of_an_old_fence_is_not_obeyed() -> None:
    before = i.RenewalReply({(lease(1).task, lease(1).fence - 1): LeaseStatus.LOST}, drain=False, gone=False)
    state, commands = step(holding(lease(1)), before, 1.0)
    assert "Kill" not in kinds(commands)
    assert lease(1).task in state.held


def test_a_task_leased_anew_while_its_old_attempt_runs_ends_that_attempt_first() -> None:
    again = lease(1)._replace(fence=8)
    state, commands = step(holding(lease(1)), i.Claimed(("cpu",), (again,), 1), 1.0)
    assert [d for d in commands if isinstance(d, c.Kill | c.Start)] == [c.Kill(0, "lost"), c.Start(0, again)]
    assert state.held[again.task].lease.fence == 8
    late, commands = step(state, i.TaskFinished(Finish(again.task, 7)), 1.1)
    assert "Complete" not in kinds(commands)
    assert late.held[again.task].lease.fence == 8


def test_a_finish_that_waits_for_the_store_is_dropped_when_its_task_is_leased_anew() -> None:
    state, _ = step(holding(lease(1)), i.TaskFinished(Finish(lease(1).task, 7)), 1.0)
    state, commands = step(state, i.Claimed(("cpu",), (lease(1)._replace(fence=8),), 1), 1.1)
    assert "Kill" not in kinds(commands)
    assert state.outbox == ()


def test_pause_now_kills_and_gives_back() -> None:
    came = i.RenewalReply({said_of(lease(1)): LeaseStatus.GIVE_BACK}, drain=False, gone=False)
    _, commands = step(holding(lease(1)), came, 1.0)
    assert kinds(commands)[:2] == ["Kill", "GiveBack"]


def test_a_worker_whose_row_is_over_drops_everything_and_goes_on_as_a_new_incarnation() -> None:
    state, commands = step(holding(lease(1), lease(2)), i.RenewalReply({}, drain=False, gone=True), 1.0)
    assert kinds(commands)[:3] == ["Kill", "Kill", "NewIncarnation"]
    assert "Renew" in kinds(commands)
    assert not state.held


def test_an_attempt_on_a_chunk_has_a_time_limit_and_whole_videos_have_none() -> None:
    state, commands = step(holding(lease(1), lease(2, chunk=None)), i.Tick(), 101.0)
    assert [d for d in commands if isinstance(d, c.Kill)] == [c.Kill(0, "time")]
    assert len(state.held) == 2


def test_told_once_it_claims_nothing_and_lets_running_work_finish() -> None:
    state, commands = step(holding(lease(1)), i.StopRequested(), 1.0)
    assert not {"Claim", "Kill"} & set(kinds(commands))
    finish = Finish(lease(1).task, 7)
    state, _ = step(state, i.TaskFinished(finish), 2.0)
    state, commands = step(state, i.OutboxEntryWritten(c.Complete(lease(1), finish)), 2.0)
    assert kinds(commands) == ["Leave"]
    assert state.left


def test_told_twice_it_gives_everything_back_at_once() -> None:
    state, _ = step(holding(lease(1)), i.StopRequested(), 1.0)
    _, commands = step(state, i.StopRequested(), 1.5)
    assert kinds(commands) == ["Kill", "Renew", "GiveBack"]


def test_the_grace_ends_and_what_still_runs_is_given_back() -> None:
    state, _ = step(holding(lease(1)), i.StopRequested(), 1.0)
    _, commands = step(state, i.Tick(), 21.0)
    assert kinds(commands) == ["Kill", "Renew", "GiveBack"]


def test_a_finish_waiting_for_the_store_survives_a_drain() -> None:
    state = holding(lease(1))
    state, _ = step(state, i.TaskFinished(Finish(lease(1).task, 7)), 1.0)
    state, _ = step(state, i.StoreUnavailable(), 1.0)
    state, commands = step(state, i.StopRequested(), 1.1)
    assert "Leave" not in kinds(commands)
    _, commands = step(state, i.Tick(), 2.5)
    assert "Complete" in kinds(commands)


def test_more_leases_than_slots_are_handed_back_and_never_lost() -> None:
    _, commands = step(holding(lease(1), lease(2)), i.Claimed(("cpu",), (lease(3),), 1), 0.5)
    assert c.GiveBack(lease(3), "no free slot") in commands
    assert "Start" not in kinds(commands)


def test_a_claim_that_doubts_the_lease_renews_before_anything_is_dropped() -> None:
    state, commands = step(holding(lease(1)), i.StoreUnavailable(doubt=True), 1.0)
    assert "Renew" in kinds(commands)
    assert "Kill" not in kinds(commands)
    assert lease(1).task in state.held


def test_a_task_that_found_no_room_makes_the_worker_rest() -> None:
    state = answered(holding(lease(1)), 1.0)
    state, _ = step(state, i.TaskFailed(lease(1).task, 7, replace(WHY, kind="NoRoom"), 0.5, counts=False), 1.0)
    state, commands = step(state, HINT, 2.0)
    assert "Claim" not in kinds(commands)
    assert "Claim" in kinds(step(state, i.Tick(), 12.0)[1])


def test_a_finish_in_the_outbox_survives_a_pause() -> None:
    state, _ = step(holding(lease(1)), i.TaskFinished(Finish(lease(1).task, 7)), 1.0)
    state, _ = step(state, i.RenewalReply({said_of(lease(1)): LeaseStatus.GIVE_BACK}, drain=False, gone=False), 1.1)
    assert state.outbox


def test_told_twice_it_leaves_even_when_the_store_is_away() -> None:
    state, _ = step(holding(lease(1)), i.StopRequested(), 1.0)
    state, _ = step(state, i.StopRequested(), 1.1)
    state, _ = step(state, i.StoreUnavailable(), 1.2)
    assert not state.left
    state, commands = step(state, i.Tick(), 4.0)
    assert "Leave" in kinds(commands)
