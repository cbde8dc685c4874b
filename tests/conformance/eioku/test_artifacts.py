"""Artifacts: envelopes of a real film, their schemas, and which run readers see."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rushes.domain.errors import NeverWorks
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.domain.task import Verdict
from rushes.surfaces.api.artifact_schemas import SCHEMAS, check_payload
from rushes.surfaces.api.documents.eioku_config import TaskConfigs
from rushes.surfaces.cli.main import main
from tests.conformance.conftest import Site
from tests.conformance.eioku.conftest import Bench

ENVELOPE = {"artifact_id", "asset_id", "artifact_type", "schema_version", "span_start_ms", "span_end_ms",
            "payload_json", "producer", "producer_version", "model_profile", "config_hash", "input_hash",
            "run_id", "created_at"}  # fmt: skip
BOX = {"x", "y", "width", "height"}


def found(site: Site, video: dict[str, Any], type: str = "") -> list[dict[str, Any]]:
    asked = {"asset_id": video["id"], "artifact_type": type, "limit": 500}
    return list(site.http.get("/artifacts", params=asked).json()["items"])


@pytest.mark.parametrize("type", sorted(type for type, _ in SCHEMAS if type != "ocr.entity"))
def test_an_envelope_has_every_field(site: Site, video: dict[str, Any], type: str) -> None:
    """Envelope Creation: artifacts of every type have all fields of the envelope.

    Where: library/videos/runs.py
    """
    rows = found(site, video, type)
    assert rows
    for row in rows:
        assert set(row) == ENVELOPE
        assert (row["asset_id"], row["artifact_type"], row["schema_version"]) == (video["id"], type, 1)
        assert 0 <= row["span_start_ms"] <= row["span_end_ms"]
        assert row["run_id"] == video["job"]
        assert row["created_at"] > video["added_at"]
    assert len({row["artifact_id"] for row in rows}) == len(rows)
    assert max(len(row[name]) for row in rows for name in ("config_hash", "input_hash")) <= 64


def test_objects_have_a_label_a_confidence_and_a_box(site: Site, video: dict[str, Any]) -> None:
    """Envelope Creation, object.detection: payload_json is {label, confidence, bounding_box}.

    Where: library/videos/payloads.py
    """
    for row in found(site, video, "object.detection"):
        payload = row["payload_json"]
        assert set(payload) == {"label", "confidence", "bounding_box"}
        assert set(payload["bounding_box"]) == BOX
        assert 0.5 <= payload["confidence"] <= 1, "the threshold of the configuration"


def test_faces_have_a_cluster(site: Site, video: dict[str, Any]) -> None:
    """FaceDetectionResponse: a face is a detection with a cluster_id; faces of one person share it.

    Where: library/videos/payloads.py
    """
    payloads = [row["payload_json"] for row in found(site, video, "face.detection")]
    assert all(set(payload) == {"label", "confidence", "bounding_box", "cluster_id"} for payload in payloads)
    clusters = {payload["cluster_id"] for payload in payloads} - {""}
    assert len(clusters) == 1, "one astronaut"


def test_segments_have_words_with_times(site: Site, video: dict[str, Any]) -> None:
    """TranscriptionResponse: a segment has start_ms, end_ms, text, confidence and words with their times.

    Where: library/videos/payloads.py
    """
    payloads = [row["payload_json"] for row in found(site, video, "transcript.segment")]
    assert "country" in " ".join(payload["text"] for payload in payloads)
    for payload in payloads:
        assert set(payload) == {"start_ms", "end_ms", "text", "confidence", "words", "language"}
        for word in payload["words"]:
            assert set(word) == {"word", "start_ms", "end_ms", "confidence"}
            assert payload["start_ms"] <= word["start_ms"] <= word["end_ms"] <= payload["end_ms"] + 1


def test_text_has_a_polygon_of_points(site: Site, video: dict[str, Any]) -> None:
    """OCRResponse: text has a confidence and a polygon of {x, y}.

    Where: library/videos/payloads.py
    """
    for row in found(site, video, "ocr.text"):
        payload = row["payload_json"]
        assert payload["text"]
        assert len(payload["polygon"]) >= 4
        assert all(set(point) == {"x", "y"} for point in payload["polygon"])


def test_places_have_predictions(site: Site, video: dict[str, Any]) -> None:
    """PlaceDetectionResponse: each frame has top_k predictions, each with a label and a confidence.

    Where: library/videos/payloads.py
    """
    for row in found(site, video, "place.classification"):
        predictions = row["payload_json"]["predictions"]
        assert len(predictions) == 5
        assert all(set(one) == {"label", "confidence"} for one in predictions)
        assert predictions == sorted(predictions, key=lambda one: -one["confidence"])


def test_scenes_are_numbered_from_start_to_end(site: Site, video: dict[str, Any]) -> None:
    """SceneDetectionResponse: each scene has scene_index, start_ms and end_ms, and begins where the last one ends.

    Where: library/videos/payloads.py, stages/shots.py
    """
    scenes = [row["payload_json"] for row in found(site, video, "scene")]
    assert [scene["scene_index"] for scene in scenes] == list(range(len(scenes)))
    assert len(scenes) == 3, "a slide, a face, a cup"
    assert [scene["start_ms"] for scene in scenes[1:]] == [scene["end_ms"] for scene in scenes[:-1]]
    assert all(scene["end_ms"] - scene["start_ms"] >= 600 for scene in scenes)


def test_every_payload_fits_its_schema(site: Site, video: dict[str, Any]) -> None:
    """Schema Validation: payload_json is validated against the schema of its type and version.

    Where: surfaces/api/artifact_schemas.py
    """
    for row in found(site, video):
        schema = SCHEMAS[row["artifact_type"], row["schema_version"]]
        assert set(row["payload_json"]) == set(schema.model_fields)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"label": "cup", "confidence": 2, "bounding_box": {"x": 0, "y": 0, "width": 1, "height": 1}},
        {"label": "cup", "confidence": 0.5, "bounding_box": {"x": 0, "y": 0}},
    ],
)
def test_another_payload_is_refused(payload: dict[str, Any]) -> None:
    """Schema Validation: a payload that does not fit its schema is an error.

    Where: surfaces/api/artifact_schemas.py
    """
    with pytest.raises(NeverWorks, match=r"object\.detection"):
        check_payload("object.detection", 1, payload)


def test_unknown_types_are_refused(site: Site, video: dict[str, Any]) -> None:
    """API Service, artifact queries: an unknown artifact type is 400.

    Where: surfaces/api/artifacts.py
    """
    answer = site.http.get("/artifacts", params={"asset_id": video["id"], "artifact_type": "smell"})
    assert answer.status_code == 400


@pytest.fixture
def put(site: Site, video: dict[str, Any]) -> Iterator[Any]:
    """Chooses a policy for objects of the film; the newest again at the end."""

    def choose(**policy: str) -> Any:
        return site.http.put(f"/selection/{video['id']}", json={"artifact_type": "object.detection", **policy})

    yield choose
    assert choose(policy="latest").status_code == 200


@pytest.mark.parametrize("policy", ["latest", "pinned", "profile"])
def test_a_policy_says_which_run_is_read(site: Site, video: dict[str, Any], put: Any, policy: str) -> None:
    """API Service, selection policies: the API sets and shows the policy: latest, a pinned run or a profile.

    Where: surfaces/api/artifacts.py, index/run_selection.py
    """
    names = {"pinned": {"run_id": video["job"]}, "profile": {"model_profile": "balanced"}}.get(policy, {})
    assert put(policy=policy, **names).status_code == 200
    (chosen,) = site.http.get("/selection", params={"asset_id": video["id"]}).json()
    told = {"asset_id": video["id"], "artifact_type": "object.detection", "policy": policy}
    assert {**told, "run_id": "", "model_profile": "", **names}.items() <= chosen.items()
    assert found(site, video, "object.detection")


@pytest.mark.parametrize(
    "policy",
    [
        {"policy": "pinned"},
        {"policy": "pinned", "run_id": "job_nobody"},
        {"policy": "profile", "model_profile": "lavish"},
        {"policy": "latest", "model_profile": "fast"},
    ],
)
def test_a_policy_that_cannot_hold_is_refused(put: Any, policy: dict[str, str]) -> None:
    """API Service, selection policies: an unknown run or profile is 400.

    Where: surfaces/api/artifacts.py
    """
    assert put(**policy).status_code == 400


def test_readers_follow_the_policy(bench: Bench) -> None:
    """API Service, selection policies: search, pages and exports show the run that the API or a command selects.

    Where: index/run_selection.py, surfaces/cli/commands/browse.py
    """
    first, home = bench.discover(), str(bench.home.folder)
    (added,) = bench.server.library.add([bench.folder / first.name], replace(TaskConfigs().wanted(), again=1))
    assert added.job
    video = ""
    for job, label in ((first, "cup"), (added.job, "dog")):
        _, worker = bench.planned("objects", job, film=first.id)
        (lease,) = bench.claim(worker, [f"{job.id}.objects.00000"])
        seen = bench.store(lease, [Observation("object", Span(0, 90, Fraction(1, 1000)), label, 0.9, box=(0, 0, 1, 1))])
        assert bench.home.ledger.complete(worker, [seen]).verdicts == (Verdict.OK,)
        video = bench.video(job)
    bench.home.follower.catch_up()
    assert readers(bench, video) == {"dog"}, "the newest run"
    pinned = {"artifact_type": "object.detection", "policy": "pinned", "run_id": first.id}
    assert bench.server.http.put(f"/selection/{video}", json=pinned).status_code == 200
    assert readers(bench, video) == {"cup"}
    command = ["--home", home, "select", video, "object", "--run", added.job.id]
    assert CliRunner().invoke(main, command).exit_code == 0
    assert readers(bench, video) == {"dog"}


def readers(bench: Bench, video: str) -> set[str]:
    """Which of the two things everybody who reads is shown."""
    page = bench.server.http.get(f"/videos/{video}", headers={"Accept": "text/html"}).text
    export = bench.server.http.get(f"/api/v1/videos/{video}/exports/jsonl").text
    told = {
        word
        for word in ("cup", "dog")
        if bench.server.get("/api/v1/search", params={"q": word, "video": video})["hits"]
    }
    for text in (page, export):
        assert {word for word in ("cup", "dog") if f"{word}" in text} == told
    return told


def test_videos_have_their_path_hash_and_duration(site: Site, video: dict[str, Any], films: Path) -> None:
    """Video Discovery Service: a video has video_id, file_path, file_hash and duration (in seconds).

    Where: surfaces/http/schemas.py
    """
    assert Path(video["file_path"]).name == "seen.mp4"
    assert video["file_hash"] == hashlib.sha256((films / "seen.mp4").read_bytes()).hexdigest()
    assert 9 < video["duration"] < 13
    place = f"/videos/{video['video_id']}"
    assert site.http.get(place).json()["video_id"] == video["video_id"]
