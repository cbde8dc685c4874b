"""CPU seconds of develop (proxy, frame pack and cut metrics in one pass) against one ffmpeg and PySceneDetect.

Every run is a process of its own, runs are interleaved, medians are compared: `develop.py [FILM] [-n 5]`.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import imageio_ffmpeg
import numpy as np

_OURS = """
import sys
from pathlib import Path
from rushes.media.reading.frames import develop
from rushes.media.developing.cut_metrics import CutMetricsRecorder, join_metrics
from rushes.media.developing.frame_pack import FramePackWriter
from rushes.media.developing.proxy import ProxyWriter
from rushes.media.reading.probe import probe
from rushes.media.developing.shots import cuts
path, out, wanted = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
facts = probe(path)
track = facts.video
sinks = [CutMetricsRecorder(track)] if "m" in wanted else []
sinks += [FramePackWriter(out / "frames.pack", track)] if "f" in wanted else []
sinks += [ProxyWriter(out / "piece.mp4", facts, track.span)] if "p" in wanted else []
develop(path, facts, track.span, sinks, lambda _: None)
done = [sink.finish() for sink in sinks]
print(len(cuts(join_metrics(done[:1]))) if "m" in wanted else "")
"""
_SCENES = """
import sys
from scenedetect import ContentDetector, detect
print(max(0, len(detect(sys.argv[1], ContentDetector(min_scene_len=5))) - 1))
"""
_DECODE = """
import sys, av
with av.open(sys.argv[1]) as container:
    stream = container.streams.best("video")
    stream.thread_count = 1
    print(sum(1 for _ in container.decode(stream)))
"""


def cpu_seconds(command: list[str]) -> tuple[float, str]:
    """User and system time of a command and all its children, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, said


def contestants(film: Path, out: Path) -> dict[str, list[str]]:
    """What is compared, by name."""
    python = [sys.executable, "-c"]
    hls = "-force_key_frames expr:gte(t,n_forced*4) -sc_threshold 0 -fps_mode passthrough -f hls -hls_time 4"
    proxy = f"-an -vf scale=-2:'min(720,ih)' -c:v libx264 -preset veryfast -crf 23 -bf 2 {hls} -hls_playlist_type vod"
    ffmpeg = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-y", "-i", str(film), *proxy.split()]
    return {
        "ours: all of develop": [*python, _OURS, str(film), str(out), "mfp"],
        "ffmpeg: proxy": [*ffmpeg, "-hls_segment_type", "fmp4", str(out / "index.m3u8")],
        "PySceneDetect: cuts": [*python, _SCENES, str(film)],
        "ours: cuts": [*python, _OURS, str(film), str(out), "m"],
        "ours: frames": [*python, _OURS, str(film), str(out), "f"],
        "PyAV: decode only": [*python, _DECODE, str(film)],
    }


def make_film(path: Path, seconds: int = 20) -> Path:
    """A 1080p film with a cut every two seconds, something that moves, and grain."""
    chance = np.random.default_rng(1)
    grain = chance.integers(-6, 7, (8, 1080, 1920, 3), dtype=np.int16)
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=25, options={"preset": "veryfast", "crf": "20", "bf": "2"})
        stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
        for number in range(seconds * 25):
            if number % 50 == 0:
                low = chance.integers(30, 226, (9, 16, 3)).astype(np.int16)
                scene = np.kron(low, np.ones((120, 120, 1), np.int16))
            picture = np.clip(np.roll(scene, number * 3, axis=1) + grain[number % 8], 0, 255).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


def measured(runs: int, commands: dict[str, list[str]]) -> dict[str, float]:
    """Medians of interleaved runs."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            used, said = cpu_seconds(command)
            seconds[name].append(used)
            print(f"  {name:22} {used:7.2f} s  {said}", file=sys.stderr)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("film", nargs="?", type=Path)
    parser.add_argument("-n", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        film = asked.film or make_film(Path(folder) / "film.mp4")
        median = measured(asked.n, contestants(film, Path(folder)))
    report(median, print)


def report(median: dict[str, float], say: Callable[[str], None]) -> None:
    """Ratios, the smaller the better."""
    for name, seconds in median.items():
        say(f"{name:22} {seconds:7.2f} CPU s")
    peers = median["ffmpeg: proxy"] + median["PySceneDetect: cuts"]
    say(f"all of develop / (ffmpeg + PySceneDetect)  {median['ours: all of develop'] / peers:.2f}x")
    say(f"cuts / PySceneDetect                       {median['ours: cuts'] / median['PySceneDetect: cuts']:.2f}x")
    say(f"frames / decode only                       {median['ours: frames'] / median['PyAV: decode only']:.2f}x")


if __name__ == "__main__":
    main()
