"""Pairs of nets: a text lies near the pictures that show it; what cannot be such a pair is refused in words."""

from pathlib import Path

import numpy as np
import pytest

from rushes.domain.errors import ModelMissing
from rushes.engines.local import LocalEngine
from rushes.engines.models.pictures import describe_pair, embedding_text, parse_embedding
from rushes.engines.models.store import ModelStore
from tests import tiny_onnx
from tests.tiny_pair import write_pair


def engine(pair: Path) -> LocalEngine:
    return LocalEngine(ModelStore(pair.parent / "models", paths=[pair]))


def test_a_text_lies_near_the_pictures_that_show_it(tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "pair")
    red = np.zeros((90, 160, 3), np.uint8)
    red[:, 35:125, 0] = 255  # only the middle is looked at
    blue = np.full((90, 160, 3), (0, 0, 255), np.uint8)
    asked = engine(pair)
    seen, said = (
        asked.embed_pictures(str(pair), [red, blue]),
        asked.embed_captions(str(pair), ["red", "blue", "blue red"]),
    )
    near = [[1.0, -0.33], [-0.33, 1.0], [0.58, 0.58]]
    assert (said @ seen.T).tolist() == [pytest.approx(row, abs=0.01) for row in near]
    assert asked.embed_pictures(str(pair), []).shape == (0, 0)


def test_an_embedding_is_kept_as_a_word(tmp_path: Path) -> None:
    row = np.random.default_rng(3).standard_normal(512).astype(np.float32)
    row /= np.linalg.norm(row)
    text = embedding_text(row)
    assert len(text) < 700
    assert float(parse_embedding(text) @ row) > 0.999
    for bad in ("", "!", "a", "A" * 8000):
        with pytest.raises(ValueError, match=r"dimensions|base64|data"):
            parse_embedding(bad)


@pytest.mark.parametrize(
    "said", ["mean = [1]", "std = [0, 1, 1]", "least = 'x'", "leats = 1", "mean = 3", "[", "least = []"]
)
def test_a_description_that_cannot_be_understood_is_refused(tmp_path: Path, said: str) -> None:
    pair = write_pair(tmp_path / "pair")
    (pair / "pictures.toml").write_text(said)
    with pytest.raises(ModelMissing, match=r"pictures.toml of the model pair cannot be understood"):
        describe_pair(pair)


def test_a_pair_that_lacks_a_file_or_gives_no_rows_is_refused(tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "pair")
    same = tiny_onnx.node("Identity", ["picture"], "seen")
    tiny_onnx.write(pair / "image.onnx", [same], ("picture", tiny_onnx.FLOAT, (1, 3, 32, 32)), "seen")
    with pytest.raises(ModelMissing, match="one row per input"):
        engine(pair).embed_pictures(str(pair), [np.zeros((9, 9, 3), np.uint8)])
    (pair / "text.onnx").unlink()
    with pytest.raises(ModelMissing, match=r"no text.onnx"):
        engine(pair).embed_captions(str(pair), ["red"])


def test_each_file_of_a_pair_is_part_of_its_name(tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "pair")
    (tmp_path / "models").mkdir()
    names = []
    for name in ("", "image.onnx", "text.onnx", "tokenizer.json", "pictures.toml"):
        if name:
            (pair / name).write_bytes((pair / name).read_bytes() + b" ")
        names.append(engine(pair)._store.name_of(pair))
    assert len(set(names)) == len(names)
