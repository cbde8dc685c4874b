"""Looking over HTTP: lists, one of each, files by range, and problems that say what to do."""

import json
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from rushes.estimates.rates import Rate, RateHistory
from rushes.jobs.maintenance.gc import drop
from tests.api.kit import Serving, serving, submit, work


def only_video(developed: Serving) -> dict[str, Any]:
    (video,) = developed.get("/api/v1/videos")["items"]
    return dict(video)


def test_a_developed_film_is_found_watched_and_exported(developed: Serving) -> None:
    video = only_video(developed)
    assert developed.get(f"/api/v1/videos/{video['id']}")["name"] == "three shots <b>.mp4"
    assert developed.http.get(video["poster"]).content.startswith(b"\xff\xd8")
    playlist = developed.http.get(video["proxy"])
    assert playlist.headers["content-type"].startswith("application/vnd.apple.mpegurl")
    assert "#EXTM3U" in playlist.text
    assert len(developed.get(f"/api/v1/videos/{video['id']}/shots")["shots"]) == 2
    edl = developed.http.get(f"/api/v1/videos/{video['id']}/exports/edl", params={"download": True})
    assert edl.headers["content-disposition"].startswith("attachment")
    assert "TITLE" in edl.text


def test_files_come_by_range_with_an_etag_and_without_a_body_for_head(developed: Serving) -> None:
    piece = only_video(developed)["proxy"].replace("index.m3u8", "piece_00000.mp4")
    whole = developed.http.get(piece)
    part = developed.http.get(piece, headers={"Range": "bytes=4-11"})
    assert (part.status_code, part.content) == (206, whole.content[4:12])
    assert part.headers["content-range"] == f"bytes 4-11/{len(whole.content)}"
    beyond = developed.http.get(piece, headers={"Range": f"bytes={len(whole.content)}-"})
    assert beyond.status_code == 416
    again = developed.http.get(piece, headers={"If-None-Match": whole.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = developed.http.get(piece, headers={"Range": "bytes=0-3", "If-Range": '"another"'})
    assert other.status_code == 200
    head = developed.http.head(piece)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.content))


def test_a_frame_is_the_picture_of_its_moment(developed: Serving) -> None:
    video = only_video(developed)["id"]
    first, last = (developed.http.get(f"/api/v1/videos/{video}/frames/{ms}.jpg") for ms in (0, 5900))
    assert first.content != last.content
    assert {first.headers["content-type"], last.headers["content-type"]} == {"image/jpeg"}


def test_the_original_is_kept_under_its_own_name_and_never_shown_as_a_page(developed: Serving, film: Path) -> None:
    answer = developed.http.get(f"/api/v1/videos/{only_video(developed)['id']}/original")
    assert answer.content == film.read_bytes()
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    "name",
    ["../ledger.sqlite", "..%2f..%2fledger.sqlite", "%2e%2e/ledger.sqlite", "videos/proxy/../../../ledger.sqlite",
     "videos/proxy/{id}/../../../../ledger.sqlite", "videos/proxy/{id}/..%2f..%2f..%2f..%2fledger.sqlite",
     "blobs/me/00/x", "results/me/00/x.json", "videos/proxy/{id}/%00", "videos/proxy/{id}0/index.m3u8", "/etc/passwd",
     "videos/proxy/{id}/.hidden", "videos/proxy/{id}/a%5c..%5cb"],
)  # fmt: skip
def test_nothing_but_published_files_of_own_videos_is_served(developed: Serving, name: str) -> None:
    path = f"/files/{name.format(id=only_video(developed)['id'])}"
    answer = developed.http.send(developed.http.build_request("GET", developed.url + path))
    assert answer.status_code == 404, answer.text


def test_somebody_elses_films_are_not_there(developed: Serving) -> None:
    video = only_video(developed)
    with serving(developed.library.home.folder, owner="somebody") as other:
        assert other.get("/api/v1/videos")["items"] == []
        for path in (video["proxy"], video["poster"], *(f"/api/v1/videos/{video['id']}{p}" for p in ("", "/original"))):
            assert other.http.get(path).status_code == 404
        ask = {"video_id": video["id"], "t_start": 0, "t_end": 1}
        other.post("/api/v1/clips", ask, 404)


def test_envelopes_name_what_produced_them(developed: Serving) -> None:
    video = only_video(developed)["id"]
    found = developed.get("/api/v1/artifacts", params={"asset_id": video})["items"]
    ends = [(a["span_start_ms"], a["span_end_ms"]) for a in found]
    assert [(a["artifact_type"], a["schema_version"], a["payload_json"]) for a in found] == [
        ("scene", 1, {"scene_index": n, "start_ms": start, "end_ms": end}) for n, (start, end) in enumerate(ends)
    ]
    assert len({a["input_hash"] for a in found}) == 1
    assert found[0]["span_start_ms"] == 0 < found[0]["span_end_ms"] == found[1]["span_start_ms"]
    assert all(found[0][name] for name in ("artifact_id", "producer", "producer_version", "input_hash", "run_id"))
    no = developed.get("/api/v1/artifacts", 400, params={"asset_id": video, "artifact_type": "smell"})
    assert "object.detection" in no["hint"]


def test_a_clip_is_asked_for_and_left_to_a_worker(developed: Serving) -> None:
    video = only_video(developed)["id"]
    ask = {"video_id": video, "t_start": 1.0, "t_end": 2.0, "padding_ms": 0}
    answer = developed.http.post("/api/v1/clips", json=ask)
    assert answer.status_code == 202
    clip = answer.json()
    assert (clip["status"], clip["url"]) == ("queued", None)
    assert developed.get(answer.headers["location"]) == clip
    assert developed.library.work(slots=1, until_idle=True) == 0
    done = developed.get(answer.headers["location"])
    assert done["status"] == "done"
    assert developed.http.get(done["url"]).content[4:8] == b"ftyp"
    beyond = developed.post("/api/v1/clips", ask | {"t_start": 100, "t_end": 200}, 400)
    assert beyond["hint"] == "Choose a start before 0:06.000."


def test_a_clip_says_until_when_it_is_kept_and_can_be_deleted(developed: Serving) -> None:
    ask = {"video_id": only_video(developed)["id"], "t_start": 0.5, "t_end": 1.0, "padding_ms": 0}
    place = f"/api/v1/clips/{developed.post('/api/v1/clips', ask, 202)['clip_id']}"
    assert developed.get(place)["expires_at"] == ""
    assert developed.library.work(slots=1, until_idle=True) == 0
    clip = developed.get(place)
    kept = datetime.fromisoformat(clip["expires_at"]) - datetime.fromisoformat(clip["created_at"])
    assert kept.days == developed.library.settings.clip_days
    assert developed.http.get(clip["url"]).status_code == 200
    assert developed.http.delete(place).status_code == 204
    assert developed.http.get(place).status_code == 404
    assert developed.http.get(clip["url"]).status_code == 404
    assert developed.http.get(f"/api/v1/jobs/{clip['job']}").status_code == 404
    assert developed.library.maintenance.verify().damages == ()
    again = developed.post("/api/v1/clips", ask, 202)
    assert (again["clip_id"], again["status"]) == (clip["clip_id"], "queued")
    assert developed.http.delete(place).status_code == 204, "also one that is not cut yet"


def test_a_clip_that_gc_has_cleared_is_not_done_and_is_cut_again_when_it_is_asked_for(developed: Serving) -> None:
    ask = {"video_id": only_video(developed)["id"], "t_start": 3.0, "t_end": 4.0, "padding_ms": 0}
    place = f"/api/v1/clips/{developed.post('/api/v1/clips', ask, 202)['clip_id']}"
    assert developed.library.work(slots=1, until_idle=True) == 0
    done = developed.get(place)
    home = developed.library.home
    drop(home.ledger, home.blobs, "me", [done["job"]])
    cleared = developed.get(place)
    assert (cleared["status"], cleared["url"]) == ("cleared", None)
    assert cleared in developed.get("/api/v1/clips")["items"]
    assert developed.post("/api/v1/clips", ask, 202)["url"] is None
    assert developed.library.work(slots=1, until_idle=True) == 0
    assert developed.get(place) | {"expires_at": ""} == done | {"expires_at": ""}
    assert developed.http.get(done["url"]).content[4:8] == b"ftyp"


def test_a_clip_may_be_cut_from_the_proxy(developed: Serving) -> None:
    video = only_video(developed)["id"]
    ask = {"video_id": video, "t_start": 2.0, "t_end": 3.0, "padding_ms": 0}
    whole, small = (developed.post("/api/v1/clips", ask | {"proxy": proxy}, 202) for proxy in (False, True))
    assert whole["clip_id"] != small["clip_id"]
    form = {"start": "2", "end": "3", "proxy": "true"}
    asked = developed.http.post(f"/videos/{video}/clip", data=form)
    assert (asked.status_code, small["clip_id"] in asked.headers["location"]) == (303, True)
    assert developed.library.work(slots=1, until_idle=True) == 0
    assert developed.get(f"/api/v1/clips/{small['clip_id']}")["status"] == "done"
    (task,) = developed.ledger.tasks(small["job"]).rows
    assert json.loads(task.spec)["options"]["source"] == "proxy"


def test_subtitles_of_a_clip_need_words_and_a_known_way(developed: Serving) -> None:
    ask = {"video_id": only_video(developed)["id"], "t_start": 2.0, "t_end": 3.0}
    assert "has no transcript yet" in developed.post("/api/v1/clips", ask | {"subtitles": "burnt"}, 400)["detail"]
    assert developed.post("/api/v1/clips", ask | {"subtitles": "sung"}, 422)["errors"][0]["at"] == "body.subtitles"


def test_a_film_in_3d_is_watched_and_kept(developed: Serving, film: Path) -> None:
    video, home = only_video(developed)["id"], developed.library.home

    def page(**query: str) -> str:
        return str(developed.http.get(f"/videos/{video}", params=query, headers={"Accept": "text/html"}).text)

    before = page()
    assert "Make a 3D version" in before
    assert "data-deep" not in before
    name = f"videos/3d/{video}/anaglyph-dubois.mp4"
    home.blobs.publish(name, "me", home.blobs.put("me", film).sha256)
    assert 'download="three shots &lt;b&gt;.anaglyph.mp4"' in page()
    assert f'src="/files/{name}"' in page(view="anaglyph-dubois")
    assert "data-deep" not in page(view="half-sbs")
    part = developed.http.get(f"/files/{name}", headers={"Range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, b"ftyp")
    with serving(home.folder, owner="somebody") as other:
        assert other.http.get(f"/files/{name}").status_code == 404


def test_a_film_in_3d_is_asked_for_once(developed: Serving) -> None:
    page = f"/videos/{only_video(developed)['id']}"
    asked = [developed.http.post(f"{page}/3d", data={"format": "full-tb"}) for _ in range(2)]
    assert {(a.status_code, a.headers["location"]) for a in asked} == {(303, f"{page}#in-3d")}
    (job,) = [j for j in developed.get("/api/v1/jobs")["items"] if j["recipe"] == "3d"]
    assert "full-tb" in developed.ledger.job(job["id"]).payload
    developed.post(f"/api/v1/jobs/{job['id']}/cancel")
    assert developed.http.post(f"{page}/3d", data={"format": "sideways"}).status_code == 400


def test_problems_are_documents_with_a_hint(server: Serving) -> None:
    answer = server.http.get("/api/v1/videos/vid_none")
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code == 404
    assert problem["hint"]
    assert problem["code"] == "NotFound"
    assert server.get("/nowhere", 404)["title"] == "Not found"
    assert server.get("/api/v1/jobs?limit=0", 422)["errors"][0]["at"] == "query.limit"
    assert server.get("/api/v1/jobs?cursor=made-up", 400)["hint"]


def test_pages_follow_each_other_without_a_gap(server: Serving) -> None:
    jobs = [submit(server.ledger, f"film{n}").id for n in range(7)]
    found, place = [], "/api/v1/jobs?limit=3"
    while place:
        page = server.get(place)
        assert len(page["items"]) <= 3
        found += [job["id"] for job in page["items"]]
        place = page["next"]
    assert found == jobs[::-1]


def test_steps_and_tasks_tell_how_far_a_job_is(server: Serving) -> None:
    job = submit(server.ledger, "film", tasks=4)
    work(server.ledger, 2)
    steps = {s["stage"]: s for s in server.get(f"/api/v1/jobs/{job.id}/steps")}
    assert steps["probe"]["state"] == "COMPLETED"
    assert (steps["develop"]["state"], steps["develop"]["done"], steps["develop"]["total"]) == ("RUNNING", 2, 4)
    ready = server.get(f"/api/v1/jobs/{job.id}/tasks?state=ready")["items"]
    assert [t["chunk"] for t in ready] == [2, 3]
    assert server.get(f"/api/v1/jobs/{job.id}/why")[0]["tasks"] == 2
    stages = {s["stage"]: (s["done"], s["total"]) for s in server.get(f"/api/v1/jobs/{job.id}/progress")["stages"]}
    assert stages == {"probe": (1, 1), "develop": (2, 4)}


def test_whoever_looks_again_at_a_job_asks_for_its_times_once(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submit(server.ledger, "film", tasks=4)
    work(server.ledger, 2)
    asked, learnt = [], RateHistory.of

    def of(self: RateHistory, stages: Collection[str], machine: str) -> dict[str, list[Rate]]:
        asked.append(machine)
        return learnt(self, stages, machine)

    monkeypatch.setattr(RateHistory, "of", of)
    expected = server.get(f"/api/v1/jobs/{job.id}/progress")["expected"], len(asked)
    for _ in range(3):
        assert server.get(f"/api/v1/jobs/{job.id}/progress")["expected"] == expected[0]
    assert len(asked) == expected[1] > 0


def test_rates_are_asked_for_once_by_all_who_look_at_jobs(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def nothing(_self: RateHistory, _stages: Collection[str], machine: str) -> dict[str, list[Rate]]:
        asked.append(machine)
        return {}

    monkeypatch.setattr(RateHistory, "of", nothing)
    jobs = [submit(server.ledger, name, tasks=2).id for name in ("one", "two")]
    for job in (*jobs, *jobs):
        assert server.get(f"/api/v1/jobs/{job}/progress")["expected"] is None
    assert len(asked) == 1


def test_steering_follows_the_documents_rules(server: Serving) -> None:
    job = submit(server.ledger, "film", tasks=2)
    step = f"{job.id}.develop"
    answer = server.post(f"/tasks/{step}/enqueue")
    assert answer == {"task_id": step, "job_id": f"ml_{step}", "status": "enqueued"}
    server.post(f"/tasks/{step}/retry", status=400)
    server.post(f"/tasks/{job.id}.nothing/enqueue", status=404)
    assert server.post(f"/tasks/{step}/cancel")["state"] == "CANCELLED"
    server.post(f"/tasks/{step}/cancel", status=400)
    assert server.post(f"/tasks/{step}/retry")["state"] == "PENDING"
    assert server.post(f"/api/v1/jobs/{job.id}/pause")["paused"]
    assert not server.post(f"/api/v1/jobs/{job.id}/resume")["paused"]


def test_the_same_key_is_the_same_request(server: Serving, film: Path) -> None:
    body, key = {"paths": [str(film)]}, {"Idempotency-Key": "once"}
    first = server.post("/api/v1/videos", body, 202, headers=key)
    assert first[0]["created"]
    assert server.post("/api/v1/videos", body, 202, headers=key) == first
    assert not server.post("/api/v1/videos", body, 202)[0]["created"]
    assert server.post("/api/v1/videos", body | {"priority": 1}, 422, headers=key)["code"] == "KeyReused"


def test_corrections_change_the_line_and_can_be_taken_back(developed: Serving) -> None:
    video = only_video(developed)["id"]
    body = {"video_id": video, "start_us": 0, "end_us": 1_000_000, "text": "what was really said"}
    made = developed.post("/api/v1/corrections", body, 201)
    assert [r["id"] for r in developed.get(f"/api/v1/corrections?video_id={video}")] == [made["id"]]
    (line,) = developed.get(f"/api/v1/videos/{video}/lines")["items"]
    assert (line["text"], line["corrected"]) == (body["text"], made["id"])
    (hit,) = developed.get("/api/v1/search?q=really")["hits"]
    assert developed.get(f"/api/v1/search/next?q=said&video={video}&at_us=0") is None or hit["video"] == video
    assert developed.http.delete(f"/api/v1/corrections/{made['id']}").status_code == 204
    assert developed.http.delete(f"/api/v1/corrections/{made['id']}").status_code == 404
    assert developed.get(f"/api/v1/videos/{video}/lines")["items"] == []


def test_nobody_is_named_who_is_not_seen(developed: Serving) -> None:
    assert developed.get("/api/v1/people") == []
    assert developed.http.patch("/api/v1/people/per_none", json={"name": "Anna"}).status_code == 404
    developed.post("/api/v1/people/per_none/merge", {"into": "per_other"}, 404)
    at = {"video_id": only_video(developed)["id"], "at_us": 0}
    developed.post("/api/v1/people/per_none/split", at, 404)


def test_a_video_can_be_given_a_name(developed: Serving) -> None:
    video = only_video(developed)["id"]
    assert developed.http.patch(f"/api/v1/videos/{video}", json={"name": "Mine"}).json()["name"] == "Mine"
    assert developed.http.patch(f"/api/v1/videos/{video}", json={"name": ""}).json()["name"] == "three shots <b>.mp4"


def test_paths_are_kept_checked_and_scanned(server: Serving, film: Path) -> None:
    kept = server.post("/api/v1/paths", {"path": str(film.parent)}, 201)["id"]
    assert server.post(f"/api/v1/paths/{kept}/validate")["films"] == 1
    assert server.post(f"/api/v1/paths/{kept}/scan", status=202)[0]["job"]["state"] == "created"
    assert server.http.delete(f"/api/v1/paths/{kept}").status_code == 204
    assert server.get("/api/v1/paths") == []


def test_health_and_metrics_tell_the_state_of_every_part(server: Serving) -> None:
    assert server.get("/healthz") == {"status": "ok"}
    ready = server.get("/readyz")
    assert set(ready["parts"]) >= {"ledger", "records", "blobs", "index", "hints"}
    assert set(ready["sandbox"]) >= {"environment", "limits", "network", "processes", "capabilities", "files", "calls"}
    metrics = server.http.get("/metrics").text
    assert 'rushes_http_requests_total{method="GET",status="200"}' in metrics
    assert server.get("/api/v1/about")["open"] is True
    assert server.get("/api/v1/stats")["library"]["videos"] == 0
    assert all("secret" not in str(s["value"]) for s in server.get("/api/v1/settings"))


def test_repair_says_what_it_found(developed: Serving) -> None:
    (video,) = developed.library.videos.page()[0]

    def repaired() -> str:
        browser = {"Accept": "text/html"}
        return developed.http.post(f"/videos/{video.id}/repair", headers=browser, follow_redirects=True).text

    assert "Nothing to repair" in repaired()
    for file in (developed.library.folder / "files" / "videos" / "proxy" / video.id).iterdir():
        file.unlink()
    assert "Repaired." in repaired()
    assert "Nothing to repair" in repaired()
    blobs = [file for file in (developed.library.folder / "files" / "blobs").rglob("*") if file.is_file()]
    max(blobs, key=lambda file: file.stat().st_size).unlink()
    assert "Repair started: 1 job running again." in repaired()
