"""Where models run changes nothing that is found; what is made up is never mixed with what is real."""

import json
from pathlib import Path

import pytest

from rushes.blobs.manifests import read_manifest
from rushes.domain.errors import NotFound
from rushes.domain.job import JobState
from rushes.domain.result import Manifest
from rushes.jobs.intake import missing_models
from rushes.ledger.pages import all_tasks
from rushes.library import JobRequest, Library
from tests.api.kit import serving

FAST = JobRequest(chunk="5", profile="fast")


def manifests(library: Library, job: str) -> dict[tuple[str, int | None, str], Manifest]:
    """Every result of a job, by stage, chunk and output."""
    home = library.home
    return {
        (task.stage, task.chunk, output): read_manifest(home.blobs, home.owner, key)
        for task in all_tasks(home.ledger, job)
        for output, key in task.question["results"].items()
    }


def test_a_site_whose_workers_all_say_cpu_still_asks_its_models(
    spoken_film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUSHES_MODELS", str(tmp_path / "no-models"))
    monkeypatch.setenv("INFERENCE_BACKEND", "stub")
    monkeypatch.setenv("GPU_MODE", "cpu")
    with Library(tmp_path / "home") as library:
        library.add([spoken_film], JobRequest(only=("objects",), chunk="5", profile="fast"))
        assert library.home.lanes == ("cpu",)
        library.work(slots=1, until_idle=True)
        (job,) = library.jobs.page(JobState.COMPLETED).rows
        assert {task.lane for task in all_tasks(library.home.ledger, job.id)} >= {"cpu", "gpu"}


def test_made_up_answers_are_marked_and_stay_apart(
    spoken_film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(spoken_film.read_bytes())
    monkeypatch.setenv("RUSHES_MODELS", str(tmp_path / "no-models"))
    monkeypatch.setenv("INFERENCE_BACKEND", "stub")
    with Library(tmp_path / "home") as library:
        assert missing_models(library.home, FAST) == ()
        assert library.run([film], FAST).exit_code == 0
        (job,) = library.jobs.page(JobState.COMPLETED).rows
        made = manifests(library, job.id)
        engines = {stage: manifest.provenance.engine for (stage, _, _), manifest in made.items()}
        assert engines["transcribe"] == engines["transcript"] == engines["objects"] == engines["audio"] == "stub"
        assert engines["probe"] == engines["develop"] == ""
        assert made["transcribe", 0, "lines"].provenance.models == ("stub",)
        video = library.videos.find("film.mp4")
        assert video.proxy, "what needs no model can be watched as ever"
        (line, *_) = library.videos.lines(video.id, "speech")
        word = line.text.split()[0]
        assert library.search(word).hits
        assert library.search(f"~{word}").hits
        assert {path.name for path in tmp_path.glob("film*")} == {"film.mp4"}, "nothing made up lies beside the film"
        kept = {path.name for path in (tmp_path / "home").glob("*.embeddings")}
        assert kept == {"stub.embeddings"}, "made-up vectors are compared with made-up ones only"
        exported = library.videos.export(video, "jsonl")
        assert word.encode() in exported
    monkeypatch.setenv("INFERENCE_BACKEND", "local")
    with serving(tmp_path / "home") as real:
        library = real.library
        for query in (word, f"~{word}", "kind:speech", ""):
            assert not library.search(query).hits
            assert real.get("/api/v1/search", params={"q": query})["hits"] == []
        assert word not in real.http.get("/api/v1/videos").text
        assert real.get("/api/v1/videos")["items"] == []
        assert real.http.get(f"/api/v1/videos/{video.id}").status_code == 404
        assert real.http.get(f"/api/v1/videos/{video.id}/exports/jsonl").status_code == 404
        with pytest.raises(NotFound):
            library.videos.find("film.mp4")
        with pytest.raises(NotFound):
            library.export_hits(word, "csv")
        assert not library.videos.lines(video.id, "speech")
        assert library.videos.page()[0] == ()
        spec = json.loads(library.home.ledger.job(job.id).payload)
        again = library.add([film], FAST)
        assert [added.created for added in again] == [True], "the same film with real models is another job"
        assert spec["stub"]
