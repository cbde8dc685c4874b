"""The choice of a poster frame."""

from collections.abc import Sequence

from rushes.media.developing.frame_pack import PackedFrame, PackIndex


def choose_poster(indexes: Sequence[PackIndex]) -> tuple[int, PackedFrame] | None:
    """Pack number and frame of the poster: well lit, sharp, and away from both ends of the film."""
    frames = [(pack, frame) for pack, index in enumerate(indexes) for frame in index.frames]
    if not frames:
        return None
    first, last = frames[0][1].us, frames[-1][1].us
    return max(frames, key=lambda f: (_score(f[1], first, last), -f[1].us))


def _score(frame: PackedFrame, first: int, last: int) -> float:
    exposure = 1.0 if 40 <= frame.light <= 215 else min(frame.light, 255 - frame.light) / 40 * 0.5
    position = (frame.us - first) / max(1, last - first)
    early = 1.0 if 0.05 <= position <= 0.7 else 0.6  # titles and credits are at the ends
    return round(exposure * early * min(frame.sharp, 1200), 6)  # more is noise
