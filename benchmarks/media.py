"""Media work against its peers, interleaved, in CPU seconds: python -m benchmarks.media [--film F] [-n RUNS].

Needs the prove extra, and opencv-python-headless and imagehash for the peers of sampling.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import imageio_ffmpeg

from benchmarks.develop import make_film, measured
from rushes.media.develop import develop
from rushes.media.piece import Proxy
from rushes.media.probe import probe

_PROXY = """
import sys
from multiprocessing import get_context
from pathlib import Path
from rushes.media.develop import develop
from rushes.media.piece import Proxy
from rushes.media.probe import probe
from rushes.plan.grid import grid
def made(work):
    path, facts, span, out = work
    proxy = Proxy(out, facts, span)
    develop(path, facts, span, [proxy], lambda _: None)
    return len(proxy.close().segments)
if __name__ == "__main__":
    path, out = Path(sys.argv[1]), Path(sys.argv[2])
    facts = probe(path)
    with get_context("fork").Pool(2) as pool:
        works = [(path, facts, span, out / f"piece{n}.mp4") for n, span in enumerate(grid(facts, 8))]
        print(sum(pool.map(made, works, 1)), "segments")
"""
_SINKS = """
import sys
from pathlib import Path
from rushes.media.develop import develop
from rushes.media.metrics import Measure
from rushes.media.pack import Pack
from rushes.media.probe import probe
from rushes.media.shots import cuts
path, out, wanted = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
facts = probe(path)
sink = Measure(facts.video) if wanted == "cuts" else Pack(out / "frames.pack", facts.video)
develop(path, facts, facts.video.span, [sink], lambda _: None)
done = sink.close()
print(len(cuts(done) if wanted == "cuts" else done.frames), wanted)
"""
_CLIP = """
import sys
from pathlib import Path
from rushes.media.clip import clip
from rushes.media.probe import probe
path, out, smart = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "smart"
facts = probe(path)
start, length = facts.start, facts.duration
ends = start + length / 50, start + length * 49 / 50
made = clip(path, facts, *ends, out / f"{sys.argv[3]}.mp4", lambda _: None, smart=smart)
print(made.frames, "frames,", made.copied, "copied")
"""
_DECODE = """
import sys, av
with av.open(sys.argv[1]) as container:
    stream = container.streams.best("video")
    stream.thread_count = 1
    print(sum(1 for _ in container.decode(stream)), "frames")
"""
_OPENCV = """
import sys, cv2, imagehash
from PIL import Image
film, out, last, kept, n = cv2.VideoCapture(sys.argv[1]), sys.argv[2], None, 0, -1
step = round(film.get(cv2.CAP_PROP_FPS) / 10)
while True:
    n += 1
    if not film.grab():
        break
    if n % step:
        continue
    _, picture = film.retrieve()
    seen = imagehash.dhash(Image.fromarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)))
    if last is None or seen - last > 3:
        cv2.imwrite(f"{out}/cv{n}.jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 88])
        last, kept = seen, kept + 1
print(kept, "frames")
"""
_FFMPEG_HASH = """
import subprocess, sys, imagehash
from pathlib import Path
from PIL import Image
exe, film, out = sys.argv[1:]
subprocess.run([exe, "-v", "error", "-y", "-i", film, "-vf", "fps=10", "-q:v", "3", f"{out}/ff%06d.jpg"], check=True)
last, kept = None, 0
for path in sorted(Path(out).glob("ff*.jpg")):
    seen = imagehash.dhash(Image.open(path))
    if last is None or seen - last > 3:
        last, kept = seen, kept + 1
    else:
        path.unlink()
print(kept, "frames")
"""
_SCENES = """
import sys
from scenedetect import ContentDetector, detect
print(max(0, len(detect(sys.argv[1], ContentDetector(min_scene_len=5))) - 1), "cuts")
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """A ratio of two contestants, and what it may be at most."""

    ours: str
    peer: str
    at_most: float


BARS = (
    Bar("proxy, 2 workers", "ffmpeg: proxy", 1.03),
    Bar("frames", "decode only", 1.17),
    Bar("frames", "ffmpeg + imagehash", 0.52),
    Bar("frames", "OpenCV + imagehash", 0.62),
    Bar("cuts", "PySceneDetect", 0.65),
    Bar("clip from the proxy", "clip encoded", 0.18),
    Bar("clip, smart", "clip encoded", 0.35),
)


def contestants(film: Path, proxy: Path, out: Path) -> dict[str, list[str]]:
    """What is compared, by name."""
    python, exe = [sys.executable, "-c"], imageio_ffmpeg.get_ffmpeg_exe()
    names = [str(film), str(out)]
    encoded = "-an -vf scale=-2:'min(720,ih)' -c:v libx264 -preset veryfast -crf 23 -bf 2 -fps_mode passthrough"
    hls = "-force_key_frames expr:gte(t,n_forced*4) -sc_threshold 0 -f hls -hls_time 4 -hls_segment_type fmp4"
    quiet = [exe, "-v", "error", "-y", "-i", str(film)]
    return {
        "ffmpeg: proxy": [*quiet, *encoded.split(), *hls.split(), str(out / "index.m3u8")],
        "proxy, 2 workers": [*python, _PROXY, *names],
        "decode only": [*python, _DECODE, str(film)],
        "frames": [*python, _SINKS, *names, "frames"],
        "ffmpeg + imagehash": [*python, _FFMPEG_HASH, exe, *names],
        "OpenCV + imagehash": [*python, _OPENCV, *names],
        "PySceneDetect": [*python, _SCENES, str(film)],
        "cuts": [*python, _SINKS, *names, "cuts"],
        "clip encoded": [*python, _CLIP, *names, "encoded"],
        "clip, smart": [*python, _CLIP, *names, "smart"],
        "clip from the proxy": [*python, _CLIP, str(proxy), str(out), "smart"],
    }


def make_proxy(film: Path, out: Path) -> Path:
    """The proxy of a film in one piece."""
    facts = probe(film)
    assert facts.video
    proxy = Proxy(out, facts, facts.video.span)
    develop(film, facts, facts.video.span, [proxy], lambda _: None)
    proxy.close()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--film", type=Path)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("-n", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        film = asked.film or make_film(Path(folder) / "film.mp4", asked.seconds)
        proxy = make_proxy(film, Path(folder) / "whole.mp4")
        median = measured(asked.n, contestants(film, proxy, Path(folder)))
    for name, seconds in median.items():
        print(f"{name:20} {seconds:7.2f} CPU s")
    for bar in BARS:
        ratio = median[bar.ours] / median[bar.peer]
        verdict = "ok" if ratio <= bar.at_most else "MISSED"
        print(f"{bar.ours:20} / {bar.peer:20} {ratio:.2f}x, at most {bar.at_most:.2f}x: {verdict}")


if __name__ == "__main__":
    main()
