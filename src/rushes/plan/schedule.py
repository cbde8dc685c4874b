"""How long the tasks of a plan take together: slots take ready tasks in plan order, as workers do."""

import heapq
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rushes.domain.span import Span


@dataclass(frozen=True, slots=True)
class PlannedWork:
    """A task as an estimate sees it: how much footage it works on, and which tasks it needs."""

    id: str
    stage: str
    media_seconds: float
    needs: tuple[str, ...] = ()

    @staticmethod
    def of(id: str, stage: str, spec: str, film_seconds: float) -> "PlannedWork":
        """A task by its spec."""
        doc = json.loads(spec or "{}")
        span = Span.from_json(doc["span"]) if doc.get("span") else None
        return PlannedWork(id, stage, float(span.seconds) if span else film_seconds, tuple(doc.get("needs") or ()))


def makespan(work: Sequence[PlannedWork], seconds: Mapping[str, float], slots: int) -> float:
    """Seconds from the first start to the last end; a need that is not among the tasks is met."""
    unmet = {item.id: {need for need in item.needs if need in seconds} for item in work}
    dependants: defaultdict[str, list[int]] = defaultdict(list)
    for order, item in enumerate(work):
        for need in unmet[item.id]:
            dependants[need].append(order)
    ready = [order for order, item in enumerate(work) if not unmet[item.id]]
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < slots:
            order = heapq.heappop(ready)
            heapq.heappush(running, (now + seconds[work[order].id], order))
        now, order = heapq.heappop(running)
        for dependant in dependants[work[order].id]:
            unmet[work[dependant].id].discard(work[order].id)
            if not unmet[work[dependant].id]:
                heapq.heappush(ready, dependant)
    return now
