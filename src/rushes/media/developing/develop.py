"""One pass of the decoder over a chunk that feeds every sink."""

from collections.abc import Callable, Sequence
from typing import Protocol

import av

from rushes.domain.span import Span
from rushes.domain.video import Footage, VideoFacts
from rushes.media.reading.frames import Damage, decode


class Sink(Protocol):
    """Receives the frames of a chunk in order."""

    def add(self, pts: int, frame: av.VideoFrame) -> None:
        """Take the next frame; copy what you keep. Use `pts`: other sinks may change the frame's own."""


def develop(
    path: Footage,
    facts: VideoFacts,
    span: Span,
    sinks: Sequence[Sink],
    on_progress: Callable[[float], None],
    on_damage: Damage | None = None,
) -> int:
    """Give every frame of a span to every sink; returns their number. Raises BadMedia as `decode` does."""
    count = 0
    for frame in decode(path, facts, span, on_damage=on_damage):
        pts = frame.pts or 0
        for sink in sinks:
            sink.add(pts, frame)
        count += 1
        if count % 25 == 0:
            on_progress((pts - span.start) / max(1, span.end - span.start))
    return count
