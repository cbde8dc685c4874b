"""The HTTP API and the pages under hostile requests: none may be answered with a 500, with accounts on and off.

Half of the cases are made from the API's own description (right ones and wrong ones), half by hand: every route,
pages and aliases too, with hard values in its path, query, form, document, cookies and headers.

python -m proof.hostile_api --cases 20000 --seed 1
"""

import argparse
import inspect
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from tests.api.kit import WORKER, Serving, serving, submit
from tests.api.routes import RouteShape, every_route

TOKEN = "a-long-and-secret-token"
DOORS = ("open", "accounts")
ENDLESS = {"follow_all"}  # a stream that is meant never to end
PLACES = {"path", "paths", "place"}  # fields that name a folder of the server
HARD = ("NaN", "Infinity", "-1", "0", "1", str(2**63), str(2**64), "1e400", "", "\0", "%00", "\ud800", "'", '"', "null",
        "../..", "a" * 5000, "ä" * 300, "\u202e", "<script>", "%", "$(id)", "1;DROP TABLE job", "true", "[]", "{}",
        "s3://x/../y", "/", "//", "\r\nX: y", "\x7f", "\N{PILE OF POO}",
        "cancel", "retry", "BadMedia", "speech")  # fmt: skip
HEADERS = ("Range", "If-None-Match", "If-Range", "Cookie", "Accept", "Content-Type", "Referer", "Origin", "Host",
           "X-Forwarded-For", "Idempotency-Key", "Upload-Offset", "Upload-Length", "Upload-Metadata", "Upload-Checksum",
           "Last-Event-ID", "Accept-Language", "Authorization")  # fmt: skip
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
TYPES = (JSON, FORM, "multipart/form-data; boundary=x", "text/plain", "\xff")


@dataclass
class Tally:
    """How the cases were answered; `broken` tells of those that were not."""

    answers: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def count(self, answer: Any, what: str) -> None:
        """One more answer."""
        self.answers[answer.status_code] += 1
        if answer.status_code == 500:  # 503 is honest: an open server may be told to look into a bucket without keys
            self.broken.append(f"{answer.status_code} {what}")


@dataclass(frozen=True)
class Door:
    """A server, and what a friend sends along."""

    server: Serving
    films: Path
    headers: dict[str, str]
    ids: Sequence[str]


@contextmanager
def opened(folder: Path, name: str) -> Iterator[Door]:
    """A server with a job and an empty folder that it may look into: open to all, or for those with an account."""
    films = folder / "films"
    films.mkdir(parents=True)
    more = {"host": "0.0.0.0", "token": TOKEN, "sources": str(films)} if name == "accounts" else {}
    with serving(folder / "home", **more) as server:
        job = submit(server.ledger, "film", 2).id
        path = server.library.paths.add(str(films)).id
        headers = {"Authorization": f"Bearer {TOKEN}"} if name == "accounts" else {}
        ids = (job, f"{job}.probe", f"{job}.develop.00000", "vid_film", path, WORKER, "per_1", "clp_1", "up_1")
        if name == "accounts":
            server.app.state.access.accounts.create("ada", "correct horse battery")
        yield Door(server, films, headers, ids)


def described(door: Door, cases: int, number: int, tally: Tally) -> None:
    """Cases made from the description."""
    schema = schemathesis.openapi.from_dict(door.server.app.openapi())
    found = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    some = [o for o in found if o.definition.raw["operationId"] not in ENDLESS]
    each = cases * 7 // (10 * len(some)) + 1
    for operation in some:
        for mode in _modes(operation):
            _try_out(door, operation, mode, each, number, tally)


def handmade(door: Door, cases: int, number: int, tally: Tally) -> None:
    """Cases made by hand, of every route in turn."""
    routes = [route for route in every_route(door.server.app) if route.endpoint.__name__ not in ENDLESS]
    chance = random.Random(number)
    for n in range(cases):
        _ask(door, _request(door, routes[n % len(routes)], chance), tally)


def _modes(operation: Any) -> list[GenerationMode]:
    """Right cases and wrong ones; nothing can be wrong about an operation that is asked nothing."""
    raw = operation.definition.raw
    return list(GenerationMode) if raw.get("parameters") or raw.get("requestBody") else [GenerationMode.POSITIVE]


def _try_out(door: Door, operation: Any, mode: GenerationMode, each: int, number: int, tally: Tally) -> None:
    @seed(number)
    @settings(
        max_examples=each,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def go(case: Any) -> None:
        if isinstance(case.body, dict):
            case.body = _confined(door, case.body)
        answer = case.call(base_url=door.server.url, headers=door.headers)
        tally.count(answer, f"{case.as_curl_command()}\n{answer.text[:300]}")

    with suppress(Unsatisfiable):  # every text is right
        go()


def _confined(door: Door, body: dict[str, Any]) -> dict[str, Any]:
    """An open server reads what its user may read: keep it in its folder, lest it walks the whole disk."""
    return {k: _below(door, v) if k in PLACES and not door.headers else v for k, v in body.items()}


def _below(door: Door, place: Any) -> Any:
    if isinstance(place, list):
        return [_below(door, one) for one in place]
    return f"{door.films}/{place.replace('..', '_')}" if isinstance(place, str) and place.startswith("/") else place


def _request(door: Door, route: RouteShape, chance: random.Random) -> dict[str, Any]:
    names = [n for n in inspect.signature(route.endpoint).parameters if n not in ("request", "library", "active")]
    sent = chance.sample(names, chance.randint(0, len(names)))
    values = _confined(door, {name: _value(door, chance) for name in sent})
    path = route.path.replace(":path}", "}")
    for name in names:
        path = path.replace(f"{{{name}}}", quote(_value(door, chance).encode("utf-8", "surrogatepass"), safe=""))
    headers = {b"accept": chance.choice((b"text/html", b"application/json", b"*/*")), **_encoded(door.headers)}
    for name in chance.sample(HEADERS, chance.choice((0, 0, 0, 1, 2))):
        headers[name.lower().encode()] = _header(door, chance)
    if route.method in ("GET", "HEAD", "OPTIONS"):
        return {"method": route.method, "url": f"{path}?{_form(values)}", "headers": headers}
    kind = chance.choice(TYPES)
    headers.setdefault(b"content-type", kind.encode("latin-1"))
    return {"method": route.method, "url": path, "content": _body(values, kind, chance), "headers": headers}


def _body(values: dict[str, str], kind: str, chance: random.Random) -> bytes:
    if kind == JSON:
        odd: Any = chance.choice((None, [], {}, 1, -1, 2**64, 1e308, True, "x"))
        return json.dumps({k: odd if chance.random() < 0.3 else v for k, v in values.items()}).encode()
    if kind == FORM:
        return _form(values).encode()
    return chance.randbytes(chance.randint(0, 300))


def _form(values: dict[str, str]) -> str:
    return "&".join(f"{name}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in values.items())


def _value(door: Door, chance: random.Random) -> str:
    return chance.choice(door.ids) if chance.random() < 0.4 else chance.choice(HARD)


def _header(door: Door, chance: random.Random) -> bytes:
    value = chance.choice((_value(door, chance), f"bytes={chance.randint(0, 9)}-", "a=b; rushes_session=x", "Bearer x"))
    return bytes(b for b in value.encode("utf-8", "surrogatepass") if b > 31 and b != 127).strip()


def _encoded(headers: dict[str, str]) -> dict[bytes, bytes]:
    return {name.lower().encode(): value.encode() for name, value in headers.items()}


def _ask(door: Door, request: dict[str, Any], tally: Tally) -> None:
    with door.server.http.stream(**request) as answer:
        if "event-stream" not in answer.headers.get("content-type", ""):  # a job that runs on has no end
            answer.read()
        what = (
            f"{request['method']} {request['url'][:200]} {str({k: v for k, v in request.items() if k != 'url'})[:600]}"
        )
        tally.count(answer, what)
    door.server.http.cookies.clear()


def main(cases: int, seed: int) -> int:
    """So many cases, half of them at an open server; prints the answers, and 1 if one was a 500."""
    broken = 0
    for name in DOORS:
        began, tally = time.monotonic(), Tally()
        with tempfile.TemporaryDirectory(prefix="hostile-api-") as folder, opened(Path(folder), name) as door:
            described(door, cases // 4, seed, tally)
            handmade(door, cases // 2 - sum(tally.answers.values()), seed, tally)
        count, answers = sum(tally.answers.values()), dict(sorted(tally.answers.items()))
        print(f"{name:<9} {count} cases, {len(tally.broken)} answered with 500, {time.monotonic() - began:.0f} s")
        print(f"          {answers}")
        print("\n".join(tally.broken[:20]))
        broken += len(tally.broken)
    print(f"seed {seed}")
    return 1 if broken else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    sys.exit(main(asked.cases, asked.seed))
