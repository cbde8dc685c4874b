"""Proxy, speech and shots against the bare commands for the same outputs: ffmpeg, faster-whisper, PySceneDetect.

    python -m benchmarks.recipe [--samples PATH] [--rounds 5]

CPU seconds of the process tree, interleaved, median. Also: what the engine itself costs per task, how fast the recipe
is against real time, and how long a 30-minute film takes to its first searchable word.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import av
import psutil
from proof.kills import Film, environment, undisturbed
from tests.acceptance.conftest import draw

from rushes.engines.models.store import ModelStore
from rushes.library import Library
from rushes.model_settings import models_folder
from rushes.settings import load

HEAR = """
import sys
from faster_whisper import WhisperModel
model = WhisperModel(sys.argv[2], device="cpu", compute_type="int8", cpu_threads=2)
found, _ = model.transcribe(sys.argv[1], beam_size=5, vad_filter=True, word_timestamps=True)
print(sum(len(s.words) for s in found))
"""
_LOOK_SECONDS = 0.2
SAME = "playlist,shots,transcript"  # what reads and sees is compared in benchmarks.one_pass
CUTS = """
import sys
from scenedetect import ContentDetector, detect
print(len(detect(sys.argv[1], ContentDetector(min_scene_len=5))))
"""


def cpu(argv: Sequence[str], cwd: Path, **env: str) -> tuple[float, float]:
    """CPU and wall seconds of a command and all its children.

    Nobody is told what a slot has used that ended with its namespace, so that it is looked at as long as it runs.
    """
    before, begun = _of_children(), time.monotonic()
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(argv, cwd=cwd, env={**os.environ, **env}, stdout=said, stderr=said) as process:
            seen: dict[psutil.Process, float] = {}
            while process.returncode is None:
                seen |= _tree(process.pid)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_SECONDS)
        wall = time.monotonic() - begun
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{argv}: {said.read().decode()[-2000:]}")
    return max(sum(seen.values()), _of_children() - before), wall


def _of_children() -> float:
    """Of those that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tree(pid: int) -> dict[psutil.Process, float]:
    """CPU seconds of a process and of each below it, so far."""
    found: dict[psutil.Process, float] = {}
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(pid)
        for process in (top, *top.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                found[process] = sum(process.cpu_times()[:2])
    return found


def bare(film: Path, folder: Path) -> dict[str, list[str]]:
    """The commands a person would type for the same outputs."""
    import imageio_ffmpeg  # noqa: PLC0415 - only here: a peer, no part of the product

    whisper = ModelStore(models_folder(load().settings)).find("whisper-base")
    proxy = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-i", str(film), "-vf", "scale=-2:'min(720,ih)'", "-c:v", "libx264"]
    proxy += ["-preset", "veryfast", "-crf", "23", "-bf", "2", "-force_key_frames", "expr:gte(t,n_forced*4)"]
    proxy += ["-c:a", "aac", "-f", "hls", "-hls_time", "4", "-hls_playlist_type", "vod", "-hls_segment_type", "fmp4"]
    return {
        "ffmpeg proxy": [*proxy, str(folder / "index.m3u8")],
        "faster-whisper base": [sys.executable, "-c", HEAR, str(film), str(whisper)],
        "PySceneDetect": [sys.executable, "-c", CUTS, str(film)],
    }


def compare(film: Path, rounds: int) -> float:
    """Print the table; answers ours / bare."""
    times: dict[str, list[tuple[float, float]]] = {}
    for n in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for what, argv in bare(film, folder).items():
                times.setdefault(what, []).append(cpu(argv, folder))
            ours = [sys.executable, "-m", "rushes", "--home", str(folder / "home"), "run", "--no-beside"]
            times.setdefault("rushes run", []).append(cpu([*ours, "--only", SAME, str(film)], folder))
            print(f"round {n + 1} of {rounds}", file=sys.stderr, flush=True)
    middle = {what: statistics.median(c for c, _ in found) for what, found in times.items()}
    wall = statistics.median(w for _, w in times["rushes run"])
    together = sum(c for what, c in middle.items() if what != "rushes run")
    print("| | CPU s (median) |\n|---|---|")
    for what, seconds in middle.items():
        print(f"| {what} | {seconds:.1f} |")
    length = float(_length(film))
    print(f"\nrushes / bare: {middle['rushes run'] / together:.2f} (bar 1.05)")
    print(f"{length:.0f} s of film in {wall:.1f} s: {length / wall:.1f}x real time on {os.cpu_count()} cores")
    return middle["rushes run"] / together


def overhead() -> None:
    """What a task costs beside its work: no-op stages in many chunks, without the start of the processes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = (draw(folder / f"{s}.mp4", s, rate=2) for s in (20, 1020))
        used = {}
        for film in (small, large):
            place = folder / film.stem
            place.mkdir()
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            audited, points = undisturbed(place, Film(film, "toy_join"))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            used[film.stem] = (spent, audited.tasks, points)
        (a, n, few), (b, m, many) = used["20"], used["1020"]
        writes = [p for p in many if p.startswith("ledger.") and p.endswith(":before")]
        trips = sum(len(many[p]) - len(few.get(p, ())) for p in writes)
        print(f"\nengine: {1000 * (b - a) / (m - n):.1f} CPU-ms per task, {trips / (m - n):.1f} ledger writes per task")
        if shutil.which("strace"):
            print(f"        {_fsyncs(folder, large) / m:.1f} fsyncs per task (two results and two files each)")


def _fsyncs(folder: Path, film: Path) -> int:
    place = folder / "strace"
    place.mkdir()
    out = place / "calls"
    argv = ["strace", "-f", "-o", str(out), "-e", "trace=fsync,fdatasync", sys.executable, "-m", "proof.film_runner"]
    argv += [str(place / "home"), str(film), "--only", "toy_join", "--chunk", "5"]
    subprocess.run(argv, env=environment(place, RUSHES_SANDBOX="auto"), capture_output=True, check=True)
    return sum("sync(" in line for line in out.read_text().splitlines())


def first_word(film: Path, minutes: int = 30) -> None:
    """How long until a word of a long film is found while the rest is being worked on."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        long = loop(film, folder / "long.mp4", minutes * 60)
        begun = time.monotonic()
        argv = [sys.executable, "-m", "rushes", "--home", str(folder / "home"), "run", "--no-beside", str(long)]
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            found = 0.0
            while not found and process.poll() is None:
                time.sleep(0.5)
                with Library(folder / "home") as library:
                    if library.summary().kinds.get("speech"):
                        found = time.monotonic() - begun
            process.send_signal(signal.SIGINT)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
        print(f"\na {minutes}-minute film: first searchable word after {found / 60:.1f} minutes")


def loop(film: Path, target: Path, seconds: int) -> Path:
    """The film again and again, packets copied."""
    import imageio_ffmpeg  # noqa: PLC0415 - only here: a peer, no part of the product

    argv = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-stream_loop", "-1", "-i", str(film), "-t", str(seconds)]
    subprocess.run([*argv, "-c", "copy", str(target)], check=True, capture_output=True)
    return target


def quality(film: Path, truth: Path) -> None:
    """Words and cuts against what is known of the sample."""
    if not truth.exists():
        return
    known = json.loads(truth.read_text())
    with tempfile.TemporaryDirectory() as name, Library(Path(name) / "home") as library:
        library.run([film], beside=False)
        shots = library.videos.shots(library.videos.find(library.videos.page()[0][0].id))
        cuts = known["cuts_frames"]
        print(f"\n{film.name}: {len(shots) - 1} cuts found, {len(cuts)} known (words: see benchmarks.speech)")


def _length(film: Path) -> float:
    with av.open(str(film)) as source:
        return (source.duration or 0) / av.time_base


def main(argv: Sequence[str] | None = None) -> int:
    """Run all parts; answer 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=Path, default=Path("../shared/samples"))
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args(argv)
    film = asked.samples / "video" / "demo_55s.mp4"
    with tempfile.TemporaryDirectory() as name:
        if not film.exists():
            film = Path(name) / "film.mp4"
            subprocess.run([sys.executable, "scripts/make_demo_film.py", str(film)], check=True)
        overhead()
        ratio = compare(film.resolve(), asked.rounds)
        quality(film, film.with_suffix(".truth.json"))
        first_word(film)
    return 0 if ratio <= 1.05 else 1


if __name__ == "__main__":
    sys.exit(main())
