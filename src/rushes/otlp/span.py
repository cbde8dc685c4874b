"""A span: a timed part of a trace."""

import time
from dataclasses import dataclass, field

Attribute = str | int | float | bool


@dataclass(slots=True)
class Span:
    """Something that took time, as a part of something else."""

    trace: str
    id: str
    parent: str
    name: str
    begun: int = field(default_factory=time.time_ns)
    ended: int = 0
    about: dict[str, Attribute] = field(default_factory=dict)
    failed: str = ""
    kind: str = "internal"
