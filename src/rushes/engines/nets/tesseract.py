"""Text in pictures by an installed Tesseract: fast on slides and credits, weak on photographs."""

import csv
import io
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence

from rushes.domain.errors import ModelMissing, Refused
from rushes.domain.grouping import grouped
from rushes.engines.models.languages import iso_639_3
from rushes.engines.models.manifest import TESSERACT
from rushes.engines.port import Picture, TextLine

_CHINESE = "chi_sim"
_LANGUAGES = re.compile(r"[a-z_]+(\+[a-z_]+)*")  # names of its data, never a path


class Tesseract:
    """Runs the command once per picture. Raises ModelMissing if it is not installed."""

    def __init__(self) -> None:
        self._command = shutil.which(TESSERACT)
        if not self._command:
            raise ModelMissing("tesseract is not installed", "Install tesseract-ocr with its languages.")

    def read(self, picture: Picture, languages: Sequence[str]) -> list[TextLine]:
        """The lines of a picture, in the order of Tesseract."""
        language = "+".join(_CHINESE if x == "zh" else iso_639_3(x) for x in languages) or "eng"
        if not _LANGUAGES.fullmatch(language):
            raise Refused(f"{language[:100]!r} names no languages", "Write them as eng or de.")
        height, width = picture.shape[:2]
        call = [str(self._command), "stdin", "stdout", "-l", language, "--psm", "3", "tsv"]
        pnm, env = f"P6 {width} {height} 255\n".encode() + picture.tobytes(), os.environ | {"OMP_THREAD_LIMIT": "1"}
        done = subprocess.run(call, input=pnm, capture_output=True, check=False, env=env)
        if done.returncode:
            message = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise ModelMissing(f"tesseract: {message[0]}", "Install the Tesseract data of these languages.")
        return _text_lines(csv.DictReader(io.StringIO(done.stdout.decode()), delimiter="\t", quoting=csv.QUOTE_NONE))


def _text_lines(rows: Iterable[dict[str, str]]) -> list[TextLine]:
    """Words with the same block, paragraph and line make one line."""
    words = (row for row in rows if row["level"] == "5" and (row["text"] or "").strip())
    lines = grouped(words, lambda row: (row["block_num"], row["par_num"], row["line_num"]))
    return [_text_line(some) for some in lines.values()]


def _text_line(words: Sequence[dict[str, str]]) -> TextLine:
    left, top = (min(float(w[side]) for w in words) for side in ("left", "top"))
    right = max(float(w["left"]) + float(w["width"]) for w in words)
    bottom = max(float(w["top"]) + float(w["height"]) for w in words)
    sure = sum(float(w["conf"]) for w in words) / len(words) / 100
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    return TextLine(" ".join(w["text"].strip() for w in words), sure, corners)
