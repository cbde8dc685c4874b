"""Preview: eight frames of a film in 3D with a suggested strength."""

from collections.abc import Iterator
from statistics import median

import numpy as np
import simplejpeg
from av import VideoFrame

from rushes.domain.errors import BadMedia
from rushes.domain.span import Span
from rushes.domain.stage import Scope, StageSpec
from rushes.domain.video import VideoTrack
from rushes.engines.models.depth import gives_inverse
from rushes.engines.port import Picture
from rushes.media.reading.frames import decode, frame_at, has_frames
from rushes.media.reading.scaling import RgbScaler, display_size
from rushes.media.stereo.depth_maps import DepthWriter, read_map
from rushes.media.stereo.frame_packing import FramePacker, parse_format
from rushes.media.stereo.grade import AUTO, Grade, GradeOptions, grade_shot
from rushes.media.stereo.render import Renderer
from rushes.media.stereo.temporal_depth import TemporalDepth
from rushes.stages.port import Work

FRAMES = 8
_ACROSS = 4
_QUALITY = 90


class Preview:
    """Renders evenly spread frames, each graded as a shot of its own."""

    spec = StageSpec(
        "preview",
        1,
        Scope.VIDEO,
        ("preview",),
        needs=("probe",),
        options={"format": "anaglyph", "strength": AUTO, "convergence": AUTO, "height": 360, "output": AUTO},
        models=("depth",),
        reads_source=True,
    )

    def run(self, work: Work) -> None:
        """Save strip.jpg, with the median strength and convergence in its facts."""
        track = work.facts.video
        if track is None:
            raise BadMedia("this file has no picture", "3D needs a video with a picture.")
        options = GradeOptions.of(work.options)
        packer = FramePacker(
            parse_format(str(work.options["format"])), display_size(track, int(work.options["height"]))
        )
        shown, grades = [], []
        for n, (pts, frame) in enumerate(_spread_frames(work, track)):
            picture, found = _render(work, track, packer, options, pts, frame)
            shown.append(picture)
            grades.append(found)
            work.progress(n / FRAMES)
        sheet = simplejpeg.encode_jpeg(_sheet(shown), _QUALITY, "RGB", "420", fastdct=False)
        name = f"videos/3d/{work.video}/preview-{packer.format}.jpg"
        work.save("preview", "strip.jpg", sheet, "image/jpeg", name)
        strength = round(median(g.strength for g in grades), 1)
        convergence = round(median(g.convergence for g in grades), 1)
        work.note("preview", strength=strength, convergence=convergence, frames=len(shown), format=str(packer.format))


def _spread_frames(work: Work, track: VideoTrack) -> Iterator[tuple[int, VideoFrame]]:
    """Frames at evenly spread times; at key frames where there are enough, which is faster."""
    step = (track.end - track.start) / FRAMES
    even = [track.start + int((n + 0.5) * step) for n in range(FRAMES)]
    keys = [min(track.keys, key=lambda key: abs(key - moment)) for moment in even] if track.keys else []
    chosen = keys if len(set(keys)) == FRAMES else even
    for moment in chosen:
        frame = _frame_after(work, track, moment)
        if frame is not None:
            yield frame.pts or 0, frame


def _frame_after(work: Work, track: VideoTrack, moment: int) -> VideoFrame | None:
    """The first frame at or after a time, else the last one of the film."""
    footage, rest = work.footage(), Span(moment, track.end, track.base)
    if not has_frames(footage, track, rest):
        return frame_at(footage, work.facts, moment)
    return next(decode(footage, work.facts, rest), None)


def _render(
    work: Work, track: VideoTrack, packer: FramePacker, options: GradeOptions, pts: int, frame: VideoFrame
) -> tuple[Picture, Grade]:
    model, file = work.models["depth"], work.temporary(".bin")
    writer = DepthWriter(file, track.base, packer.eye)
    inverse = gives_inverse(model, str(work.options["output"]))
    writer.add(pts, work.engine.inverse_depth(model, RgbScaler(track, packer.eye).scale(frame), inverse=inverse))
    index = writer.finish()
    found = grade_shot(pts, pts + 1, index.maps, options)
    with file.open("rb") as maps:
        depth = TemporalDepth(index.maps, lambda one: read_map(maps, one, index.size), track.base)
        made = Renderer(track, packer, depth, [found]).render(pts, frame)
    rgb = made.to_ndarray(format="rgb24")
    return np.asarray(rgb, np.uint8), found


def _sheet(pictures: list[Picture]) -> Picture:
    """All in one picture, four in a row, filled up with black."""
    blank = np.zeros_like(pictures[0])
    full = [*pictures, *[blank] * (FRAMES - len(pictures))]
    rows = [np.concatenate(full[n : n + _ACROSS], axis=1) for n in range(0, FRAMES, _ACROSS)]
    return np.ascontiguousarray(np.concatenate(rows))


STAGE = Preview()
