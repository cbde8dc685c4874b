"""What is measured of media work, ours and the peers': each in a process of its own, its imports and probe not counted.

A slot of rushes stays warm and probe has a stage of its own; peers in Python get the same head start.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import av
import imageio_ffmpeg

from rushes.domain.span import Span
from rushes.domain.video import VideoFacts
from rushes.media.clips.clip import ProxyFiles as Reel
from rushes.media.clips.clip import clip_from_proxy, cut_clip
from rushes.media.developing.audio import extract_audio
from rushes.media.developing.cut_metrics import CutMetricsRecorder
from rushes.media.developing.frame_pack import FramePackWriter
from rushes.media.developing.hls import SegmentIndex
from rushes.media.developing.proxy import ProxyWriter
from rushes.media.developing.shots import boundaries
from rushes.media.reading.frames import develop
from rushes.media.reading.probe import probe
from rushes.plan.grid import grid

FFMPEG = imageio_ffmpeg.get_ffmpeg_exe()
ALIKE = 3  # bits of a dHash
CHUNK = 8  # seconds
LISTENS = 5  # times, since once takes too little time to be measured

Work = Callable[[], str]


def used() -> float:
    """CPU seconds of this process and its children."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def ffmpeg(*arguments: str | Path) -> None:
    """Run the command of the wheel."""
    subprocess.run([FFMPEG, "-v", "error", "-nostdin", "-y", *map(str, arguments)], check=True)


def decoded(film: Path, _out: Path) -> Work:
    def work() -> str:
        with av.open(str(film)) as container:
            stream = container.streams.best("video")
            assert stream
            stream.codec_context.thread_count = 1
            return f"{sum(1 for _ in container.decode(stream))} frames"

    return work


def proxy(film: Path, out: Path, workers: int = 2) -> Work:
    facts = probe(film)
    spans = grid(facts, CHUNK)

    def work() -> str:
        with get_context("fork").Pool(workers) as pool:
            made = pool.map(partial(_piece, film, facts, out), list(enumerate(spans)), 1)
            pool.close()
            pool.join()  # else its time is nobody's
        return f"{sum(len(layout.segments) for layout in made)} segments"

    return work


def _piece(film: Path, facts: VideoFacts, out: Path, chunk: tuple[int, Span]) -> SegmentIndex:
    number, span = chunk
    made = ProxyWriter(out / f"piece{number:03d}.mp4", facts, span)
    develop(film, facts, span, [made], lambda _: None)
    return made.finish()


def ffmpeg_proxy(film: Path, out: Path) -> Work:
    """One process, with B-frames and key frames as ours has them."""
    encoded = "-an -vf scale=-2:'min(720,ih)' -c:v libx264 -preset veryfast -crf 23 -bf 2 -fps_mode passthrough"
    hls = "-force_key_frames expr:gte(t,n_forced*4) -sc_threshold 0 -f hls -hls_time 4 -hls_playlist_type vod"

    def work() -> str:
        ffmpeg("-i", film, *encoded.split(), *hls.split(), "-hls_segment_type", "fmp4", out / "index.m3u8")
        return f"{len(list(out.glob('*.m4s')))} segments"

    return work


def frames(film: Path, out: Path) -> Work:
    facts = probe(film)
    assert facts.video
    pack = FramePackWriter(out / "frames.pack", facts.video)
    span = facts.video.span

    def work() -> str:
        develop(film, facts, span, [pack], lambda _: None)
        return f"{len(pack.finish().frames)} frames"

    return work


def ffmpeg_frames(film: Path, out: Path, seen: str = "dhash") -> Work:
    hashed, image = getattr(import_module("imagehash"), seen), import_module("PIL.Image")

    def work() -> str:
        ffmpeg("-i", film, "-vf", "fps=10", "-q:v", "3", out / "ff%06d.jpg")
        last, kept = None, 0
        for path in sorted(out.glob("ff*.jpg")):
            now = hashed(image.open(path))
            if last is None or now - last > ALIKE:
                last, kept = now, kept + 1
            else:
                path.unlink()
        return f"{kept} frames"

    return work


def opencv_frames(film: Path, out: Path) -> Work:
    cv2, imagehash, image = (import_module(name) for name in ("cv2", "imagehash", "PIL.Image"))

    def work() -> str:
        source, last, kept, taken = cv2.VideoCapture(str(film)), None, 0, 0
        rate, n = source.get(cv2.CAP_PROP_FPS), -1
        while source.grab():
            n += 1
            if n < taken * rate / 10:
                continue
            taken += 1
            picture = source.retrieve()[1]
            now = imagehash.dhash(image.fromarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)))
            if last is None or now - last > ALIKE:
                cv2.imwrite(str(out / f"cv{n}.jpg"), picture, [cv2.IMWRITE_JPEG_QUALITY, 88])
                last, kept = now, kept + 1
        return f"{kept} frames"

    return work


def shots(film: Path, _out: Path) -> Work:
    facts = probe(film)
    assert facts.video
    measure, span = CutMetricsRecorder(facts.video), facts.video.span

    def work() -> str:
        develop(film, facts, span, [measure], lambda _: None)
        return json.dumps(list(boundaries(measure.finish()).items()))

    return work


def scenes(film: Path, _out: Path, detector: str = "ContentDetector") -> Work:
    """PySceneDetect as it comes."""
    found: Any = import_module("scenedetect")

    def work() -> str:
        some = found.detect(str(film), getattr(found, detector)())
        return json.dumps([[start.frame_num, "cut"] for start, _ in some[1:]])

    return work


def scdet(film: Path, _out: Path) -> Work:
    def work() -> str:
        command = [FFMPEG, "-nostdin", "-i", str(film), "-an", "-vf", "scdet=t=10", "-f", "null", "-"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        times = [line.rsplit("lavfi.scd.time: ", 1)[1] for line in said.splitlines() if "lavfi.scd.time" in line]
        return json.dumps([[round(float(time) * 25), "cut"] for time in times])

    return work


def one_pass(film: Path, out: Path) -> Work:
    """Cuts, kept frames (which text and things are read from) and the sound for speech."""
    facts = probe(film)
    assert facts.video
    measure, pack, span = (
        CutMetricsRecorder(facts.video),
        FramePackWriter(out / "frames.pack", facts.video),
        facts.video.span,
    )

    def work() -> str:
        develop(film, facts, span, [measure, pack], lambda _: None)
        extract_audio(film, facts, out / "pcm.wav", None, lambda _: None)
        return f"{len(boundaries(measure.finish()))} cuts, {len(pack.finish().frames)} frames"

    return work


def five_passes(film: Path, out: Path) -> Work:
    """Cuts by PySceneDetect; ten frames a second by pHash; two small ones; one in full; the sound."""
    cuts, kept = scenes(film, out), ffmpeg_frames(film, out, "phash")

    def work() -> str:
        cuts()
        said = kept()
        ffmpeg("-i", film, "-vf", "fps=2,scale=640:360", "-q:v", "3", out / "small%06d.jpg")
        ffmpeg("-i", film, "-vf", "fps=1", "-q:v", "3", out / "full%06d.jpg")
        ffmpeg("-i", film, "-vn", "-ac", "1", "-ar", "16000", out / "sound.wav")
        return said

    return work


def smart_clip(film: Path, out: Path, start: str, end: str) -> Work:
    facts = probe(film)

    def work() -> str:
        made = cut_clip(film, facts, Fraction(start), Fraction(end), out / "clip.mp4", lambda _: None)
        return f"{made.frames} frames, {made.copied} copied"

    return work


def proxy_clip(film: Path, out: Path, start: str, end: str) -> Work:
    facts = probe(film)
    layouts = [_piece(film, facts, out, chunk) for chunk in enumerate(grid(facts, CHUNK))]
    sound = extract_audio(film, facts, out / "pcm.wav", out / "sound.mp4", lambda _: None).sound
    assert sound
    pieces = [(out / f"piece{n:03d}.mp4", layout) for n, layout in enumerate(layouts)]
    reel = Reel(pieces, [(out / "sound.mp4", sound)])
    scratch = out / "scratch"
    scratch.mkdir()

    def work() -> str:
        part = Fraction(start), Fraction(end)
        made = clip_from_proxy(reel, facts, part, scratch, out / "clip.mp4", lambda _: None)
        return f"{made.frames} frames, {made.copied} copied"

    return work


def ffmpeg_clip(film: Path, out: Path, start: str, end: str, height: str) -> Work:
    """The exact way that decodes no more than it must: a seek before the input, everything encoded anew."""
    encoded = f"-vf scale=-2:'min({height},ih)' -c:v libx264 -preset veryfast -crf 20 -bf 2 -c:a aac -b:a 128k"

    def work() -> str:
        ffmpeg("-ss", start, "-to", end, "-i", film, *encoded.split(), out / "clip.mp4")
        return ""

    return work


def listened(film: Path, out: Path) -> Work:
    facts = probe(film)

    def work() -> str:
        for _ in range(LISTENS):
            made = extract_audio(film, facts, out / "pcm.wav", None, lambda _: None)
        return f"{made.samples} samples"

    return work


def ffmpeg_listened(film: Path, out: Path) -> Work:
    def work() -> str:
        for _ in range(LISTENS):
            ffmpeg("-i", film, "-vn", "-ac", "1", "-ar", "16000", "-c:a", "pcm_s16le", out / "sound.wav")
        return ""

    return work


def main(name: str, film: str, out: str, *more: str) -> None:
    """Do one of the works above in this process, and print what it took."""
    work = globals()[name](Path(film), Path(out), *more)
    began, before = time.perf_counter(), used()
    said = work()
    print(json.dumps({"cpu": used() - before, "wall": time.perf_counter() - began, "said": said}))


def command(name: str, film: Path, out: Path, *more: str) -> Sequence[str]:
    """How to start one of them."""
    text = "import sys; from benchmarks.media_work import main; main(*sys.argv[1:])"
    return [sys.executable, "-c", text, name, str(film), str(out), *more]
