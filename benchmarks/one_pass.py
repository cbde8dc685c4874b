"""The default recipe against one script per analysis, as a person would write them with the same models.

    python -m benchmarks.one_pass [--samples PATH] [--rounds 5]

Each script opens the film itself and looks at one frame a second. CPU seconds of the process tree, interleaved, median.
Text is read by rapidocr, with the nets that rushes uses too, in an environment of its own.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from proof.peer_faults import Engine, environment

from benchmarks.recipe import bare, cpu

BAR = 0.6
RAPIDOCR = Engine("rapidocr", "", ("rapidocr==3.10.0", "onnxruntime", "opencv-python-headless>=4.10,<5"))
SAMPLED = """
import sys
import cv2

def frames(path):
    film = cv2.VideoCapture(path)
    rate, n = film.get(cv2.CAP_PROP_FPS) or 25.0, 0
    while film.grab():
        if n >= round(rate * getattr(frames, "taken", 0)):
            frames.taken = getattr(frames, "taken", 0) + 1
            yield cv2.cvtColor(film.retrieve()[1], cv2.COLOR_BGR2RGB)
        n += 1

def engine():
    from rushes.engines.local import LocalEngine
    from rushes.engines.models.store import ModelStore
    from rushes.model_settings import models_folder
    from rushes.settings import load
    return LocalEngine(ModelStore(models_folder(load().settings)), threads=2)

"""
RAPID = """
from rapidocr import RapidOCR
ocr = RapidOCR(params={"Global.use_cls": False, "Det.limit_type": "max", "Det.limit_side_len": 960,
    "EngineConfig.onnxruntime.intra_op_num_threads": 2})
print(sum(len(ocr(f[:, :, ::-1]).txts or ()) for f in frames(sys.argv[1])))
"""
ASKED = {
    "objects": 'e.detect_objects("efficientdet-lite0", [f], 0.4)[0]',
    "faces": 'e.detect_faces("yunet-sface", [f], 0.7, 960)[0]',
    "places": 'e.classify_place("efficientnet-lite0", [f], 5)[0]',
}


def scripts(film: Path, folder: Path, reader: Path) -> dict[str, list[str]]:
    """What a person would run, one after the other."""
    found = {**bare(film, folder), "rapidocr on sampled frames": [str(reader), "-c", SAMPLED + RAPID, str(film)]}
    for what, question in ASKED.items():
        body = f"e = engine()\nprint(sum(len({question}) for f in frames(sys.argv[1])))"
        found[f"{what} on sampled frames"] = [sys.executable, "-c", SAMPLED + body, str(film)]
    return found


def compare(film: Path, rounds: int, reader: Path) -> float:
    """Print the table; answers ours / theirs."""
    used: dict[str, list[float]] = {}
    for n in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for what, argv in scripts(film, folder, reader).items():
                used.setdefault(what, []).append(cpu(argv, folder)[0])
            ours = [sys.executable, "-m", "rushes", "--home", str(folder / "home"), "run", "--no-beside", str(film)]
            used.setdefault("rushes run", []).append(cpu(ours, folder)[0])
            print(f"round {n + 1} of {rounds}", file=sys.stderr, flush=True)
    middle = {what: statistics.median(some) for what, some in used.items()}
    print("| | CPU s (median) |\n|---|---|")
    for what, seconds in middle.items():
        print(f"| {what} | {seconds:.1f} |")
    ratio = middle.pop("rushes run") / sum(middle.values())
    print(f"\nrushes / scripts: {ratio:.2f} (bar {BAR})")
    return ratio


def main(argv: Sequence[str] | None = None) -> int:
    """Answer 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=Path, default=Path("../shared/samples"))
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args(argv)
    film = asked.samples / "video" / "demo_55s.mp4"
    with tempfile.TemporaryDirectory() as name:
        if not film.exists():
            film = Path(name) / "film.mp4"
            subprocess.run([sys.executable, "scripts/make_demo_film.py", str(film)], check=True)
        return int(compare(film.resolve(), asked.rounds, environment(RAPIDOCR, Path(name))) > BAR)


if __name__ == "__main__":
    sys.exit(main())
