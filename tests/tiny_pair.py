"""A tiny pair of nets: a picture is its mean colour, and a text the mean of the colours of its words."""

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from tests import tiny_onnx

COLOURS = {"?": (0.0, 0.0, 0.0), "red": (1.0, -1.0, -1.0), "green": (-1.0, 1.0, -1.0), "blue": (-1.0, -1.0, 1.0)}
PLAIN = "mean = [0.5, 0.5, 0.5]\nstd = [0.5, 0.5, 0.5]\nleast = 0.7\n"


def write_pair(folder: Path) -> Path:
    """A folder as `pictures_model` names it."""
    folder.mkdir()
    seen = tiny_onnx.node("ReduceMean", ["picture"], "seen", axes=[2, 3], keepdims=0)
    tiny_onnx.write(folder / "image.onnx", [seen], ("picture", tiny_onnx.FLOAT, (1, 3, 32, 32)), "seen")
    words = tiny_onnx.node("Gather", ["colours", "ids"], "words")
    mean = tiny_onnx.node("ReduceMean", ["words"], "meant", axes=[1], keepdims=0)
    weights = {"colours": np.array([*COLOURS.values()], np.float32)}
    tiny_onnx.write(folder / "text.onnx", [words, mean], ("ids", tiny_onnx.INT64, (1, "tokens")), "meant", weights)
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(COLOURS)}, unk_token="?"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "pictures.toml").write_text(PLAIN)
    return folder
