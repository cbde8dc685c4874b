"""Its five types of jobs: what each is told, does and leaves behind."""

import io
from pathlib import Path

import av
import simplejpeg

from rushes.stages.vision.entities import find_entities
from tests.api.kit import wait_for
from tests.conformance.conftest import Site, clear_after
from tests.conformance.cortana_vision.conftest import OPTIONS, Pipeline
from tests.unit.vision_films import SLIDE


def test_a_video_goes_through_transcode_sample_ocr_and_segment_index(pipeline: Pipeline) -> None:
    """Job types and payloads: transcode, sample, ocr and segment_index are made of every video, each once.

    Where: surfaces/api/documents/cortana_vision.py
    """
    jobs = pipeline.get(f"/videos/{pipeline.video}/jobs")
    made = [job["job_type"] for job in jobs if job["job_type"] != "clip_generate"]
    assert made == ["transcode", "sample", "ocr", "segment_index"]
    assert {job["status"] for job in jobs if job["job_type"] != "clip_generate"} == {"done"}
    by_type = {job["job_type"]: job for job in jobs}
    for earlier, later in (("transcode", "sample"), ("sample", "ocr"), ("ocr", "segment_index")):
        assert by_type[earlier]["id"] in by_type[later]["depends_on"], "job dependencies (future enhancements)"
        assert by_type[later]["started_at"] <= by_type[later]["finished_at"]


def test_transcode_is_told_the_original(pipeline: Pipeline) -> None:
    """Transcode, payload: video_id and s3_original_path.

    Where: surfaces/api/documents/cortana_vision.py
    """
    payload = pipeline.job("transcode")["payload"]
    assert payload.keys() == {"video_id", "s3_original_path"}
    assert payload["video_id"] == pipeline.video


def test_transcode_leaves_a_playlist_and_its_segments(pipeline: Pipeline) -> None:
    """Transcode, artifacts: `videos/proxy/{video_id}/index.m3u8` and `segment_*.ts`.

    Where: media/developing/transport_stream.py
    """
    names = pipeline.names(f"videos/proxy/{pipeline.video}/")
    assert [n.rpartition("/")[2] for n in names] == ["index.m3u8", "segment_00000.ts"]
    playlist = pipeline.site.http.get(f"/files/videos/proxy/{pipeline.video}/index.m3u8")
    assert "segment_00000.ts" in playlist.text
    segment = pipeline.site.http.get(f"/files/videos/proxy/{pipeline.video}/segment_00000.ts").content
    with av.open(io.BytesIO(segment), "r") as stream:
        assert sum(1 for _ in stream.decode(video=0)) == 30


def test_transcode_leaves_a_poster(pipeline: Pipeline) -> None:
    """Transcode, artifacts: the poster frame at `thumbs/{video_id}/poster.jpg`.

    Where: stages/playlist.py
    """
    jpeg = pipeline.site.http.get(f"/files/thumbs/{pipeline.video}/poster.jpg").content
    assert simplejpeg.decode_jpeg(jpeg).shape[2] == 3


def test_the_video_names_its_proxy_and_thumb(pipeline: Pipeline) -> None:
    """Transcode, responsibilities: the video has s3_proxy_path and s3_thumb_path.

    Where: surfaces/http/schemas.py
    """
    video = pipeline.get(f"/videos/{pipeline.video}")
    assert video["s3_proxy_path"] == f"videos/proxy/{pipeline.video}/index.m3u8"
    assert video["s3_thumb_path"] == f"thumbs/{pipeline.video}/poster.jpg"


def test_sample_is_told_the_rate_and_the_threshold(pipeline: Pipeline) -> None:
    """Sample, payload: video_id, s3_original_path, target_fps and dedupe_threshold.

    Where: stages/develop.py
    """
    payload = pipeline.job("sample")["payload"]
    assert payload.keys() == {"video_id", "s3_original_path", "target_fps", "dedupe_threshold"}
    assert (payload["target_fps"], payload["dedupe_threshold"]) == (5, 0.95)


def test_sample_has_the_documents_defaults(pipeline: Pipeline) -> None:
    """Sample, defaults: target_fps 10, dedupe_threshold 0.95.

    Where: stages/develop.py
    """
    options = {r["name"]: r["options"] for r in pipeline.get("/api/v1/recipes")}["text"]["develop"]
    assert (options["target_fps"], options["dedupe_threshold"]) == (10, 0.95)


def test_keyframes_are_published_by_their_milliseconds(pipeline: Pipeline) -> None:
    """Sample, artifacts: `frames/{video_id}/{timestamp_ms}.jpg`, one for each unique keyframe, of the original's size.

    Where: stages/stills.py
    """
    names = pipeline.names(f"frames/{pipeline.video}/")
    assert names[0] == f"frames/{pipeline.video}/0.jpg"
    assert len(names) < 15  # 3 s at 5 a second, and nothing moves
    jpeg = pipeline.site.http.get(f"/files/{names[0]}").content
    assert simplejpeg.decode_jpeg(jpeg).shape == (720, 1280, 3)


def test_ocr_is_told_frames_languages_and_confidence(pipeline: Pipeline) -> None:
    """Ocr, payload: video_id, frame_paths, languages and min_confidence.

    Where: stages/read_text.py
    """
    payload = pipeline.job("ocr")["payload"]
    assert payload.keys() == {"video_id", "frame_paths", "languages", "min_confidence"}
    assert payload["frame_paths"] == pipeline.names(f"frames/{pipeline.video}/")
    assert (payload["languages"], payload["min_confidence"]) == (["eng", "deu"], 0.6)


def test_ocr_has_the_documents_defaults(pipeline: Pipeline) -> None:
    """Ocr, defaults: English, min_confidence 0.6.

    Where: stages/read_text.py
    """
    options = {r["name"]: r["options"] for r in pipeline.get("/api/v1/recipes")}["text"]["read_text"]
    assert (options["languages"], options["min_confidence"]) == (["en"], 0.6)


def test_tesseract_reads_the_text(pipeline: Pipeline) -> None:
    """Ocr, responsibilities: Tesseract is run with the languages asked for; segments have its text.

    Where: engines/nets/tesseract.py
    """
    with pipeline.site.library() as library:
        (task,) = [t for t in library.jobs.tasks(pipeline.run) if t.stage == "read_text"]
    assert task.question["models"] == {"text": "tesseract"}
    assert {s["text"] for s in pipeline.get("/segments", video_id=pipeline.video)} == set(SLIDE)


def test_a_segment_has_every_field_of_the_document(pipeline: Pipeline) -> None:
    """Ocr, segments: text, normalized_text, text_hash, t_start, t_end, confidence, bounding_box, language, owner, team.

    Where: stages/segments.py, surfaces/api/documents/cortana_vision.py
    """
    segments = pipeline.get("/segments", video_id=pipeline.video)
    revenue = next(s for s in segments if s["text"].startswith("Revenue"))
    assert revenue["normalized_text"] == "revenue grew 18% to $4.2 million"
    assert len({s["text_hash"] for s in segments}) == len(segments) == 5
    assert revenue["bounding_box"].keys() == {"x", "y", "width", "height"}
    assert all(0 <= edge <= 1 for edge in revenue["bounding_box"].values())
    assert 0.6 <= revenue["confidence"] <= 1
    assert (revenue["owner_id"], revenue["team_id"], revenue["video_id"]) == ("me", "", pipeline.video)
    assert {s["language"] for s in segments} == {"en"}


def test_the_same_text_is_one_segment_over_its_time(pipeline: Pipeline) -> None:
    """Segment_index, merging: consecutive detections of the same text are one continuous range, in milliseconds.

    Where: stages/vision/text_segments.py
    """
    segments = pipeline.get("/segments", video_id=pipeline.video)
    assert {(s["t_start"], s["t_end"]) for s in segments} == {(0, 3000)}


def test_an_entity_belongs_to_its_segment(pipeline: Pipeline) -> None:
    """Segment_index, entities: segment_id, entity_type, value and normalized_value.

    Where: stages/segments.py
    """
    segments = {s["id"]: s["text"] for s in pipeline.get("/segments", video_id=pipeline.video)}
    entities = pipeline.get("/entities", video_id=pipeline.video)
    assert {e["entity_type"] for e in entities} == {"number"}
    found = {(e["value"], e["normalized_value"]): segments[e["segment_id"]] for e in entities}
    assert found[("$4.2 million", "4200000")] == "Revenue grew 18% to $4.2 million"
    assert found[("18%", "18")] == "Revenue grew 18% to $4.2 million"


def test_mentions_hashtags_urls_and_emoji_are_found() -> None:
    """Segment_index, patterns: `@[a-zA-Z0-9_]+`, `#[a-zA-Z0-9_]+`, URLs and emoji.

    Where: stages/vision/entities.py
    """
    found = [(e.type, e.text, e.normalized) for e in find_entities("@Anna_1 #2025 https://Example.org/A 🎬")]
    assert found == [
        ("mention", "@Anna_1", "@anna_1"),
        ("hashtag", "#2025", "#2025"),
        ("url", "https://Example.org/A", "https://example.org/A"),
        ("emoji", "🎬", "🎬"),
    ]


def test_phone_numbers_prices_and_counts_stay_whole() -> None:
    """Segment_index, numbers: phone numbers, prices with their currency, counts with their unit.

    Where: stages/vision/entities.py
    """
    found = [(e.text, e.normalized) for e in find_entities("+1 555 123 4567 costs $1,299.00 for 3 kg")]
    assert found == [("+1 555 123 4567", "+15551234567"), ("$1,299.00", "1299.00"), ("3 kg", "3")]


def test_a_finished_video_is_ready(pipeline: Pipeline) -> None:
    """Segment_index, artifacts: videos.status becomes `ready`.

    Where: surfaces/http/schemas.py
    """
    assert pipeline.get(f"/videos/{pipeline.video}")["status"] == "ready"


def test_a_ready_video_is_found_by_search(pipeline: Pipeline) -> None:
    """Segment_index, purpose: what was read can be searched, answered as JSON to programs.

    Where: index/follower.py, surfaces/api/search.py
    """
    found = pipeline.get("/search", q="outlook stable")
    assert [hit["video"] for hit in found["hits"]] == [pipeline.video]
    page = pipeline.site.http.get("/search", params={"q": "outlook"}, headers={"Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")


def test_a_clip_is_ordered_in_milliseconds(pipeline: Pipeline) -> None:
    """Clip_generate, enqueueing: `POST /clips` answers {clip_id, status: "queued"}; times are milliseconds.

    Where: surfaces/api/documents/cortana_vision.py
    """
    ask = {"video_id": pipeline.video, "t_start": 500, "t_end": 1500}
    answer = pipeline.site.http.post("/clips", json=ask)
    assert answer.status_code == 200
    clip = answer.json()
    assert clip.keys() == {"clip_id", "status"}
    assert clip["status"] == "queued"
    place = f"/clips/{clip['clip_id']}"
    wait_for(lambda: pipeline.get(place)["status"] == "done", "the clip was never cut")
    assert (pipeline.get(place)["t_start"], pipeline.get(place)["t_end"]) == (500, 1500)
    job = next(
        j for j in pipeline.get(f"/videos/{pipeline.video}/jobs") if j["payload"].get("clip_id") == clip["clip_id"]
    )
    assert (job["job_type"], job["depends_on"]) == ("clip_generate", [])
    assert job["payload"] | {"s3_original_path": ""} == {
        **ask, "clip_id": clip["clip_id"], "padding_ms": 2000, "s3_original_path": ""}  # fmt: skip


def test_a_clip_may_be_ordered_in_the_query(pipeline: Pipeline) -> None:
    """On-demand jobs: video_id, t_start and t_end are the arguments of the endpoint.

    Where: surfaces/api/documents/cortana_vision.py
    """
    query: dict[str, str | int] = {"video_id": pipeline.video, "t_start": 500, "t_end": 1400}
    assert pipeline.site.http.post("/clips", params=query).json().keys() == {"clip_id", "status"}
    assert pipeline.site.http.post("/clips", params={"video_id": pipeline.video}).status_code == 400
    assert pipeline.site.http.post("/clips", json=query | {"t_start": 1.5}).status_code == 422
    assert "milliseconds" in pipeline.site.http.post("/clips", json=query | {"t_end": 500}).json()["hint"]


def test_a_clip_has_its_padding_and_its_name(pipeline: Pipeline) -> None:
    """Clip_generate, responsibilities: [t_start - padding, t_end + padding] at `videos/clips/{video_id}/{clip_id}.mp4`.

    Where: stages/clip.py
    """
    ask = {"video_id": pipeline.video, "t_start": 1000, "t_end": 1500, "padding_ms": 400}
    clip = pipeline.site.http.post("/clips", json=ask).json()["clip_id"]
    wait_for(lambda: pipeline.get(f"/clips/{clip}")["status"] == "done", "the clip was never cut")
    path = pipeline.get(f"/clips/{clip}")["s3_path"]
    assert path == f"videos/clips/{pipeline.video}/{clip}.mp4"
    with av.open(io.BytesIO(pipeline.site.http.get(f"/files/{path}").content), "r") as film:
        assert sum(1 for _ in film.decode(video=0)) == 13  # 600 to 1900 ms at 10 frames a second


def test_clips_go_after_thirty_days(pipeline: Pipeline, tmp_path: Path) -> None:
    """Clip_generate, artifacts: clips are deleted after 30 days.

    Where: jobs/maintenance/deletion.py, settings.py
    """
    ask = {"video_id": pipeline.video, "t_start": 100, "t_end": 300}
    clip = pipeline.site.http.post("/clips", json=ask).json()["clip_id"]
    wait_for(lambda: pipeline.get(f"/clips/{clip}")["status"] == "done", "the clip was never cut")
    name = pipeline.get(f"/clips/{clip}")["s3_path"]
    with pipeline.site.library() as library:
        for days, left in ((29, [name]), (31, [])):
            clear_after(library.home, tmp_path, days=days)
            assert [found for found in pipeline.names(f"videos/clips/{pipeline.video}/") if found == name] == left


def test_the_same_clip_again_is_the_same_and_other_ranges_are_others(pipeline: Pipeline) -> None:
    """Idempotency, on-demand jobs: a repeated request makes nothing new, several ranges of one video are allowed.

    Where: library/clips.py
    """
    ask = {"video_id": pipeline.video, "t_start": 200, "t_end": 900}
    first, again = (pipeline.site.http.post("/clips", json=ask).json()["clip_id"] for _ in range(2))
    other = pipeline.site.http.post("/clips", json=ask | {"t_end": 1000}).json()["clip_id"]
    assert first == again != other


def test_a_video_that_is_sent_again_gets_no_second_jobs(site: Site, films: Path, pipeline: Pipeline) -> None:
    """Idempotency, pipeline jobs: one job of each type for a video, however often it is enqueued.

    Where: jobs/submit.py
    """
    answer = site.http.post(
        "/api/v1/videos", json={"paths": [str(films / "slide.mp4")], "recipe": "text", "options": OPTIONS}
    )
    (again,) = answer.json()
    assert (again["job"]["id"], again["created"]) == (pipeline.run, False)
    assert len(pipeline.get(f"/videos/{pipeline.video}/jobs", job_type="ocr")) == 1
