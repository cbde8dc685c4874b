"""How work comes in when hints wait in a queue: asked for first, taken as they fit, and never trusted."""

from rushes.domain.task import Finish, Lease
from rushes.worker import commands as c
from rushes.worker import inputs as i
from rushes.worker.core import Limits, State, begin, step
from rushes.worker.lane_group import LISTEN_SECONDS

LIMITS = Limits(slots=2, task_seconds=100.0, drain_seconds=20.0, look_seconds=5.0, by_hint=True)
CPU, NOW = ("cpu",), ("now",)


def task(n: int) -> str:
    return f"job_a.toy.{n:05d}"


def lease(n: int) -> Lease:
    return Lease(task(n), 7, "job_a", "toy", n, "cpu", "{}", 0, 0)


def looked(*leases: Lease) -> State:
    """A worker whose first look, without hints, brought this."""
    state, _ = step(begin(LIMITS), i.Tick(), 0.0)
    state, _ = step(state, i.Claimed(NOW, (), 1), 0.0)
    state, _ = step(state, i.Claimed(CPU, leases, 2), 0.0)
    return state


def asked(commands: tuple[c.Command, ...]) -> list[c.Command]:
    return [d for d in commands if isinstance(d, c.Claim | c.Listen | c.PassOn)]


def test_it_looks_first_and_waits_for_hints_only_when_a_look_found_nothing() -> None:
    state, commands = step(begin(LIMITS), i.Tick(), 0.0)
    assert asked(commands) == [c.Claim(CPU, 2), c.Claim(NOW, 1)]
    _, commands = step(state, i.Claimed(CPU, (), 2), 0.0)
    assert asked(commands) == [c.Listen(CPU, 2, LISTEN_SECONDS)]


def test_it_claims_the_ids_it_was_hinted() -> None:
    _, commands = step(looked(), i.Hinted(CPU, (task(1), task(2))), 1.0)
    assert asked(commands) == [c.Claim(CPU, 2, (task(1), task(2)))]


def test_when_a_slot_is_free_again_it_takes_the_next_hint_without_waiting() -> None:
    state = looked(lease(1), lease(2))
    finish = Finish(task(1), 7)
    state, commands = step(state, i.TaskFinished(finish), 1.0)
    assert asked(commands) == [c.Listen(CPU, 1, 0.0)]
    _, commands = step(state, i.Hinted(CPU, (task(3),)), 1.0)
    assert asked(commands) == [c.Claim(CPU, 1, (task(3),))]


def test_when_the_last_task_is_done_it_looks_once_though_it_still_waits_for_hints() -> None:
    state = looked(lease(1))
    state, commands = step(state, i.Hinted(CPU), 0.0)
    assert asked(commands) == [c.Claim(CPU, 1)]
    state, commands = step(state, i.Claimed(CPU, (), 1), 0.0)
    assert asked(commands) == [c.Listen(CPU, 1, LISTEN_SECONDS)]
    finish = Finish(task(1), 7)
    state, commands = step(state, i.TaskFinished(finish), 1.0)
    assert asked(commands) == [], "what it makes ready is announced"
    state, commands = step(state, i.OutboxEntryWritten(c.Complete(lease(1), finish)), 1.0)
    assert asked(commands) == [c.Claim(CPU, 2)]
    state, commands = step(state, i.Claimed(CPU, (), 2), 1.0)
    assert state.idle, "nobody waits for the end of a wait to know that nothing is left"
    assert asked(commands) == []


def test_without_a_hint_it_looks_for_itself() -> None:
    state, _ = step(looked(lease(1), lease(2)), i.TaskFinished(Finish(task(1), 7)), 1.0)
    state, commands = step(state, i.Hinted(CPU), 1.0)
    assert asked(commands) == [c.Claim(CPU, 1)]
    state, commands = step(state, i.Claimed(CPU, (lease(3),), 1), 1.0)
    assert asked(commands) == []
    assert not state.idle


def test_the_end_of_a_wait_for_hints_is_no_reason_to_look_again() -> None:
    state, commands = step(looked(), i.Hinted(CPU), 20.0)
    assert asked(commands) == [c.Listen(CPU, 2, LISTEN_SECONDS)], "what no hint named, a sweep finds"
    assert state.idle


def test_stale_hints_cost_a_claim_and_no_wait() -> None:
    state, _ = step(looked(), i.Hinted(CPU, (task(1),)), 1.0)
    state, commands = step(state, i.Claimed(CPU, (), 1, hinted=True), 1.0)
    assert asked(commands) == [c.Listen(CPU, 2, 0.0)]
    assert not state.idle, "a hint that led to nothing says nothing about the rest"


def test_a_sweep_that_found_something_in_its_lanes_makes_it_look_without_a_hint() -> None:
    state = looked()
    _, commands = step(state, i.Swept(frozenset({"gpu"})), 1.0)
    assert asked(commands) == []
    state, commands = step(state, i.Swept(frozenset({"cpu"})), 1.0)
    assert asked(commands) == [c.Claim(CPU, 2)]


def test_hints_that_have_no_place_here_are_passed_on() -> None:
    state, _ = step(looked(), i.Swept(frozenset({"cpu"})), 1.0)
    state, _ = step(state, i.Claimed(CPU, (lease(1), lease(2)), 2), 1.0)
    _, commands = step(state, i.Hinted(CPU, (task(3),)), 1.0)
    assert asked(commands) == [c.PassOn((task(3),))]


def test_a_draining_worker_passes_on_what_it_hears() -> None:
    state, _ = step(looked(), i.StopRequested("SIGTERM"), 1.0)
    _, commands = step(state, i.Hinted(CPU, (task(3),)), 1.0)
    assert asked(commands) == [c.PassOn((task(3),))]


def test_a_store_that_was_away_is_looked_at_without_a_hint() -> None:
    state, _ = step(looked(), i.Hinted(CPU, (task(1),)), 1.0)
    state, commands = step(state, i.StoreUnavailable(), 1.0)
    assert asked(commands) == []
    _, commands = step(state, i.Tick(), 2.1)
    assert c.Claim(CPU, 2) in commands


def test_the_next_sweep_comes_when_something_that_backs_off_is_due() -> None:
    state, _ = step(looked(), i.Swept(frozenset(), next_due=2.5), 1.0)
    assert c.Sweep() not in step(state, i.Tick(), 3.4)[1]
    assert c.Sweep() in step(state, i.Tick(), 3.6)[1]


def test_work_on_a_whole_video_that_runs_long_is_reported_once_and_never_ended() -> None:
    whole = Lease(task(1), 7, "job_a", "toy", None, "cpu", "{}", 0, 0)
    state, commands = step(looked(whole), i.Tick(), 101.0)
    assert [d for d in commands if isinstance(d, c.ReportLongTask | c.Kill)] == [c.ReportLongTask(whole, 101.0)]
    _, commands = step(state, i.Tick(), 500.0)
    assert not [d for d in commands if isinstance(d, c.ReportLongTask | c.Kill)]


def test_a_notice_leaves_no_more_time_than_the_machine_has() -> None:
    state, _ = step(looked(lease(1)), i.StopRequested("Spot notice", within=5.0), 1.0)
    assert state.drain_until == 6.0
    assert state.note == "draining: Spot notice"


def test_a_worker_of_lane_now_alone_has_one_slot() -> None:
    state, commands = step(begin(Limits(slots=2, lanes=("now",))), i.Tick(), 0.0)
    assert asked(commands) == [c.Claim(NOW, 1)]
    assert len(state.lane_groups) == 1
