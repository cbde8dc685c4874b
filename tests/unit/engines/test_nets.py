"""Real models on real pictures: one test for each capability, and what they must never do."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rushes.domain.errors import ModelMissing, Refused
from rushes.engines.calls import answer
from rushes.engines.devices import Compute
from rushes.engines.images import resize
from rushes.engines.local import LocalEngine
from rushes.engines.models.store import ModelStore
from rushes.engines.models.vision import SAME_PERSON, pack_embeddings, unpack_embeddings
from rushes.engines.nets.text import PpOcr
from rushes.engines.port import Picture
from rushes.engines.remote import RemoteEngine
from rushes.index.people.face_clustering import MIN_SHARPNESS
from tests.unit.vision_films import MEDIA, MODELS, SLIDE, eyes, photo, plain


def texts(picture: Picture, least: float = 0.8) -> list[str]:
    return [line.text for line in eyes().read_text(MODELS["text"], [picture], 960)[0] if line.confidence >= least]


def test_a_slide_is_read_line_by_line_in_order() -> None:
    assert texts(photo("slide.jpg")) == list(SLIDE)


def test_who_wants_no_gpu_is_read_for_by_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    used, usual = [], PpOcr.__init__  # ONNX Runtime here has no CUDA and falls back to the processor

    def construct(self: PpOcr, folder: Path, compute: Compute) -> None:
        used.append(compute.device)
        usual(self, folder, compute)

    monkeypatch.setattr("rushes.engines.nets.text.PpOcr.__init__", construct)
    there = LocalEngine(eyes()._store, device="cuda:0")
    asked = RemoteEngine(partial(answer, there))
    for use_gpu in (True, False, True):
        asked.read_text(MODELS["text"], [plain()], 960, ["en"], use_gpu=use_gpu)
    assert used == ["cuda:0", "cpu"]


def test_digits_and_signs_are_read() -> None:
    assert {"Total: EUR 1,284.50", "2025-11-15 17:43:09", "info@example.com"} <= set(texts(photo("digits.jpg")))


def test_a_line_that_runs_from_top_to_bottom_is_read() -> None:
    line = photo("slide.jpg")[80:200, 60:900]
    assert texts(np.ascontiguousarray(np.rot90(line, -1))) == texts(np.ascontiguousarray(line)) != []


def test_corners_lie_round_the_line() -> None:
    first = eyes().read_text(MODELS["text"], [photo("slide.jpg")], 960)[0][0]
    (left, top), _, (right, bottom), _ = first.corners
    assert 0 <= left < right <= 1280
    assert 0 <= top < bottom <= 200
    assert (right - left) > 5 * (bottom - top)


def test_a_cup_and_a_cat_are_known() -> None:
    cup = eyes().detect_objects(MODELS["objects"], [photo("coffee.jpg")], 0.4)[0]
    assert {"cup", "dining table"} == {thing.label for thing in cup}
    (cat,) = eyes().detect_objects(MODELS["objects"], [photo("chelsea.jpg")], 0.4)[0]
    assert cat.label == "cat"
    assert cat.box[2] - cat.box[0] > 300


def test_a_face_is_found_and_known_again_at_another_size() -> None:
    picture = photo("astronaut.jpg")
    (large,) = eyes().detect_faces(MODELS["faces"], [picture], 0.7, 960)[0]
    (small,) = eyes().detect_faces(MODELS["faces"], [resize(picture, 256, 256)], 0.7, 960)[0]
    assert [round(edge / 20) for edge in large.box] == [round(edge / 10) for edge in small.box]
    assert np.dot(large.embedding, small.embedding) > SAME_PERSON
    assert eyes().detect_faces(MODELS["faces"], [photo("chelsea.jpg")], 0.7, 960)[0] == []


def test_a_blurred_face_is_not_sharp() -> None:
    picture = photo("astronaut.jpg")
    (sharp,) = eyes().detect_faces(MODELS["faces"], [picture], 0.7, 960)[0]
    (blurred,) = eyes().detect_faces(MODELS["faces"], [resize(resize(picture, 64, 64), 512, 512)], 0.5, 960)[0]
    assert sharp.sharpness > 10 * MIN_SHARPNESS
    assert blurred.sharpness < MIN_SHARPNESS


def test_a_small_face_in_a_large_picture_is_found_by_tiles() -> None:
    picture = plain(90, (1920, 1080)).copy()
    picture[700:764, 1500:1564] = resize(photo("astronaut.jpg"), 160, 160)[10:74, 40:104]
    assert eyes().detect_faces(MODELS["faces"], [picture], 0.7, 640)[0] == []
    (face,) = eyes().detect_faces(MODELS["faces"], [picture], 0.7, 1920)[0]
    assert 1480 < face.box[0] < 1564
    assert 680 < face.box[1] < 764


def test_directions_of_faces_are_kept_with_half_the_digits() -> None:
    ways = np.random.default_rng(1).standard_normal((5, 128))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    again = unpack_embeddings(pack_embeddings(ways), 128)
    assert np.abs(again @ again.T - ways @ ways.T).max() < 0.001
    assert unpack_embeddings(pack_embeddings(np.zeros((0,))), 0).size == 0


def test_a_cup_is_no_place() -> None:
    guesses = eyes().classify_place(MODELS["places"], [photo("coffee.jpg")], 5)[0]
    assert len(guesses) == 5
    assert guesses[0][1] < 0.3


def test_a_net_for_places_can_be_dropped_in() -> None:
    blue = np.zeros((90, 160, 3), np.uint8) + np.array([0, 0, 255], np.uint8)
    (first, *_) = eyes().classify_place(str(MEDIA / "three_places"), [blue], 3)[0]
    assert first[0] == "ocean"
    assert first[1] > 0.99
    assert eyes().classify_place(str(MEDIA / "three_places"), [blue[..., ::-1]], 1)[0][0][0] == "desert sand"


def test_sentences_that_mean_alike_point_alike() -> None:
    rows = eyes().embed("minilm-l6", ["a dog runs in the park", "an animal plays outside", "revenue grew", ""])
    assert rows.shape == (4, 384)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows[0] @ rows[1] > 0.4 > 0.2 > rows[0] @ rows[2]
    assert np.array_equal(eyes().embed("minilm-l6", ["revenue grew"])[0], rows[2])
    assert eyes().embed("minilm-l6", []).shape[0] == 0


@pytest.mark.parametrize(
    "picture", [plain(0), plain(255), plain(128, (32, 18)), plain(40, (1, 1)), plain(9, (31, 900))]
)
def test_nothing_is_seen_where_there_is_nothing(picture: Picture) -> None:
    assert eyes().read_text(MODELS["text"], [picture], 960)[0] == []
    assert eyes().detect_objects(MODELS["objects"], [picture], 0.4)[0] == []
    assert eyes().detect_faces(MODELS["faces"], [picture], 0.7, 960)[0] == []
    assert eyes().classify_place(MODELS["places"], [picture], 5)[0][0][1] < 0.3


def test_noise_says_nothing_that_would_be_shown() -> None:
    noise = np.random.default_rng(3).integers(0, 256, (360, 640, 3), dtype=np.uint8)
    assert texts(noise) == []
    assert eyes().detect_faces(MODELS["faces"], [noise], 0.7, 960)[0] == []


def test_the_number_of_threads_changes_nothing() -> None:
    alone = LocalEngine(eyes()._store, threads=1)
    assert alone.read_text(MODELS["text"], [photo("slide.jpg")], 960) == eyes().read_text(
        MODELS["text"], [photo("slide.jpg")], 960
    )
    assert alone.detect_objects(MODELS["objects"], [photo("coffee.jpg")], 0.4) == eyes().detect_objects(
        MODELS["objects"], [photo("coffee.jpg")], 0.4
    )
    alone.unload()


def test_missing_weights_and_languages_are_clear_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelMissing) as caught:
        LocalEngine(ModelStore(tmp_path)).read_text(MODELS["text"], [plain()], 960)[0]
    assert "rushes models pull ppocr-v6-tiny" in caught.value.advice
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelMissing, match="tesseract is not installed"):
        eyes().read_text("tesseract", [plain()], 960, ["en"])[0]


def test_tesseract_reads_lines_with_their_places() -> None:
    found = eyes().read_text("tesseract", [photo("slide.jpg")], 960, ["en", "de"])[0]
    assert {line.text for line in found} == set(SLIDE)
    for line in found:
        assert 0 <= line.confidence <= 1
        (left, top), _, (right, bottom), _ = line.corners
        assert 0 <= left < right <= 1280
        assert 0 <= top < bottom <= 720
    assert eyes().read_text("tesseract", [plain()], 960, ["eng"])[0] == []


def test_data_that_tesseract_lacks_is_a_clear_error() -> None:
    with pytest.raises(ModelMissing, match="tesseract: ") as caught:
        eyes().read_text("tesseract", [plain()], 960, ["xx"])
    assert "languages" in caught.value.advice


@pytest.mark.parametrize("language", ["../../tmp/data", "-c", "eng+", "eng+/data"])
def test_languages_of_tesseract_are_names_and_no_paths(language: str) -> None:
    with pytest.raises(Refused, match="no languages"):
        eyes().read_text("tesseract", [plain()], 960, [language])


def test_a_model_with_several_names_is_loaded_once() -> None:
    store, id = eyes()._store, MODELS["places"]
    alone = LocalEngine(store)
    for spelling in (id, store.known[id].name, f"{store.folder}/{id}", f"{store.folder}//{id}"):
        alone.classify_place(spelling, [plain()], 1)
    assert len(alone._warm) == 1
    alone.unload()


def test_the_runtime_of_the_nets_keeps_no_number_of_this_machine_to_tell_its_makers(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")}
    command = [sys.executable, "-c", "import rushes.engines.nets.onnx"]
    subprocess.run(command, env={**env, "HOME": str(tmp_path)}, check=True)
    assert list(tmp_path.iterdir()) == []
