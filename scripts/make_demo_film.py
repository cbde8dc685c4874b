"""Makes the demo film: drawn pictures with titles and hard cuts, a public-domain voice laid under them twice."""

import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from film import cards, earth, hills, rocket, sea
from film.shapes import HEIGHT, WIDTH, Picture

FPS, VOICE_RATE, AHEAD = 25, 16_000, 6
SOUND = VOICE_RATE // FPS  # samples under one picture: both end together
SCENES = ((cards.title, 4), (hills.draw, 7), (sea.draw, 6), (rocket.draw, 7), (earth.draw, 8), (cards.end, 4))
CUTS = (4, 11, 17, 24, 32)  # seconds; what a finder of shots should find
VOICE_AT = (4.6, 19.6)  # seconds; eleven seconds each
VOICE = Path(__file__).parent / "demo_media" / "jfk.flac"
BITEXACT = av.codec.context.Flags.bitexact


def main(out: Path) -> None:
    """Write the film; the same bytes each time."""
    part = out.with_name(f"{out.name}.part")
    options = {"movflags": "+faststart", "fflags": "+bitexact"}
    with av.open(str(part), "w", format="mp4", container_options=options) as container:
        video, audio = _video(container), _audio(container)
        sounds = _sounds()
        for number, picture in enumerate(_pictures()):
            frame = av.VideoFrame.from_ndarray(picture, format="rgba")
            frame.pts = number
            container.mux(video.encode(frame.reformat(format="yuv420p", dst_colorspace="ITU709")))
            container.mux(audio.encode(next(sounds)))
        container.mux(video.encode(None))
        container.mux(audio.encode(None))
    part.replace(out)


def _video(container: av.container.OutputContainer) -> av.VideoStream:
    video = container.add_stream("libx264", rate=FPS)
    video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
    video.time_base = video.codec_context.time_base = Fraction(1, FPS)
    context = video.codec_context
    context.gop_size, context.flags = 2 * FPS, context.flags | BITEXACT
    context.color_primaries = context.color_trc = context.colorspace = 1
    context.thread_count = 2
    params = "scenecut=0:cpu-independent=1:sliced-threads=0"
    context.options = {"preset": "veryfast", "crf": "20", "x264-params": params}
    return video


def _audio(container: av.container.OutputContainer) -> av.AudioStream:
    audio = container.add_stream("aac", rate=VOICE_RATE, layout="mono", bit_rate=64_000)
    audio.codec_context.flags |= BITEXACT
    return audio


def _pictures() -> Iterator[Picture]:
    """Every picture of the film, drawn a few ahead by two threads."""
    with ThreadPoolExecutor(2) as pool:
        ahead: deque[Future[Picture]] = deque()
        for make, seconds in SCENES:
            draw = make()
            for number in range(seconds * FPS):
                ahead.append(pool.submit(draw, number / FPS))
                if len(ahead) > AHEAD:
                    yield ahead.popleft().result()
        yield from (future.result() for future in ahead)


def _sounds() -> Iterator[av.AudioFrame]:
    track, voice = np.zeros(sum(s for _, s in SCENES) * VOICE_RATE, np.int16), _voice()
    for second in VOICE_AT:
        start = round(second * VOICE_RATE)
        track[start : start + voice.size] = voice
    for start in range(0, track.size, SOUND):
        frame = av.AudioFrame.from_ndarray(track[None, start : start + SOUND], format="s16", layout="mono")
        frame.sample_rate, frame.pts = VOICE_RATE, start
        frame.time_base = Fraction(1, VOICE_RATE)
        yield frame


def _voice() -> npt.NDArray[np.int16]:
    with av.open(str(VOICE)) as container:
        return np.concatenate([frame.to_ndarray().reshape(-1) for frame in container.decode(audio=0)])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_demo_film.py OUT.mp4")
    main(Path(sys.argv[1]))
