"""Text in pictures by the Tesseract that is installed: quick on slides and credits, weak over photographs."""

import csv
import io
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence

from rushes.domain.errors import ModelMissing
from rushes.engines.port import Line, Picture

NAME = "tesseract"
_LANGUAGES = {"en": "eng", "de": "deu", "fr": "fra", "es": "spa", "it": "ita", "pt": "por", "nl": "nld", "pl": "pol"}


class Tesseract:
    """Reads lines by a command, one picture at a time.

    Raises:
        ModelMissing: it is not installed.
    """

    def __init__(self) -> None:
        self._command = shutil.which(NAME)
        if not self._command:
            raise ModelMissing("tesseract is not installed", "Install tesseract-ocr with its languages.")

    def read(self, picture: Picture, languages: Sequence[str]) -> list[Line]:
        """The lines of a picture in its own order."""
        spoken = "+".join(_LANGUAGES.get(x, x) for x in languages) or "eng"
        height, width = picture.shape[:2]
        done = subprocess.run(
            [str(self._command), "stdin", "stdout", "-l", spoken, "--psm", "3", "tsv"],
            input=f"P6 {width} {height} 255\n".encode() + picture.tobytes(),
            capture_output=True,
            check=False,
            env=os.environ | {"OMP_THREAD_LIMIT": "1"},
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise ModelMissing(f"tesseract: {said[0]}", "Install the requested languages.")
        return _lines(csv.DictReader(io.StringIO(done.stdout.decode()), delimiter="\t", quoting=csv.QUOTE_NONE))


def _lines(rows: Iterable[dict[str, str]]) -> list[Line]:
    """Words with the same block, paragraph and line are one."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        if row["level"] == "5" and (row["text"] or "").strip():
            found.setdefault((row["block_num"], row["par_num"], row["line_num"]), []).append(row)
    return [_line(words) for words in found.values()]


def _line(words: Sequence[dict[str, str]]) -> Line:
    left, top = (min(float(w[side]) for w in words) for side in ("left", "top"))
    right = max(float(w["left"]) + float(w["width"]) for w in words)
    bottom = max(float(w["top"]) + float(w["height"]) for w in words)
    sure = sum(float(w["conf"]) for w in words) / len(words) / 100
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    return Line(" ".join(w["text"].strip() for w in words), sure, corners)
