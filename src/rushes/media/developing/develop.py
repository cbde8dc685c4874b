"""One pass of the decoder over a chunk for everything that is made of its pictures."""

from collections.abc import Callable, Sequence
from typing import Protocol

import av

from rushes.domain.span import Span
from rushes.domain.video import Footage, VideoFacts
from rushes.media.reading.frames import Damage, decode


class Sink(Protocol):
    """Something that is made of frames as they come by."""

    def add(self, pts: int, frame: av.VideoFrame) -> None:
        """Take the next frame; it may not be kept, and `pts` is its time whatever the frame says later."""


def develop(
    path: Footage,
    facts: VideoFacts,
    span: Span,
    sinks: Sequence[Sink],
    on_progress: Callable[[float], None],
    on_damage: Damage | None = None,
) -> int:
    """Show every frame of a span to every sink; how many there were.

    Raises:
        BadMedia: a frame is lost, see `decode`.
    """
    count = 0
    for frame in decode(path, facts, span, on_damage=on_damage):
        pts = frame.pts or 0
        for sink in sinks:
            sink.add(pts, frame)
        count += 1
        if count % 25 == 0:
            on_progress((pts - span.start) / max(1, span.end - span.start))
    return count
