"""What every ledger decides the same way: the table of commands, the end of a job, who holds a task."""

from dataclasses import dataclass, field, replace

import pytest

from rushes.domain.errors import NotFound, OverLimit, Refused
from rushes.domain.event import EventType
from rushes.domain.job import FINAL, Counts, JobCommand, JobState
from rushes.domain.task import MAX_LOSSES, LeaseStatus, TaskState, Verdict
from rushes.ledger import rules
from rushes.ledger.rules import MAX_TASKS, NewEvent, TaskStatus

C = JobCommand
TASK = TaskStatus("job.part.1", "part", 1, TaskState.LEASED, 3, "w1", "", 0, cancelled=False, paused=0)


@dataclass
class Row:
    id: str = "job"
    state: JobState = JobState.RUNNING
    priority: int = 5
    paused: int = 0
    cancelled: bool = False
    cancelled_stages: list[str] = field(default_factory=list)
    opened: bool = True
    chunking: bool = False
    finished: int | None = None
    counts: Counts = field(default_factory=lambda: Counts(total=2, live=2))


@pytest.mark.parametrize(
    ("before", "command", "after", "event"),
    [
        (Row(), C.PAUSE, Row(paused=1), (EventType.PAUSED, {"now": False})),
        (Row(), C.PAUSE_NOW, Row(paused=2), (EventType.PAUSED, {"now": True})),
        (Row(paused=1), C.PAUSE, Row(paused=1), None),
        (Row(paused=1), C.PAUSE_NOW, Row(paused=2), (EventType.PAUSED, {"now": True})),
        (Row(paused=2), C.PAUSE, Row(paused=2), None),
        (Row(paused=2), C.RESUME, Row(), (EventType.RESUMED, {})),
        (Row(), C.RESUME, Row(), None),
        (Row(paused=1), C.CANCEL, Row(cancelled=True), (EventType.CANCELLED, {})),
        (Row(), C.PRIORITY, Row(priority=9), (EventType.PRIORITY, {"priority": 9})),
        (Row(priority=9), C.PRIORITY, Row(priority=9), None),
    ],
)
def test_a_command_changes_the_job_and_says_what_to_record(
    before: Row, command: JobCommand, after: Row, event: NewEvent | None
) -> None:
    assert rules.apply_command(before, command, 9) == event
    assert before == after


@pytest.mark.parametrize("state", sorted(FINAL))
@pytest.mark.parametrize("command", [C.PAUSE, C.PAUSE_NOW, C.RESUME, C.CANCEL, C.PRIORITY])
def test_a_finished_job_refuses_all_but_what_changes_nothing(state: JobState, command: JobCommand) -> None:
    row = Row(state=state, cancelled=state is JobState.CANCELLED)
    before = replace(row)
    if command is C.PRIORITY or (command is C.CANCEL and row.cancelled):
        assert rules.apply_command(row, command, 9) is None
    else:
        with pytest.raises(Refused, match=f"job job is {state.value}"):
            rules.apply_command(row, command, 9)
    assert row == before


def test_a_job_is_finished_with_its_last_task_and_not_while_something_is_owed() -> None:
    row = Row(paused=1, counts=Counts(total=2, done=2))
    assert rules.settle(row, 7, owing=True) is None
    assert (row.state, row.finished) == (JobState.RUNNING, None)
    assert rules.settle(row, 7) == (EventType.FINISHED, {"state": "completed"})
    assert (row.state, row.finished, row.paused) == (JobState.COMPLETED, 7, 0)
    assert rules.settle(row, 8) is None
    assert row.finished == 7


def test_a_cancel_is_final_whatever_is_owed() -> None:
    row = Row(cancelled=True)
    assert rules.settle(row, 7, owing=True) == (EventType.FINISHED, {"state": "cancelled"})


def test_a_job_that_leaves_a_final_state_says_which() -> None:
    row = Row(state=JobState.FAILED, finished=7)
    assert rules.settle(row, 8) == (EventType.REVIVED, {"state": "failed"})
    assert (row.state, row.finished) == (JobState.RUNNING, None)


@pytest.mark.parametrize(
    ("task", "fence", "verdict", "status"),
    [
        (TASK, 3, Verdict.LOST, LeaseStatus.KEEP),
        (replace(TASK, paused=1), 3, Verdict.LOST, LeaseStatus.KEEP),
        (replace(TASK, paused=2), 3, Verdict.LOST, LeaseStatus.GIVE_BACK),
        (TASK, 2, Verdict.LOST, LeaseStatus.LOST),
        (replace(TASK, worker="w2"), 3, Verdict.LOST, LeaseStatus.LOST),
        (replace(TASK, state=TaskState.DONE, worker=None, outcome="done"), 3, Verdict.OK, LeaseStatus.KEEP),
        (replace(TASK, state=TaskState.DONE, worker=None, outcome="done"), 2, Verdict.LOST, LeaseStatus.LOST),
        (replace(TASK, state=TaskState.READY, cancelled=True), 3, Verdict.CANCELLED, LeaseStatus.CANCELLED),
    ],
)
def test_a_fence_is_answered_by_where_the_task_stands(
    task: TaskStatus, fence: int, verdict: Verdict, status: LeaseStatus
) -> None:
    assert task.verdict(fence, "done") is verdict
    assert rules.lease_statuses({task.id: task}, "w1", {task.id: fence, "gone": 1}) == {
        task.id: status,
        "gone": LeaseStatus.LOST,
    }


def test_the_tenth_loss_is_the_last() -> None:
    assert rules.worn_out(MAX_LOSSES - 1) is None
    failure = rules.worn_out(MAX_LOSSES)
    assert failure is not None
    assert failure.kind == "KillsItsWorker"


@pytest.mark.parametrize(
    ("state", "backs_off", "again", "named", "revivable"),
    [
        (TaskState.DEAD, False, False, False, True),
        (TaskState.DEAD, False, True, False, True),
        (TaskState.READY, True, False, False, True),
        (TaskState.READY, True, True, False, False),
        (TaskState.DONE, False, False, True, False),
        (TaskState.DONE, False, True, False, True),
        (TaskState.LEASED, False, True, False, False),
        (TaskState.CANCELLED, False, False, True, True),
        (TaskState.CANCELLED, False, False, False, False),
        (TaskState.CANCELLED, False, True, True, False),
    ],
)
def test_what_a_revival_takes(state: TaskState, backs_off: bool, again: bool, named: bool, revivable: bool) -> None:
    assert rules.is_revivable(state, backs_off=backs_off, again=again, named=named) is revivable


def test_refusals_say_what_to_do() -> None:
    rules.check_plan_size(MAX_TASKS - 1)
    with pytest.raises(OverLimit, match="fewer than 1048575"):
        rules.check_plan_size(MAX_TASKS)
    rules.check_worker("w1", C.LEAVE, known=True, over=True)
    for known, over in ((False, False), (True, True)):
        with pytest.raises(NotFound, match="no worker w1"):
            rules.check_worker("w1", C.DRAIN, known=known, over=over)


@pytest.mark.parametrize(
    ("limit", "lanes", "share"), [(500, 1, 500), (500, 0, 500), (500, 2, 250), (10, 3, 3), (1, 1, 1), (1, 5, 1)]
)
def test_each_lane_has_an_equal_share_of_what_is_announced_and_one_at_least(limit: int, lanes: int, share: int) -> None:
    assert rules.lane_share(limit, lanes) == share
