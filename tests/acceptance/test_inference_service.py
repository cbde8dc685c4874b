"""`rushes ml`: the same answers far as near, whatever happens on the way; bounded, and closed to other files."""

import json
import os
import re
import secrets
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rushes.aws.client import Service
from rushes.bucket.client import connect
from rushes.bucket.location import BucketLocation
from rushes.domain.errors import EngineAway
from rushes.domain.event import EventType
from rushes.domain.job import JobState
from rushes.domain.task import Task
from rushes.domain.worker import ENGINE_AWAY
from rushes.engines.http import InferenceServices
from rushes.engines.port import RATE, DecodingOptions, Engine
from rushes.engines.remote import RemoteEngine
from rushes.engines.wire import pack, pack_floats
from rushes.ledger.pages import all_events, all_tasks
from rushes.library import JobRequest, Library
from rushes.library.work.progress import EngineOutage
from rushes.library.work.workers import HomeWorker
from rushes.servers.process import Running
from rushes.worker.inputs import Input
from tests.acceptance.conftest import VOICE, draw, sights, wait_for
from tests.acceptance.test_inference import manifests
from tests.asynchronous_endpoint import Endpoint, asynchronous_endpoint
from tests.inference_service import ask, bad_proxy, inference_service
from tests.servers_aws import KEY, SECRET
from tests.unit.speech_kit import JFK, pcm_of
from tests.unit.speech_kit import engine as local_ears
from tests.unit.vision_films import MEDIA, eyes

BLOCKED = ("faster_whisper", "onnxruntime", "ctranslate2", "ai_edge_litert", "tokenizers")
NO_NETS = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Blocked())
"""


@pytest.fixture(scope="module")
def footage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine seconds with text, a face, a cup and a voice."""
    return draw(tmp_path_factory.mktemp("films") / "seen.mp4", 9, (640, 360), voice=VOICE, paint=sights)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, footage: Path, seaweed_s3: BucketLocation) -> Iterator[str]:
    """A real one with the models of the profile `fast`; two callers use models, 30 are let in."""
    s3 = {"s3_endpoint": seaweed_s3.endpoint, "s3_key": seaweed_s3.key, "s3_secret": seaweed_s3.secret}
    sources = f"{footage.parent},s3://{seaweed_s3.bucket}"
    limits = {"gpu_concurrency": "2", "inference_queue": "30"}
    with inference_service(tmp_path_factory.mktemp("ml"), sources=sources, **limits, **s3) as url:
        yield url


@pytest.fixture
def far(service: str) -> Iterator[RemoteEngine]:
    session = InferenceServices((service,)).session()
    yield RemoteEngine(session.post)
    session.close()


def jpeg(name: str) -> bytes:
    return (MEDIA / name).read_bytes()


HEARD: dict[str, Callable[[Engine], object]] = {
    "speech": lambda e: list(e.detect_speech(pcm_of(JFK))),
    "language": lambda e: e.detect_language("whisper-base", pcm_of(JFK)),
    "words": lambda e: e.transcribe("whisper-tiny.en", pcm_of(JFK), DecodingOptions("en", beam_size=1)),
}
SEEN: dict[str, Callable[[Engine], object]] = {
    "text": lambda e: e.read_text("ppocr-v6-tiny", [jpeg("slide.jpg")], 736, ["en"]),
    "objects": lambda e: e.detect_objects("efficientdet-lite0", [jpeg("coffee.jpg"), jpeg("chelsea.jpg")], 0.4),
    "faces": lambda e: e.detect_faces("yunet-sface", [jpeg("astronaut.jpg")], 0.7, 640),
    "places": lambda e: e.classify_place("efficientnet-lite0", [jpeg("coffee.jpg")], 5),
    "depth": lambda e: [m.tolist() for m in e.inverse_depth("fastdepth", [jpeg("coffee.jpg")], inverse=False)],
    "sentences": lambda e: e.embed("minilm-l6", ["it was the best of times"]).tolist(),
}


@pytest.mark.parametrize("capability", [*HEARD, *SEEN])
def test_each_capability_says_the_same_near_and_far(capability: str, far: RemoteEngine) -> None:
    near, question = (local_ears(), HEARD) if capability in HEARD else (eyes(), SEEN)
    near._store.pull(["fastdepth", "minilm-l6", "ppocr-v6-tiny"])
    assert question[capability](far) == question[capability](near)


def done(library: Library, footage: Path, recipe: str) -> dict[Any, list[tuple[str, str]]]:
    """What a recipe made: the name and hash of every artifact; every task was done once, and none failed."""
    ran = library.run([footage], JobRequest(recipe=recipe, chunk="5", profile="fast"))
    assert ran.exit_code == 0
    job = next(job for job in library.jobs.page(JobState.COMPLETED).rows if job.recipe == recipe)
    events = list(all_events(library.home.ledger, job.id))
    finished = Counter(event.task for event in events if event.type in (EventType.DONE, EventType.ADOPTED))
    assert set(finished.values()) == {1}
    assert not [event for event in events if event.type in (EventType.FAILED, EventType.DEAD)]
    found = manifests(library, job.id)
    engine, _, endpoint = library.settings.inference.partition(":")
    assert {m.provenance.engine for (stage, _, _), m in found.items() if stage in ("objects", "depth")} == {
        engine if endpoint else "local"
    }
    return {where: [(a.name, a.sha256) for a in manifest.artifacts] for where, manifest in found.items()}


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory, footage: Path) -> dict[str, dict[Any, list[tuple[str, str]]]]:
    """What is made of the film with the models in the slots."""
    with Library(tmp_path_factory.mktemp("near")) as library:
        return {recipe: done(library, footage, recipe) for recipe in ("searchable", "3d")}


def test_a_film_is_the_same_film_with_services_that_fail_in_every_way(
    service: str, footage: Path, near: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "sitecustomize.py").write_text(NO_NETS)
    paths = [str(tmp_path / "blocked"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))  # slots have no nets, and no weights
    monkeypatch.setenv("RUSHES_MODELS", str(tmp_path / "no-models"))
    monkeypatch.setenv("RUSHES_INFERENCE_SECONDS", "20")
    manners = ["well", "500", "well", "cut", "well", "stall"]
    monkeypatch.setattr("rushes.engines.http.AWAY_SECONDS", 0.0)  # so that the bad one is asked again and again
    with bad_proxy(service, manners) as bad:
        monkeypatch.setenv("RUSHES_INFERENCE", f"{bad.url},{service}")
        with Library(tmp_path / "far") as library:
            far = {recipe: done(library, footage, recipe) for recipe in ("searchable", "3d")}
        assert bad.done[: len(manners)] == manners
        assert "gone" in bad.done
    assert far == near


@contextmanager
def one_worker(home: Path) -> Iterator[tuple["Future[None]", list[Input]]]:
    """A worker of one slot that leaves when nothing is left: how it ends, and what it is told."""
    told: list[Input] = []
    with Library(home) as library, ThreadPoolExecutor(1) as pool:
        worker = HomeWorker(library.home, slots=1, until_idle=True)
        worker.show(told.append)
        try:
            yield pool.submit(worker.shell.run), told
        finally:
            worker.shell.request_stop()
            worker.shell.request_stop()


def test_work_without_models_goes_on_while_no_service_answers_and_it_is_said_why_the_rest_waits(
    service: str, footage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    films = {"objects": footage, "develop": draw(tmp_path / "other.mp4", 2, (64, 36))}
    monkeypatch.setenv("RUSHES_MODELS", str(tmp_path / "no-models"))
    monkeypatch.setattr("rushes.worker.lanes.AWAY_SECONDS", 0.5)
    with bad_proxy(service, []) as bad:
        monkeypatch.setenv("RUSHES_INFERENCE", bad.url)
        with Library(tmp_path / "home") as library:
            asked = {stage: JobRequest(only=(stage,), chunk="5", profile="fast") for stage in films}
            added = {stage: library.add([film], asked[stage])[0].job for stage, film in films.items()}
            asking, plain = (job.id for job in added.values() if job)
            with one_worker(tmp_path / "home") as (over, told):
                wait_for(lambda: library.jobs.get(plain).state is JobState.COMPLETED, "the other film is done")
                wait_for(lambda: any(map(EngineOutage.of, told)), "the outage is told")
                reasons = partial(_reasons, library, asking, "objects")
                wait_for(lambda: reasons() == {ENGINE_AWAY}, "it is said why")
                assert not [task for task in all_tasks(library.home.ledger, asking) if task.failures]
                bad.manners = ["well"] * 100
                wait_for(lambda: library.jobs.get(asking).state is JobState.COMPLETED or over.done(), "it goes on")
                assert library.jobs.get(asking).state is JobState.COMPLETED, "it did not leave before"


def _reasons(library: Library, job: str, stage: str) -> set[str]:
    return {why.reason for why in library.jobs.why(job) if why.stage == stage}


@pytest.fixture
def endpoint(
    service: str, seaweed_s3: BucketLocation, aws_server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Endpoint]:
    """An asynchronous endpoint before the service, which the settings name for every stage."""
    sqs, name = Service("sqs", aws_server.url, "us-east-1", KEY, SECRET), f"answers-{secrets.token_hex(4)}"
    s3 = {"s3_endpoint": seaweed_s3.endpoint, "s3_key": seaweed_s3.key, "s3_secret": seaweed_s3.secret}
    own = {"inference": "sagemaker:films", "inference_bucket": f"s3://{seaweed_s3.bucket}/{name}"}
    told = {**s3, **own, "aws_endpoint": aws_server.url, "inference_events": name, "models": str(tmp_path / "none")}
    queue = str(sqs.ask("create_queue", QueueName=name)["QueueUrl"])
    with asynchronous_endpoint(service, seaweed_s3, sqs, queue) as found:
        for variable, value in told.items():
            monkeypatch.setenv(f"RUSHES_{variable.upper()}", value)
        monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", found.url)
        yield found
    assert not [one for page in connect(seaweed_s3).list(name) for one in page], "what was asked is cleared away"


def test_a_film_is_the_same_film_by_an_endpoint_whose_events_are_lost_doubled_and_late(
    endpoint: Endpoint, footage: Path, near: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.manners("told", "doubled", "lost", "late", "told")
    monkeypatch.setattr("rushes.engines.sagemaker.FIRST_LOOK_SECONDS", 1.0)  # what a lost event costs
    with Library(tmp_path / "late") as library:
        assert {recipe: done(library, footage, recipe) for recipe in ("searchable", "3d")} == near
    assert set(endpoint.witness.values()) == {1}, "nothing is asked twice"
    assert endpoint.most_in_flight <= 5
    assert {kind.rpartition("=")[2] for kind in endpoint.types} == {"hear", "read", "detect", "depth"}


def asleep(library: Library, job: str) -> list[Task]:
    return [task for task in all_tasks(library.home.ledger, job) if task.awaits_answer]


def test_a_worker_killed_while_it_waits_and_an_endpoint_that_fails_lose_nothing(
    endpoint: Endpoint, footage: Path, near: dict[str, Any], tmp_path: Path
) -> None:
    endpoint.manners("failed", "told", "told")
    endpoint.gate.clear()
    with Library(tmp_path / "killed") as library:
        (added,) = library.add([footage], JobRequest(only=("objects",), chunk="5", profile="fast"))
        assert added.job
        id, ledger = added.job.id, library.home.ledger
        argv = [sys.executable, "-m", "rushes", "--home", str(tmp_path / "killed"), "worker"]
        with subprocess.Popen(argv, cwd=tmp_path, stderr=subprocess.DEVNULL) as worker:
            wait_for(lambda: len(asleep(library, id)) == 2, "both chunks are asked about")
            worker.kill()
        asked = {task.id for task in all_tasks(ledger, id) if task.stage == "objects"}
        assert {name.partition("/")[0]: count for name, count in endpoint.witness.items()} == dict.fromkeys(asked, 1)
        endpoint.gate.set()
        assert library.run([footage], JobRequest(only=("objects",), chunk="5", profile="fast")).exit_code == 5
        (failed,) = [task for task in all_tasks(ledger, id) if task.failure]
        assert failed.failure
        assert (failed.failure.kind, failed.failures) == ("InferenceFailed", 1)
        assert "the model ran out of memory" in failed.failure.message
        library.jobs.retry(id)
        assert library.run([footage], JobRequest(only=("objects",), chunk="5", profile="fast")).exit_code == 0
        found = manifests(library, id)
    mine = {where: [(a.name, a.sha256) for a in m.artifacts] for where, m in found.items() if where[0] == "objects"}
    assert mine == {where: made for where, made in near["searchable"].items() if where[0] == "objects"}
    assert {name.partition("/")[0]: count for name, count in endpoint.witness.items()} == {
        task: 2 if task == failed.id else 1 for task in asked
    }, "only what failed is asked again"


def test_no_more_models_are_used_at_once_than_allowed_and_who_is_too_many_is_told_when_to_come_again(
    service: str,
) -> None:
    call = pack({"what": "words", "model": "whisper-tiny.en", "options": {"language": "en"}}, [pack_floats(_noise())])
    answers: list[int] = []
    callers = [
        threading.Thread(target=lambda: answers.append(ask(service, "POST", "/v1/hear", call)[0])) for _ in range(40)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert Counter(answers) == {200: answers.count(200), 429: answers.count(429)}
    assert answers.count(200) >= 30
    _, told = ask(service, "GET", "/metrics")
    assert b"rushes_inference_models_in_use_max 2\n" in told
    assert b"rushes_inference_callers 0\n" in told


def _noise() -> Any:
    return (np.random.default_rng(2).standard_normal(2 * RATE) * 0.05).astype(np.float32)


ASKED: dict[str, dict[str, object]] = {
    "objects": {"model_name": "yolov8n.pt"},
    "faces": {"model_name": "yolov8n-face.pt"},
    "transcribe": {"model_name": "large-v3", "language": "en"},
    "ocr": {"languages": ["en"]},
    "places": {},
    "scenes": {},
}


def inferred(service: str, what: str, **asked: object) -> tuple[int, Any]:
    body = json.dumps(asked).encode()
    status, data = ask(service, "POST", f"/infer/{what}", body, {"Content-Type": "application/json"})
    return status, json.loads(data)


@pytest.mark.parametrize("what", ASKED)
def test_a_question_about_a_film_is_answered_with_its_provenance(service: str, footage: Path, what: str) -> None:
    status, doc = inferred(service, what, video_path=str(footage), **ASKED[what])
    assert status == 200
    assert {"run_id", "config_hash", "input_hash", "model_profile", "producer", "producer_version"} < set(doc)
    assert doc["producer"] == f"rushes.{what}"
    if what == "scenes":
        assert [(s["start_ms"], s["end_ms"]) for s in doc["scenes"]] == [(0, 3000), (3000, 6000), (6000, 9000)]
    if what == "objects":
        assert {(d["timestamp_ms"], d["label"]) for d in doc["detections"]} >= {(3000, "person"), (6000, "cup")}
    if what == "faces":
        assert [(d["frame_index"], d["cluster_id"]) for d in doc["detections"]] == [(30, "0")]
    if what == "ocr":
        assert "Quarterly Results 2025" in {d["text"] for d in doc["detections"]}
    if what == "transcribe":
        assert "country" in " ".join(s["text"] for s in doc["segments"])
        assert doc["segments"][0]["words"][0]["start_ms"] >= 900
    if what == "places":
        assert [len(c["predictions"]) for c in doc["classifications"]] == [5, 5]


def test_a_film_of_a_bucket_is_asked_about_by_its_address(
    service: str, footage: Path, seaweed_s3: BucketLocation
) -> None:
    connect(seaweed_s3).put("asked/seen.mp4", footage)
    status, far = inferred(service, "scenes", video_path=f"s3://{seaweed_s3.bucket}/asked/seen.mp4")
    near = inferred(service, "scenes", video_path=str(footage))[1]
    assert status == 200
    assert {**far, "run_id": ""} == {**near, "run_id": ""}


def test_only_a_part_of_a_film_is_looked_at_where_one_is_named(service: str, footage: Path) -> None:
    part = {"start_ms": 2900, "end_ms": 5000}
    _, doc = inferred(service, "objects", video_path=str(footage), model_name="efficientdet-lite0", **part)
    assert {d["frame_index"] for d in doc["detections"]} == {30}


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/etc/passwd", 403, "NotAllowed"),
        ("relative.mp4", 403, "NotAllowed"),
        ("{films}/../../../etc/passwd", 403, "NotAllowed"),
        ("{films}/link.mp4", 403, "NotAllowed"),
        ("{films}/none.mp4", 400, "NotFound"),
        ("{films}/text.mp4", 400, "BadMedia"),
        ("{films}", 400, "NotFound"),
    ],
)
def test_what_is_no_film_below_the_sources_is_refused(
    service: str, footage: Path, path: str, status: int, code: str
) -> None:
    (footage.parent / "text.mp4").write_text("no film")
    if not (footage.parent / "link.mp4").is_symlink():
        (footage.parent / "link.mp4").symlink_to("/etc/passwd")
    got, doc = inferred(service, "scenes", video_path=path.format(films=footage.parent))
    assert (got, doc["code"]) == (status, code)


def test_bad_requests_are_the_callers_fault(service: str, footage: Path) -> None:
    film = str(footage)
    assert inferred(service, "objects", video_path=film)[0] == 400
    assert inferred(service, "objects", video_path=film, model_name="resnet")[0] == 400
    assert inferred(service, "objects", video_path=film, model_name="yolov8n.pt", frame_interval=0)[0] == 400
    assert ask(service, "POST", "/v1/detect", b"nonsense")[0] == 400
    unknown = pack({"what": "objects", "model": "other", "least": 0.4, "shapes": [None]}, [jpeg("coffee.jpg")])
    assert ask(service, "POST", "/v1/detect", unknown)[0] == 400
    assert ask(service, "POST", "/v1/dance", b"")[0] in (400, 404)
    health = json.loads(ask(service, "GET", "/health")[1])
    assert (health["status"], health["gpu_available"]) == ("healthy", False)
    assert ask(service, "GET", "/ping")[0] == 200


def test_another_version_of_a_model_is_refused_and_the_one_that_answers_is_named(
    service: str, footage: Path, far: RemoteEngine
) -> None:
    asked = {"video_path": str(footage), "start_ms": 0, "end_ms": 100}
    status, doc = inferred(service, "objects", **asked, model_name="efficientdet-lite0@00000000")
    assert (status, doc["code"]) == (409, "OtherModel")
    name = inferred(service, "objects", **asked, model_name="yolov8n.pt")[1]["model"]
    assert re.fullmatch("efficientdet-lite0@[0-9a-f]{8}", name)
    assert inferred(service, "objects", **asked, model_name=name)[1]["model"] == name
    with pytest.raises(EngineAway, match=f"409: efficientdet-lite0@00000000 was requested, but {name} is loaded"):
        far.detect_objects("efficientdet-lite0@00000000", [jpeg("coffee.jpg")], 0.4)
    assert far.detect_objects(name, [jpeg("coffee.jpg")], 0.4)


def test_the_contract_can_be_read_in_a_browser_with_files_of_the_service_alone(service: str) -> None:
    _, page = ask(service, "GET", "/docs")
    linked = re.findall(rb'(?:href|src)="(/[^"]*)"', page)
    assert len(linked) == 3
    assert b"http" not in page
    assert [ask(service, "GET", path.decode())[0] for path in linked] == [200, 200, 200]
    assert ask(service, "GET", "/")[0] == 307, "the address alone leads there"


def test_pages_of_other_sites_may_not_ask(service: str) -> None:
    assert ask(service, "GET", "/health", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403


def invoked(service: str, **asked: object) -> tuple[int, Any]:
    said = {"Content-Type": "application/json"}
    status, data = ask(service, "POST", "/invocations", json.dumps(asked).encode(), said)
    return status, json.loads(data)


def test_a_film_is_made_3d_from_one_address_to_another(service: str, footage: Path, seaweed_s3: BucketLocation) -> None:
    bucket = connect(seaweed_s3)
    bucket.put("input/clip.mp4", draw(footage.parent / "short.mp4", 2, (160, 90)))
    place = f"s3://{seaweed_s3.bucket}"
    status, doc = invoked(
        service, s3_input_uri=f"{place}/input/clip.mp4", s3_output_uri=f"{place}/jobs/1.mp4", mode="sbs"
    )
    assert (status, doc) == (200, {"status": "completed", "output_uri": f"{place}/jobs/1.mp4"})
    far = footage.parent / "far.mp4"
    far.write_bytes(bucket.get("jobs/1.mp4").bytes().to_bytes())
    near = footage.parent / "near.mp4"
    assert invoked(service, input_uri=str(footage.parent / "short.mp4"), output_uri=str(near), mode="sbs")[0] == 200
    assert near.read_bytes() == far.read_bytes()
    with av.open(str(near)) as made:
        assert made.streams.video[0].frames == 20
    assert invoked(service, input_uri=f"{place}/none.mp4", output_uri=str(near))[1]["code"] == "NotFound"
    assert invoked(service, input_uri=str(near), output_uri="/etc/film.mp4")[1]["code"] == "NotAllowed"
    assert invoked(service, input_uri=str(near))[1]["code"] == "Refused"
    assert invoked(service, input_uri=str(near), output_uri=str(far), mode="hologram")[0] == 400


def test_whatever_is_sent_by_the_contract_and_against_it_no_answer_is_a_500(service: str) -> None:
    answers: Counter[int] = Counter()
    contract = schemathesis.openapi.from_url(f"{service}/openapi.json")
    found = [found.ok() for found in contract.get_all_operations() if isinstance(found, Ok)]
    assert len(found) == 11
    for operation in found:
        raw = operation.definition.raw
        modes = list(GenerationMode) if raw.get("parameters") or raw.get("requestBody") else [GenerationMode.POSITIVE]
        for mode in modes:
            with suppress(Unsatisfiable):  # every text is right
                _cases(operation, mode, 38)(service, answers)
    assert sum(answers.values()) >= 500
    assert answers.keys() <= {200, 400, 403, 404, 405, 409, 413, 415}, answers


PROMISED = [status_code_conformance, content_type_conformance, response_schema_conformance]


def _cases(operation: Any, mode: GenerationMode, count: int) -> Callable[[str, Counter[int]], None]:
    def tried(service: str, answers: Counter[int]) -> None:
        @seed(1)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def go(case: Any) -> None:
            reply = case.call(base_url=service)
            case.validate_response(reply, checks=PROMISED)
            answers[reply.status_code] += 1

        go()

    return tried
