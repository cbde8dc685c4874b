"""What a request may not do: strangers, pages of other sites, other host names, too much and too slow."""

import re
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from rushes.domain.errors import NotAllowed
from rushes.library import Library
from rushes.surfaces.http import bodies
from rushes.surfaces.server import process
from rushes.surfaces.server.app import create
from tests.api.kit import DEADLINE, Serving, serving, wait_for
from tests.api.routes import every_route

TOKEN = "a-long-and-secret-token"


def test_it_does_not_listen_to_strangers_without_a_token_or_an_account(home: Path) -> None:
    with Library(home) as library:
        for address in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
            with pytest.raises(NotAllowed, match="there is no password") as no:
                create(library, address)
            assert "rushes serve --setup" in no.value.advice
        for address in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
            assert create(library, address).state.access.open


def test_elsewhere_only_the_token_comes_in(home: Path) -> None:
    with serving(home, "0.0.0.0", token=TOKEN) as server:
        no = server.http.get("/api/v1/jobs")
        assert (no.status_code, no.headers["www-authenticate"]) == (401, "Bearer")
        for wrong in ("", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer ü"):
            answer = server.http.get("/api/v1/jobs", headers={b"Authorization": wrong.encode()})
            assert answer.status_code == 401
        assert server.http.get("/api/v1/jobs", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert server.http.get("/healthz").status_code == 200
        page = server.http.get("/library", headers={"Accept": "text/html"})
        assert (page.status_code, page.headers["location"]) == (303, "/login?next=/library")


def test_the_first_account_is_made_with_the_code_and_then_everybody_logs_in(home: Path) -> None:
    with serving(home, "0.0.0.0", code="code-of-the-terminal") as server:
        form = {"name": "ada", "password": "correct horse battery"}
        assert server.http.post("/setup", data=form).status_code == 403
        assert server.http.post("/setup", data=form | {"code": "guessed"}).status_code == 403
        short = server.http.post("/setup", data=form | {"code": "code-of-the-terminal", "password": "short"})
        assert short.status_code == 400
        made = server.http.post("/setup", data=form | {"code": "code-of-the-terminal"})
        assert made.status_code == 303
        cookie = made.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert server.http.get("/api/v1/jobs").status_code == 200
        assert server.http.post("/setup", data=form | {"code": "code-of-the-terminal"}).status_code == 403
        assert server.http.post("/logout").status_code == 303
        server.http.cookies.clear()
        assert server.http.get("/api/v1/jobs").status_code == 401
    kept = b"".join(file.read_bytes() for file in home.glob("records.sqlite*"))
    assert b"correct horse" not in kept
    assert b"$argon2id$" in kept


@pytest.mark.parametrize("place", ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)"])
def test_logging_in_leads_to_no_other_site(home: Path, place: str) -> None:
    with serving(home, "0.0.0.0", code="code") as server:
        form = {"name": "ada", "password": "correct horse battery"}
        server.http.post("/setup", data=form | {"code": "code"})
        answer = server.http.post("/login", data=form | {"next": place})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        page = server.http.get("/login", params={"next": '"><script>alert(1)</script>'}).text
        assert "<script" not in page


@pytest.mark.parametrize(
    "said",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
     {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://127.0.0.1:1"}],
)  # fmt: skip
def test_another_sites_page_changes_nothing(server: Serving, said: dict[str, str]) -> None:
    answer = server.http.post("/api/v1/paths", json={"path": "/tmp"}, headers=said)
    assert (answer.status_code, answer.json()["code"]) == (403, "CrossSite")
    assert server.get("/api/v1/paths") == []


def test_every_method_that_may_change_something_is_refused_to_another_sites_page(server: Serving) -> None:
    routes = {(r.method, r.path) for r in every_route(server.app)}
    methods = {method for method, _ in routes} - {"GET", "HEAD", "OPTIONS"}
    assert methods >= {"POST", "PUT", "PATCH", "DELETE"}
    others = [("PROPFIND", "/"), ("QUERY", "/api/v1/videos"), ("post", "/api/v1/paths")]
    for method, path in [*sorted(routes), *others]:
        place = re.sub(r"\{[^}]*\}", "x", path)
        for said in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            if method in ("GET", "HEAD", "OPTIONS"):
                continue
            answer = server.http.request(method, place, headers=said)
            assert (answer.status_code, answer.json()["code"]) == (403, "CrossSite"), (method, path)
    for method in ("GET", "HEAD", "OPTIONS"):  # a link from another page; what it may read the browser decides
        assert (
            server.http.request(method, "/api/v1/jobs", headers={"Origin": "https://evil.example"}).status_code != 403
        )


def test_our_own_page_and_listed_ones_may(home: Path) -> None:
    with serving(home, cors="https://studio.example", sources="/tmp") as server:
        for said in ({"Origin": server.url, "Sec-Fetch-Site": "same-origin"}, {"Origin": "https://studio.example"}):
            assert server.http.post("/api/v1/paths", json={"path": "/tmp"}, headers=said).status_code == 201


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_a_name_that_was_made_to_point_here_is_not_answered(server: Serving, host: str) -> None:
    answer = server.http.get("/api/v1/jobs", headers={"Host": host})
    assert answer.status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8000", "films.example"])
def test_our_own_names_are(home: Path, host: str) -> None:
    with serving(home, hosts="films.example, other.example") as server:
        assert server.http.get("/api/v1/jobs", headers={"Host": host}).status_code == 200


def test_every_answer_forbids_scripts_of_others_and_guessing_of_types(server: Serving) -> None:
    for answer in (server.http.get("/healthz"), server.http.get("/nowhere"), server.http.get("/login")):
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_large_body_is_not_read(server: Serving) -> None:
    said = {"Content-Type": "application/json"}
    large = server.http.post("/api/v1/paths", content=b"x" * (bodies.BODY_BYTES + 1), headers=said)
    assert large.status_code == 413
    chunked = server.http.post("/api/v1/paths", content=(b"x" * 100_000 for _ in range(20)), headers=said)
    assert chunked.status_code == 413


def drip(line: socket.socket, again: Callable[[], bytes]) -> bytes:
    """Send a byte now and then until there is an answer."""
    over = time.monotonic() + DEADLINE
    line.settimeout(0.05)
    while time.monotonic() < over:
        with suppress(TimeoutError):
            return line.recv(1000)
        with suppress(ConnectionResetError, BrokenPipeError):
            line.sendall(again())
    raise AssertionError("it was waited for ever")


JSON = b"Content-Type: application/json\r\n\r\n{"
POST = b"POST /api/v1/paths HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n" + JSON


@pytest.mark.parametrize("more", [b"", b" "])
def test_a_request_that_never_ends_is_hung_up_on(server: Serving, monkeypatch: pytest.MonkeyPatch, more: bytes) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.3)
    with connected(server) as line:
        line.sendall(POST)
        assert drip(line, lambda: more).startswith(b"HTTP/1.1 408")


def test_an_upload_that_only_drips_is_cut_and_what_came_is_kept(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "UPLOAD_SECONDS", 0.3)
    begun = server.http.post("/api/v1/uploads", headers={"Upload-Length": "1000000"})
    place = begun.headers["location"].encode()
    with connected(server) as line:
        line.sendall(b"PATCH " + place + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
                     b"Upload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\n\r\n")  # fmt: skip
        line.sendall(b"\0\0\0\x18ftypmp42" + bytes(100))
        drip(line, lambda: b"\0")
    assert 112 <= int(server.http.head(place.decode()).headers["upload-offset"]) < 1000


def test_one_address_sends_only_so_many_requests_at_once(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "AT_ONCE", 3)
    with ExitStack() as lines:

        def is_too_much() -> bool:
            lines.enter_context(connected(server)).sendall(POST)
            return server.http.post("/api/v1/people/undo").status_code == 429

        wait_for(is_too_much, "any number was taken")
        assert server.http.get("/api/v1/jobs").status_code == 200
    wait_for(lambda: server.http.post("/api/v1/people/undo").status_code != 429, "it was never forgotten")


def connected(server: Serving) -> socket.socket:
    url = httpx.URL(server.url)
    return socket.create_connection((url.host, url.port or 80), timeout=DEADLINE)


def test_a_request_that_never_begins_is_hung_up_on(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "HEADER_SECONDS", 0.2)
    url = httpx.URL(server.url)
    for begin in (b"", b"GET / HTTP/1.1\r\nHost: loc"):
        line = socket.create_connection((url.host, url.port or 80), timeout=DEADLINE)
        with line, suppress(ConnectionResetError, BrokenPipeError):  # we may be slower than it is patient
            line.sendall(begin)
            assert line.recv(1000) == b""


def test_headers_that_drip_are_hung_up_on_and_of_too_many_the_oldest(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "HEADER_SECONDS", 0.3)
    with connected(server) as line, suppress(ConnectionResetError, BrokenPipeError):
        line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        assert drip(line, lambda: b"X: y\r\n") == b""
    monkeypatch.setattr(process, "HEADER_SECONDS", DEADLINE)
    monkeypatch.setattr(process, "WAITING", 5)
    with ExitStack() as lines:
        first, *_ = [lines.enter_context(connected(server)) for _ in range(6)]
        assert first.recv(1000) == b""
        assert server.http.get("/healthz").status_code == 200


def test_elsewhere_only_configured_folders_are_read(home: Path, film: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(film.parent)
    (tmp_path / "u1").mkdir()
    (tmp_path / "u10").mkdir()
    with serving(home, "0.0.0.0", token=TOKEN, sources=str(tmp_path / "u1")) as server:
        server.http.headers["Authorization"] = f"Bearer {TOKEN}"
        for path in (
            film,
            "/etc/passwd",
            tmp_path / "u10",
            tmp_path / "u1" / ".." / "u10",
            tmp_path / "link",
            "s3://b",
        ):
            assert server.post("/api/v1/videos", {"paths": [str(path)]}, 403)["code"] == "NotAllowed"
        server.post("/api/v1/paths", {"path": str(tmp_path / "u1")}, 201)


@pytest.mark.parametrize("path", ["http://127.0.0.1:1/x.mp4", "file:///etc/passwd", "concat:a|b", "", "a.mp4", "/a\0b"])
def test_urls_and_half_names_are_no_places(server: Serving, path: str) -> None:
    server.post("/api/v1/videos", {"paths": [path]}, 422)
    server.post("/api/v1/paths", {"path": path}, 422)


def test_secrets_are_never_shown(home: Path) -> None:
    with serving(home, token=TOKEN, webhook_secret="hook-secret", s3_secret="s3-secret") as server:
        server.http.headers["Authorization"] = f"Bearer {TOKEN}"
        shown = server.http.get("/api/v1/settings").text
        assert not any(secret in shown for secret in (TOKEN, "hook-secret", "s3-secret"))
