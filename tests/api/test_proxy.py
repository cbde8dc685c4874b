"""Proxies and TLS: whose word counts, what an open server refuses, and what browsers are told behind TLS."""

from pathlib import Path
from typing import Any

import pytest

from rushes.domain.errors import NotAllowed, Refused
from rushes.library import Library
from rushes.surfaces.http.proxy import client_of, parse_networks
from rushes.surfaces.server.app import create
from tests.api.kit import Serving, serving

TLS = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.5"}
FORM = {"name": "ada", "password": "correct horse battery", "code": "code"}


@pytest.mark.parametrize(
    "said",
    [{"X-Forwarded-For": "203.0.113.5"}, {"Forwarded": "for=203.0.113.5"}, {"X-Forwarded-Host": "films.example"},
     {"X-Forwarded-Proto": "https"}, {"X-Real-IP": "203.0.113.5"}, {"X-Forwarded-Port": "443"}],
)  # fmt: skip
def test_an_open_server_refuses_what_a_proxy_hands_on_and_says_what_to_do(
    server: Serving, said: dict[str, str]
) -> None:
    for path in ("/api/v1/jobs", "/", "/setup", "/static/rushes.css"):
        no = server.http.get(path, headers=said)
        assert (no.status_code, no.json()["code"]) == (403, "OpenBehindProxy")
        assert "rushes users add" in no.json()["hint"]
        assert "proxy =" in no.json()["hint"]
    assert server.http.get("/healthz", headers=said).status_code == 200
    assert server.http.get("/api/v1/jobs").status_code == 200


def test_a_declared_proxy_or_an_account_ends_that(home: Path) -> None:
    with serving(home, proxy="127.0.0.0/8") as server:
        assert server.http.get("/api/v1/jobs", headers=TLS).status_code == 200
    with serving(home, proxy="10.0.0.1") as server:
        assert server.http.get("/api/v1/jobs", headers=TLS).status_code == 403
        server.app.state.access.accounts.create("ada", "correct horse battery")
        assert server.http.get("/api/v1/jobs", headers=TLS).status_code == 401


def test_plain_http_for_other_machines_is_refused_unless_somebody_answers_for_it(home: Path) -> None:
    with Library(home, options={"token": ("a token", "the test")}) as library:
        with pytest.raises(NotAllowed, match="plain HTTP") as no:
            create(library, "0.0.0.0")
        assert "--insecure" in no.value.advice
        assert "proxy =" in no.value.advice
        create(library, "0.0.0.0", insecure=True)
    with Library(home, options={"token": ("a token", "the test"), "proxy": ("10.0.0.5", "the test")}) as library:
        access = create(library, "0.0.0.0").state.access
        for peer, said, code in (("10.0.0.9", {}, 403), ("10.0.0.5", TLS, 401), ("127.0.0.1", {}, 401)):
            headers = [(k.lower().encode(), v.encode()) for k, v in {"Host": "localhost", **said}.items()]
            scope: dict[str, Any] = {
                "type": "http",
                "method": "GET",
                "path": "/api/v1/jobs",
                "scheme": "http",
                "client": (peer, 1),
            }
            scope |= {"headers": headers, "query_string": b""}
            assert access.refusal(scope, access.client(scope)).status_code == code, peer


def test_behind_tls_cookies_belong_to_this_host_and_browsers_stay_on_tls(home: Path) -> None:
    with serving(home, "0.0.0.0", "code", proxy="127.0.0.1") as server:
        made = server.http.post("/setup", data=FORM, headers=TLS)
        cookie = made.headers["set-cookie"]
        assert cookie.startswith("__Host-rushes_session=")
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= {part.strip() for part in cookie.split(";")}
        assert "domain" not in cookie.lower()
        assert made.headers["strict-transport-security"] == "max-age=31536000"
        secret = cookie.partition("=")[2].partition(";")[0]
        server.http.cookies.clear()
        for name, code in (("__Host-rushes_session", 200), ("rushes_session", 401)):
            sent = {**TLS, "Cookie": f"{name}={secret}"}
            assert server.http.get("/api/v1/jobs", headers=sent).status_code == code
        themed = server.http.post(
            "/theme", data={"theme": "dark"}, headers={**TLS, "Cookie": f"__Host-rushes_session={secret}"}
        )
        assert themed.headers["set-cookie"].startswith("__Host-rushes_theme=dark")
        gone = server.http.post("/logout", headers={**TLS, "Cookie": f"__Host-rushes_session={secret}"})
        assert gone.headers["set-cookie"].startswith('__Host-rushes_session="";')
        assert "Secure" in gone.headers["set-cookie"]
        plain = server.http.get("/healthz")
        assert "strict-transport-security" not in plain.headers


def scope_of(peer: str, *said: tuple[str, str]) -> dict[str, object]:
    headers = [(name.encode(), value.encode()) for name, value in said]
    return {"type": "http", "client": (peer, 1), "scheme": "http", "headers": headers}


def test_only_the_last_hop_that_is_no_proxy_of_ours_is_believed() -> None:
    proxies = parse_networks("127.0.0.1, 10.0.0.0/8, ::1")
    hops = ("x-forwarded-for", "1.1.1.1, 203.0.113.5, 10.1.1.1")
    assert client_of(scope_of("127.0.0.1", hops), proxies).address == "203.0.113.5"
    assert client_of(scope_of("::ffff:10.2.2.2", hops), proxies).address == "203.0.113.5"
    assert client_of(scope_of("192.0.2.1", hops), proxies).address == "192.0.2.1"
    assert client_of(scope_of("::1", ("x-forwarded-proto", "http, https")), proxies).scheme == "https"
    assert client_of(scope_of("192.0.2.1", ("x-forwarded-proto", "https")), proxies).scheme == "http"
    assert client_of(scope_of("127.0.0.1"), proxies).address == "127.0.0.1"


def test_a_proxy_that_is_no_address_is_refused_with_an_example() -> None:
    with pytest.raises(Refused, match="nginx") as no:
        parse_networks("nginx")
    assert "10.0.0.0/8" in no.value.advice
