"""Engines that are asked over a line: the same answers, whichever line; another service where one does not answer."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
import simplejpeg

from rushes.domain.errors import BadMedia, EngineAway, InferenceFailed, ModelMissing, NeverWorks, OtherModel, Refused
from rushes.engines import wire
from rushes.engines.calls import LoadedModel, answer
from rushes.engines.http import CONNECT_SECONDS, InferenceServices, InferenceSession
from rushes.engines.port import RATE, DecodingOptions, Engine
from rushes.engines.remote import RemoteEngine
from rushes.engines.stub import StubEngine

PICTURE = np.random.default_rng(5).integers(0, 256, (90, 160, 3), dtype=np.uint8)
JPEG = simplejpeg.encode_jpeg(PICTURE, 90, "RGB")
SOUND = (np.random.default_rng(1).standard_normal(2 * RATE) * 0.1).astype(np.float32)
ASKED: dict[str, Callable[[Engine], object]] = {
    "speech": lambda e: e.detect_speech(SOUND),
    "language": lambda e: e.detect_language("m", SOUND),
    "words": lambda e: e.transcribe("m", SOUND, DecodingOptions("en", beam_size=1)),
    "text": lambda e: e.read_text("m", [PICTURE, JPEG], 960, ["en"]),
    "objects": lambda e: e.detect_objects("m", [JPEG, JPEG], 0.4),
    "faces": lambda e: e.detect_faces("m", [JPEG], 0.4, 960),
    "places": lambda e: e.classify_place("m", [JPEG], 5),
    "nothing": lambda e: e.detect_objects("m", [], 0.4),
    "depth": lambda e: [near.tolist() for near in e.inverse_depth("m", [JPEG, PICTURE], inverse=True)],
    "sentences": lambda e: e.embed("m", ["one", "two words"]).tolist(),
    "pictures": lambda e: e.embed_pictures("m", [JPEG, PICTURE]).tolist(),
    "captions": lambda e: e.embed_captions("m", ["one", "two words"]).tolist(),
}


@pytest.mark.parametrize("capability", ASKED)
def test_an_answer_is_the_same_near_and_far(capability: str) -> None:
    far = RemoteEngine(lambda name, call: answer(StubEngine(), name, call))
    assert ASKED[capability](far) == ASKED[capability](StubEngine())


LOADED = {name: LoadedModel("sentences", "m@0123abcd") for name in ("m", "m@0123abcd")}


def far(models: Mapping[str, LoadedModel] | None = LOADED) -> RemoteEngine:
    return RemoteEngine(lambda name, call: answer(StubEngine(), name, call, models=models))


def test_an_answer_says_which_version_of_a_model_gave_it() -> None:
    for name in LOADED:
        doc, _ = wire.unpack(answer(StubEngine(), "embed", wire.pack({"model": name, "texts": ["a"]}), models=LOADED))
        assert doc["model"] == "m@0123abcd"
        assert far().embed(name, ["a"]).shape == (1, 64)


def test_a_service_with_another_version_of_a_model_or_of_the_code_round_it_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(OtherModel, match="m@ffffffff was requested, but m@0123abcd is loaded"):
        far().embed("m@ffffffff", ["a"])
    with pytest.raises(ModelMissing):
        far().detect_objects("m@ffffffff", [JPEG], 0.4)
    monkeypatch.setattr("rushes.engines.remote.REVISION", wire.REVISION + 1)
    with pytest.raises(OtherModel, match="revision"):
        far().detect_speech(SOUND)


@pytest.mark.parametrize("said", [{"model": "m@ffffffff", "revision": wire.REVISION}, {"model": "m@0123abcd"}, {}])
def test_an_answer_of_another_model_is_never_taken(said: dict[str, object]) -> None:
    reply = wire.pack({"shape": [1, 1], **said}, [bytes(4)])
    with pytest.raises(InferenceFailed, match="m@0123abcd was requested"):
        RemoteEngine(lambda _name, _call: reply).embed("m@0123abcd", ["a"])


@pytest.mark.parametrize(
    ("capability", "call"),
    [
        ("hear", b""),
        ("hear", b"\x00\x00\x00\xff{}"),
        ("hear", wire.pack({"what": "words", "model": "m", "options": {"beam_size": 1}}, [b"123"])),
        ("hear", wire.pack({"what": "words", "model": "m", "options": {"nonsense": 1}}, [b"1234"])),
        ("read", wire.pack({"model": "m", "side": 9, "languages": [], "shapes": []})),
        ("detect", wire.pack({"what": "objects", "model": "m", "least": 0.4, "shapes": [[4, 4]]}, [b"short"])),
        ("detect", wire.pack({"what": "dragons"})),
        ("embed", wire.pack({"model": "m", "texts": []})),
        ("nothing", wire.pack({})),
        ("hear", wire.pack({"what": "speech"}, [b""] * 300)),
        ("embed", b'\x00\x00\x00\x30{"parts": [1e999], "model": "m", "texts": ["a"]}'),
        ("detect", wire.pack({"what": "objects", "model": "m", "least": 0.4, "shapes": [[0, 7]]}, [b""])),
        ("detect", wire.pack({"what": "places", "model": "m", "most": -1, "shapes": []})),
    ],
)
def test_what_is_no_call_is_refused(capability: str, call: bytes) -> None:
    with pytest.raises(Refused):
        answer(StubEngine(), capability, call)


@pytest.mark.parametrize(
    "options",
    [{"beam_size": size} for size in (0, -3, 400, 1.5, "5", None)]
    + [
        {"temperature": "hot"},
        {"temperature": -1},
        {"language": "xx"},
        {"language": "../de"},
        {"repetition_penalty": 0},
    ],
)
def test_decoding_options_have_bounds(options: dict[str, object]) -> None:
    with pytest.raises(Refused):
        answer(StubEngine(), "hear", wire.pack({"what": "words", "model": "m", "options": options}, [bytes(64)]))


def test_bytes_that_are_no_picture_are_bad_media() -> None:
    call = wire.pack({"what": "objects", "model": "m", "least": 0.4, "shapes": [None]}, [b"no jpeg at all"])
    with pytest.raises(BadMedia):
        answer(StubEngine(), "detect", call)


class Handler(BaseHTTPRequestHandler):
    """Answers as its server is told."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, self.headers["Authorization"] or ""))
        manner = self.server.manner(len(self.server.asked))
        if manner == "stall":
            self.server.over.wait(20)
            return
        if manner == "hang up":
            self.close_connection = True
            return
        data = answer(StubEngine(), self.path.rpartition("/")[2], body) if manner == "well" else self.server.said
        self.send_response({"well": 200, "cut": 200}.get(manner) or int(manner))
        self.send_header("Content-Length", str(len(data) + (manner == "cut")))
        if manner == "429":
            self.send_header("Retry-After", self.server.retry_after)
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = manner == "cut"

    def log_message(self, *_: object) -> None: ...


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, manner: Callable[[int], str], said: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.manner, self.said = manner, said
        self.asked: list[tuple[str, str]] = []
        self.retry_after = "0.1"
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def serving(manner: str | Callable[[int], str], said: bytes = b"{}") -> Iterator[Server]:
    server = Server(manner if callable(manner) else lambda _n: manner, said)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


Asking = Callable[..., RemoteEngine]


@pytest.fixture
def asking() -> Iterator[Asking]:
    """Opens a remote engine for services; its connections are closed in the end."""
    sessions: list[InferenceSession] = []

    def asking(*urls: str, seconds: float = 20) -> RemoteEngine:
        sessions.append(InferenceServices(urls, "secret", seconds).session())
        return RemoteEngine(sessions[-1].post)

    yield asking
    for session in sessions:
        session.close()


@pytest.mark.parametrize("manner", ["500", "502", "cut", "hang up", "429"])
def test_another_service_answers_where_one_does_not(manner: str, asking: Asking) -> None:
    with serving(manner) as bad, serving("well") as good:
        for first, second in ((bad, good), (good, bad)):
            engine = asking(first.url, second.url)
            for _ in range(3):
                assert engine.embed("m", ["a"]).shape == (1, 64)
        assert bad.asked
        assert good.asked[0] == ("/v1/embed", "Bearer secret")


def test_a_service_that_stalls_is_left_for_another_one_and_asked_last_from_then_on(asking: Asking) -> None:
    with serving("stall") as bad, serving("well") as good:
        engine = asking(good.url, bad.url, seconds=0.5)  # a session begins with the second
        for _ in range(4):
            assert engine.embed("m", ["a"]).shape == (1, 64)
        assert len(bad.asked) == 1


def test_a_service_that_accepts_no_connection_is_left_soon_however_long_an_answer_may_take(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience, usual = list[float](), socket.create_connection

    def connect(address: tuple[str, int], timeout: float, *rest: Any) -> socket.socket:
        patience.append(timeout)
        if address[0] == "10.0.0.1":
            raise TimeoutError("timed out")
        return usual(address, timeout, *rest)

    monkeypatch.setattr(socket, "create_connection", connect)
    with serving("well") as good:
        engine = asking(good.url, "http://10.0.0.1:8001", seconds=600)  # a session begins with the second
        assert engine.embed("m", ["a"]).shape == (1, 64)
        assert patience == [CONNECT_SECONDS] * 2
        session: InferenceSession = engine._post.__self__  # type: ignore[attr-defined]
        assert session._connections[good.url].sock.gettimeout() == 600


def test_a_connection_that_was_closed_meanwhile_is_opened_again(asking: Asking) -> None:
    with serving(lambda n: "hang up" if n == 2 else "well") as server:
        engine = asking(server.url)
        for _ in range(2):
            assert engine.embed("m", ["a"]).shape == (1, 64)
        assert len(server.asked) == 3


def test_a_busy_service_is_asked_again_after_the_time_that_it_names(asking: Asking) -> None:
    with serving(lambda n: "429" if n < 3 else "well") as server:
        assert asking(server.url).embed("m", ["a"]).shape == (1, 64)
        assert len(server.asked) == 3


def test_a_service_that_is_not_there_is_no_fault_of_the_work_but_a_model_that_fails_is(asking: Asking) -> None:
    with serving("500", b'{"detail": "out of memory"}') as bad, pytest.raises(InferenceFailed, match="out of memory"):
        asking("http://127.0.0.1:9", bad.url).embed("m", ["a"])
    with pytest.raises(EngineAway):
        asking("http://127.0.0.1:9").embed("m", ["a"])


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (b'{"code": "BadMedia", "detail": "no film"}', BadMedia),
        (b'{"code": "EngineAway"}', NeverWorks),
        (b"?", NeverWorks),
    ],
)
def test_a_call_that_is_refused_never_works(said: bytes, kind: type[Exception], asking: Asking) -> None:
    with serving("400", said) as server, pytest.raises(kind):
        asking(server.url).embed("m", ["a"])


NOT_HERE = [("301", b""), ("401", b""), ("403", b""), ("404", b""), ("409", b""), ("413", b"")]


@pytest.mark.parametrize(("status", "said"), [*NOT_HERE, ("400", b'{"code": "ModelMissing", "detail": "no m"}')])
def test_a_service_with_other_models_or_tokens_leaves_a_question_to_others_and_fails_no_work(
    status: str, said: bytes, asking: Asking
) -> None:
    with serving(status, said) as other, serving("well") as good:
        assert asking(good.url, other.url).embed("m", ["a"]).shape == (1, 64)  # a session begins with the second
        assert len(other.asked) == 1
        with pytest.raises(EngineAway, match=f"cannot handle this request: it answered {status}"):
            asking(other.url).embed("m", ["a"])


def test_a_busy_service_is_waited_for_where_another_fails(asking: Asking) -> None:
    with serving("500") as bad, serving(lambda n: "429" if n < 3 else "well") as busy:
        assert asking(busy.url, bad.url).embed("m", ["a"]).shape == (1, 64)
        assert (len(bad.asked), len(busy.asked)) == (1, 3)


def test_a_time_that_is_no_number_is_a_second(asking: Asking) -> None:
    with serving(lambda n: "429" if n < 2 else "well") as server:
        server.retry_after = "nan"
        assert asking(server.url).embed("m", ["a"]).shape == (1, 64)


def given_up(server: Server) -> list[BaseException]:
    """How a question ends whose asker hangs up when it has been heard."""
    session = InferenceServices((server.url,), seconds=60).session()
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            session.post("embed", wire.pack({"model": "m", "texts": ["a"]}))
        except EngineAway as e:
            failures.append(e)

    asker = threading.Thread(target=ask)
    asker.start()
    while not server.asked:
        asker.join(0.01)
    session.close()
    asker.join(10)
    return failures


def test_who_hangs_up_leaves_a_question_at_once() -> None:
    with serving("stall") as server:
        assert len(given_up(server)) == 1


def test_who_hangs_up_while_services_are_busy_asks_no_more() -> None:
    with serving(lambda n: "429" if n < 2 else "well") as server:
        server.retry_after = "30"
        assert len(given_up(server)) == 1
        assert len(server.asked) == 1
