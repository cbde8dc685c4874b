"""A day of film on DynamoDB: one task that needs 8,640 others."""

from pathlib import Path

import aws_kit
from ledger_kit import Clock, claim, done, film, new_job, opened, worker

from rushes.ledger.dynamodb import DynamoLedger

NEW = new_job()
CHUNKS = 8640


def test_a_join_of_thousands_waits_for_each_of_them(tmp_path: Path) -> None:
    clock = Clock()
    ledger = DynamoLedger(aws_kit.table(tmp_path, clock.wall), clock.now)
    *parts, join = film(NEW, CHUNKS)
    ready = opened(ledger, NEW, [*parts[:2], parts[-1], join])  # the others are left out: all that takes a minute
    assert len(ready) == 3
    assert ledger.tasks(ids=[join.id]).rows[0].unmet == CHUNKS
    worker(ledger)
    ledger.complete("w1", [done(lease) for lease in claim(ledger, n=3)])
    assert ledger.tasks(ids=[join.id]).rows[0].unmet == CHUNKS - 3
