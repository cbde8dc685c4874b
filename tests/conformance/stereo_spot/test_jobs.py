"""A job from its form to its film, as the document has it."""

from pathlib import Path

import httpx
import pytest

from rushes.domain.errors import Refused
from rushes.domain.stereo_keys import parse_output_key, parse_segment_key, parse_upload_key
from rushes.settings import load
from tests.conformance.conftest import Site, Sites

JSON = {"Accept": "application/json"}


@pytest.mark.parametrize("mode", ["anaglyph", "sbs"])
def test_a_form_with_only_a_mode_makes_a_job_and_leads_to_its_page(site: Site, mode: str) -> None:
    """Web UI, routes: `POST /jobs` (form: mode) creates a job and redirects to its page, which has an upload form.

    Where: surfaces/api/documents/stereo_spot.py, surfaces/web/pages/jobs.py
    """
    answer = site.http.post("/jobs", data={"mode": mode}, headers={"Accept": "text/html"})
    assert answer.status_code == 303
    page = site.http.get(answer.headers["location"], headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert 'type="file"' in page.text
    job = site.http.get(answer.headers["location"], headers=JSON).json()
    assert (job["mode"], job["status"]) == (mode, "created")


def test_json_answers_the_job_and_where_to_upload(site: Site) -> None:
    """Shared types, API DTOs: CreateJobResponse is {job_id, upload_url}; the upload is one PUT to that address.

    Where: surfaces/api/documents/stereo_spot.py
    """
    answer = site.http.post("/jobs", data={"mode": "sbs"}, headers=JSON)
    assert answer.status_code == 201
    assert set(answer.json()) == {"job_id", "upload_url"}
    assert httpx.URL(answer.json()["upload_url"]).is_absolute_url


def test_a_request_may_be_json(site: Site) -> None:
    """Shared types, API DTOs: CreateJobRequest is {mode}, as JSON as well.

    Where: surfaces/api/documents/stereo_spot.py
    """
    answer = site.http.post("/jobs", json={"mode": "anaglyph"})
    assert (answer.status_code, set(answer.json())) == (201, {"job_id", "upload_url"})
    assert site.http.get(f"/jobs/{answer.json()['job_id']}", headers=JSON).json()["mode"] == "anaglyph"
    assert site.http.post("/jobs", json={"mode": 3}).status_code == 422
    assert site.http.post("/jobs", content=b"{", headers={"Content-Type": "application/json"}).status_code == 422


@pytest.mark.parametrize(
    "mode", ["anaglyph", "sbs", "tb", "full-sbs", "full-tb", "anaglyph-colour", "anaglyph-half-colour", "anaglyph-grey"]
)
def test_every_format_is_a_mode(site: Site, mode: str) -> None:
    """Shared types, Job: `mode` is `anaglyph` or `sbs`; further formats are further values.

    Where: media/stereo/frame_packing.py
    """
    job = site.http.post("/jobs", data={"mode": mode}, headers=JSON).json()["job_id"]
    assert site.http.get(f"/jobs/{job}", headers=JSON).json()["mode"] == mode


def test_an_unknown_mode_is_refused_with_what_there_is(site: Site) -> None:
    """Shared types, API DTOs: a request is validated.

    Where: library/videos/stereo.py
    """
    answer = site.http.post("/jobs", data={"mode": "hologram"}, headers=JSON)
    assert (answer.status_code, "anaglyph" in answer.json()["hint"]) == (400, True)


def test_a_new_job_has_the_documents_fields(site: Site) -> None:
    """Shared types, Job: job_id, mode, status, created_at, total_segments, completed_at; the last two come later.

    Where: surfaces/api/documents/stereo_spot.py
    """
    job = site.http.post("/jobs", data={"mode": "sbs"}, headers=JSON).json()["job_id"]
    found = site.http.get(f"/jobs/{job}", headers=JSON).json()
    assert (found["job_id"], found["mode"], found["status"]) == (job, "sbs", "created")
    assert (found["total_segments"], found["completed_at"]) == (None, None)
    assert found["created_at"].startswith("20")


@pytest.mark.parametrize("path", ["", "/play", "/download", "/events"])
def test_a_job_that_is_not_there_is_not_found(site: Site, path: str) -> None:
    """DynamoDB, access patterns: get job by `job_id`.

    Where: library/jobs.py
    """
    assert site.http.get(f"/jobs/job_nobody{path}", headers=JSON).status_code == 404


def test_there_is_nothing_to_play_before_the_film_is_made(site: Site) -> None:
    """Web UI, video playback: it is for completed jobs.

    Where: surfaces/api/documents/stereo_spot.py
    """
    job = site.http.post("/jobs", data={"mode": "sbs"}, headers=JSON).json()["job_id"]
    assert site.http.get(f"/jobs/{job}/play").status_code == 404
    assert site.http.get(f"/jobs/{job}/download").status_code == 404


def test_a_file_that_is_no_film_fails_its_job_with_a_reason(site: Site) -> None:
    """Guardrails: what fails again and again does not spin for ever; it is visible, with the reason.

    Where: jobs/dead_letters.py
    """
    made = site.http.post("/jobs", data={"mode": "sbs"}, headers=JSON).json()
    assert httpx.put(made["upload_url"], content=b"\0\0\0\x18ftypmp42" + bytes(5000)).status_code == 204
    site.wait_for_job(made["job_id"], "failed")
    failed = site.http.get("/api/v1/failed").json()["items"]
    assert made["job_id"] in {task["job"] for group in failed for cause in group["causes"] for task in cause["tasks"]}


def test_an_estimate_by_size_stands_beside_the_upload(sites: Sites) -> None:
    """Web UI, ETA: with `ETA_SECONDS_PER_MB` the page of a job estimates the conversion by the size of the file.

    Where: estimates/conversion_report.py, surfaces/web/static/job_upload.js
    """
    site = sites("stereo_eta", workers=0, eta_seconds_per_mb="2.5")
    place = site.http.post("/jobs", data={"mode": "sbs"}, headers={"Accept": "text/html"}).headers["location"]
    assert 'data-eta="2.5"' in site.http.get(place, headers={"Accept": "text/html"}).text


@pytest.mark.parametrize(
    ("variable", "setting", "value"),
    [
        ("ETA_SECONDS_PER_MB", "eta_seconds_per_mb", 2.5),
        ("INFERENCE_MAX_IN_FLIGHT", "inference_max_in_flight", 3),
        ("INFERENCE_BACKEND", "inference", "http"),
        ("INFERENCE_HTTP_URL", "inference_url", "http://127.0.0.1:8080"),
    ],
)
def test_the_documents_variables_are_understood(
    variable: str, setting: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The video worker, web UI: the environment has the document's names.

    Where: settings.py
    """
    monkeypatch.setenv(variable, str(value))
    assert getattr(load(tmp_path).settings, setting) == value


@pytest.mark.parametrize(
    ("adapter", "address"), [("", "s3://b"), ("aws", "s3://b"), ("gcp", "gs://b"), ("AZURE", "az://b")]
)
def test_the_storage_adapter_says_whose_bucket_is_meant(adapter: str, address: str, tmp_path: Path) -> None:
    """Portability: the implementation comes by configuration (STORAGE_ADAPTER=aws; STORAGE_PROVIDER for the models).

    Where: settings.py
    """
    for variable in ("STORAGE_ADAPTER", "STORAGE_PROVIDER"):
        assert load(tmp_path, {"S3_BUCKET": "b", variable: adapter}).settings.blobs == address
    with pytest.raises(Refused, match="STORAGE_ADAPTER"):
        load(tmp_path, {"S3_BUCKET": "b", "STORAGE_ADAPTER": "floppy"})
    assert load(tmp_path, {"STORAGE_ADAPTER": "floppy"}).settings.blobs == "", "other programs may have it, too"


@pytest.mark.parametrize("key", ["segments/job-abc/00042_00100_anaglyph.mp4", "segments/job-abc/00000_00001_sbs.mp4"])
def test_a_segment_key_is_parsed_and_built_by_one_pair(key: str) -> None:
    """Segment key convention: `segments/{job_id}/{segment_index:05d}_{total_segments:05d}_{mode}.mp4`, one parser.

    Where: domain/stereo_keys.py
    """
    segment = parse_segment_key(key)
    assert segment
    assert str(segment) == key


def test_the_parser_of_outputs_passes_over_the_whole_film() -> None:
    """S3 event to video-worker path: `jobs/{job_id}/final.mp4` is ignored, the parser returns None.

    Where: domain/stereo_keys.py
    """
    assert parse_output_key("jobs/job-abc/segments/42.mp4") == ("job-abc", 42)
    assert parse_output_key("jobs/job-abc/final.mp4") is None


def test_the_job_is_in_the_key_of_its_upload() -> None:
    """Chunking: `job_id` is parsed from `input/{job_id}/source.mp4`.

    Where: domain/stereo_keys.py
    """
    assert parse_upload_key("input/job-abc/source.mp4") == "job-abc"
