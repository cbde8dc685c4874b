"""How a process hears of answers that the asynchronous engines of a home give later."""

from collections.abc import Callable
from functools import partial

from rushes.home import Home
from rushes.jobs.answers import AnswerEvents
from rushes.wiring.setup import event_queue
from rushes.wiring.stage_services import StageServices


def answer_events(home: Home) -> Callable[[], None] | None:
    """Deals with the queue of answers; None if they have none of their own, or nobody answers later."""
    s = home.settings
    if not s.inference_events or s.inference_events == s.storage_events:
        return None
    engines = StageServices(s, home.scratch).endpoints()
    return partial(AnswerEvents(home, engines).hear, event_queue(s, s.inference_events)) if engines else None


def answer_waker(home: Home) -> Callable[[str, str], None] | None:
    """Wakes the task that waits for a key of a bucket; None if nobody answers later."""
    engines = StageServices(home.settings, home.scratch).endpoints()
    return AnswerEvents(home, engines).wake if engines else None
