"""Rows on DynamoDB stay within 400 KB: a day of film in chunks of ten seconds, joined by one task."""

import hashlib
import json
from dataclasses import replace

from rushes.aws.table import Item
from rushes.domain.job import JobState
from rushes.domain.keys import canonical, task_id
from rushes.domain.task import Draft, Need
from rushes.ledger.dynamodb.rows import JobRow, TaskRow, draft_item, draft_of, unpack
from rushes.ledger.dynamodb.texts import MAX_INLINE, PART, split_text

CHUNKS = 8640
LIMIT = 400 * 1024
JOB = JobRow("job_frc4fxqiffsfemg5", "ann", 1, 0, 0, "job_frc4fxqiffsfemg5.probe")


def parts(stages: int = 1) -> list[str]:
    return [task_id(JOB.id, f"stage{s}", n) for s in range(stages) for n in range(CHUNKS)]


def spec(needs: list[str]) -> str:
    """As the planner writes it: the name of every need, and the key of its result."""
    keys = [f"5f70bf18a086-{hashlib.sha256(need.encode()).hexdigest()[:40]}" for need in needs]
    return canonical({"inputs": {"stage.output": keys}, "needs": needs}).decode()


def size(item: Item) -> int:
    return sum(len(name) + len(str(value).encode()) for name, value in item.items())


def test_the_draft_of_a_join_of_thousands_fits() -> None:
    needs = parts(3)
    kept, texts = split_text(JOB.id, spec(needs))
    draft = Draft(task_id(JOB.id, "join", None), JOB.id, "join", None, kept, needs=tuple(map(Need, needs)))
    item = draft_item(draft, 1, 0)
    assert max(map(size, [item, *texts])) < LIMIT
    assert len(texts) > 1
    assert draft_of(item) == draft


def test_a_task_that_thousands_need_and_that_needs_thousands_fits() -> None:
    needs = parts(3)
    row = TaskRow(task_id(JOB.id, "audio", None), JOB.id, "audio", dependants=dict.fromkeys(needs, 7), order=1)
    row.unmet = (1 << len(needs)) - 1
    assert size(row.item(JOB)) < LIMIT
    assert unpack(TaskRow, row.item(JOB)) == row


def test_a_task_that_waits_for_thousands_is_small_since_each_of_them_writes_it() -> None:
    row = TaskRow(task_id(JOB.id, "join", None), JOB.id, "join", spec=split_text(JOB.id, spec(parts()))[0])
    row.unmet = (1 << CHUNKS) - 1
    assert size(row.item(JOB)) < MAX_INLINE


def test_short_texts_stay_where_they_are() -> None:
    assert split_text(JOB.id, "{}") == ("{}", [])
    row = TaskRow(task_id(JOB.id, "hear", 1), JOB.id, "hear", dependants={"a": 1}, unmet=3)
    assert json.loads(str(row.item(JOB)["body"]))["unmet"] == 3


def test_a_long_text_is_the_same_items_whoever_writes_it() -> None:
    text = "".join(hashlib.sha256(bytes([n % 256, n // 256])).hexdigest() for n in range(20_000))
    kept, items = split_text(JOB.id, text)
    assert split_text(JOB.id, text) == (kept, items)
    assert {len(str(item["body"])) for item in items[:-1]} == {PART}
    assert split_text(JOB.id, kept)[1]  # what only looks like one that is kept elsewhere is kept elsewhere


def test_jobs_that_are_over_are_listed_by_when_they_ended_and_others_by_their_age() -> None:
    over = replace(JOB, state=JobState.COMPLETED, finished=1_700_000_000_000)
    assert over.item()["since"] == "001700000000000#000000000001"
    assert JOB.item()["since"] == "000000000001"
    assert (JOB.opened, JOB.cancelled, JOB.chunking) == (False, False, False)
