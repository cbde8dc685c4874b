"""The ledger on DynamoDB: one table, every verb within 90 items of a transaction; what does not fit is owed.

Decisions are made here on rows as they were read; a transaction holds only if none of them has changed since.
"""

from rushes.ledger.dynamodb import claims, commands, counts, history, queries, sweep, work
from rushes.ledger.dynamodb.store import Store


class DynamoLedger(Store):
    """Jobs, tasks, leases, results, events and workers in one table; each verb is a function over the store."""

    batch = claims.STATEMENTS
    finds_next = False

    submit = commands.submit
    draft = commands.draft
    arrived = commands.arrived

    claim = claims.claim
    renew = work.renew
    complete = work.complete
    fail = work.fail
    give_back = work.give_back
    sweep = sweep.sweep

    control = commands.control
    revive = commands.revive
    known = queries.known
    set_aside = queries.set_aside
    log = history.log

    job = queries.job
    jobs = queries.jobs
    tasks = queries.tasks
    events = history.events
    changed = queries.changed
    workers = queries.workers
    counts = counts.counts

    def close(self) -> None:
        """Nothing is held open between requests."""
