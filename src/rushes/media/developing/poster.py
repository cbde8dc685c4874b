"""The one picture that stands for a film."""

from collections.abc import Sequence

from rushes.media.developing.frame_pack import PackedFrame, PackIndex


def choose(indexes: Sequence[PackIndex]) -> tuple[int, PackedFrame] | None:
    """Which pack and which of its frames to show: neither black nor washed out nor blurred, and not the very first."""
    frames = [(pack, kept) for pack, index in enumerate(indexes) for kept in index.frames]
    if not frames:
        return None
    first, last = frames[0][1].us, frames[-1][1].us
    return max(frames, key=lambda f: (_score(f[1], first, last), -f[1].us))


def _score(kept: PackedFrame, first: int, last: int) -> float:
    lit = 1.0 if 40 <= kept.light <= 215 else min(kept.light, 255 - kept.light) / 40 * 0.5
    place = (kept.us - first) / max(1, last - first)
    early = 1.0 if 0.05 <= place <= 0.7 else 0.6  # titles and credits lie at the ends
    return round(lit * early * min(kept.sharp, 1200), 6)  # beyond that, sharp is noise
