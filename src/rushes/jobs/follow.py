"""Following a job: its events from any number on, first the past, then live, each once and without a gap."""

from collections.abc import Callable, Iterator

from rushes.domain.event import Event
from rushes.domain.job import FINAL
from rushes.ledger.port import Ledger


def follow(ledger: Ledger, job: str, after: int, pause: Callable[[], bool]) -> Iterator[Event]:
    """Events after a number until the job is final. `pause` waits a little and answers whether to go on."""
    while True:
        events = ledger.events(job, after)
        yield from events
        if events:
            after = events[-1].number
            continue
        row = ledger.job(job)
        if (row.state in FINAL and row.last_event == after) or not pause():
            return
