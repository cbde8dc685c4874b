"""Agents: the same walk with the SDK's own client over stdin and stdout, and over HTTP; what they may not do."""

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ImageContent, TextContent, TextResourceContents

from rushes.domain.errors import Refused
from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.exports import sidecar
from rushes.library import Library
from rushes.library.access.audit import Audit
from rushes.surfaces.mcp.prompts import GRAMMAR
from rushes.surfaces.mcp.server import create
from tests.api.kit import Serving, begin, serving

TOKEN = "a-long-and-secret-token"
Walk = Callable[[Client], Coroutine[Any, Any, None]]
Connect = Callable[[Walk], None]


@pytest.fixture(scope="module")
def spoken_home(tmp_path_factory: pytest.TempPathFactory, developed_home: Path) -> Path:
    """The developed film, and one of which only the words are known."""
    folder = tmp_path_factory.mktemp("spoken")
    lines = [
        Observation("speech", Span(n * 1000, n * 1000 + 900, Fraction(1, 1000)), f"budget of year {n}", 1.0)
        for n in range(5)
    ]
    head = {"video": "vid_talk", "name": "talk.mp4", "duration_us": 5_000_000}
    (folder / "talk.rushes.jsonl").write_bytes(sidecar.write(head, lines, {}))
    home = shutil.copytree(developed_home, folder / "home")
    with Library(home) as library:
        library.maintenance.read_sidecars([folder])
    return home


@pytest.fixture(scope="module")
def server(spoken_home: Path) -> Iterator[Serving]:
    with serving(spoken_home, token=TOKEN, sources=tempfile.gettempdir()) as running:
        yield running


@asynccontextmanager
async def over_http(url: str, token: str = TOKEN) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        yield client


@pytest.fixture(params=["stdio", "http"])
def connect(request: pytest.FixtureRequest, server: Serving, spoken_home: Path) -> Connect:
    """Runs a walk with a client of one kind."""

    async def go(walk: Walk) -> None:
        if request.param == "http":
            async with over_http(server.url) as client:
                await walk(client)
            return
        argv = ["-m", "rushes", "--home", str(spoken_home), "mcp", "--pages", server.url]
        env = {"RUSHES_SOURCES": tempfile.gettempdir(), "RUSHES_TOKEN": TOKEN}
        async with Client(StdioServerParameters(command=sys.executable, args=argv, env=env)) as client:
            await walk(client)

    return lambda walk: asyncio.run(go(walk))


async def ask(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    assert isinstance(answer.content[0], TextContent)
    return answer.content[0].text


def test_an_agent_finds_reads_looks_cuts_adds_and_asks(connect: Connect, server: Serving, film: Path) -> None:
    async def walk(client: Client) -> None:
        await _search(client, server.url)
        await _look(client, server.url)
        await _work(client, server.url, film)
        await _learn(client)

    connect(walk)


async def _search(client: Client, url: str) -> None:
    first = await ask(client, "search", query="say:budget", order="time", limit=3)
    rest = await ask(client, "search", query="say:budget", order="time", limit=3, cursor=first["cursor"])
    assert (first["total"], first["videos"], rest["cursor"]) == (5, 1, "")
    hits = first["moments"] + rest["moments"]
    assert [(hit["video_id"], hit["start_seconds"], hit["text"]) for hit in hits] == [
        ("vid_talk", n, f"budget of year {n}") for n in range(5)
    ]
    assert hits[2]["link"] == f"{url}/videos/vid_talk?t=2.000&end=2.900"
    assert "invalid cursor" in await refusal(client, "search", query="other", cursor=first["cursor"])


async def _look(client: Client, url: str) -> None:
    one = await ask(client, "list_videos", limit=1)
    two = await ask(client, "list_videos", limit=1, cursor=one["cursor"])
    names = {video["name"]: video["video_id"] for video in one["videos"] + two["videos"]}
    shots, talk = await ask(client, "describe_video", video_id=names["three shots <b>.mp4"]), names["talk.mp4"]
    assert (shots["duration_seconds"], shots["link"]) == (6.0, f"{url}/videos/{shots['video_id']}")
    assert (await ask(client, "describe_video", video_id=talk))["lines"]["speech"] == 5
    part = {"video_id": talk, "start_seconds": 1.0, "end_seconds": 3.0}
    said = await ask(client, "get_transcript", **part, limit=1)
    more = await ask(client, "get_transcript", **part, limit=1, cursor=said["cursor"])
    assert [m["text"] for m in said["moments"] + more["moments"]] == ["budget of year 1", "budget of year 2"]
    assert more["cursor"] == ""
    picture, cited = (await client.call_tool("get_frame", {"video_id": shots["video_id"], "at_seconds": 3})).content
    assert isinstance(picture, ImageContent)
    assert isinstance(cited, TextContent)
    assert picture.mime_type == "image/jpeg"
    assert f"{url}/videos/{shots['video_id']}?t=3.000" in cited.text
    assert "no video" in await refusal(client, "get_frame", video_id="vid_nowhere", at_seconds=0)


async def _work(client: Client, url: str, film: Path) -> None:
    (added,) = (await ask(client, "add_videos", paths=[str(film)]))["result"]
    again = (await ask(client, "add_videos", paths=[str(film)]))["result"][0]
    assert (again["job_id"], again["new"], added["link"]) == (added["job_id"], False, f"{url}/jobs/{added['job_id']}")
    assert "configured sources" in await refusal(client, "add_videos", paths=["/etc"])
    status = await ask(client, "job_status", job_id=added["job_id"])
    assert (status["state"], status["done"]) == ("waiting", 0)
    assert status["waits_for"]
    assert added["job_id"] in {job["job_id"] for job in (await ask(client, "list_jobs", state="created"))["jobs"]}
    done = (await ask(client, "list_jobs", state="completed"))["jobs"][0]
    span = {"video_id": done["video_id"], "start_seconds": 1.0, "end_seconds": 2.0}
    clip = await ask(client, "make_clip", **span)
    assert (clip["status"], clip["file"]) == ("queued", "")
    assert (await ask(client, "make_clip", **span))["clip_id"] == clip["clip_id"]
    told = await ask(client, "estimate", recipe="text", video_id=done["video_id"])
    assert (told["film_seconds"], told["recipe"]) == (6.0, "text")


async def _learn(client: Client) -> None:
    read = (await client.read_resource("rushes://videos/vid_talk/transcript")).contents[0]
    assert isinstance(read, TextResourceContents)
    assert read.text.splitlines()[1] == "[1.000 - 1.900] budget of year 1"
    with pytest.raises(MCPError, match="no video"):
        await client.read_resource("rushes://videos/vid_nowhere/transcript")
    asked = await client.get_prompt("find_moment", {"question": "How large is the budget?"})
    assert "How large is the budget?" in str(asked.messages[0].content)
    assert GRAMMAR[:40] in str(asked.messages[0].content)


def test_what_deletes_is_there_only_with_its_scope(tmp_path: Path) -> None:
    async def tools(library: Library) -> set[str]:
        async with Client(create(library)) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    def allowed(scopes: str) -> set[str]:
        with Library(tmp_path / "home", options={"mcp_scopes": (scopes, "the test")}) as library:
            return asyncio.run(tools(library))

    assert allowed("add,delete") - allowed("add") == {"cancel_job", "delete_video"}
    assert allowed("add") - allowed("") == {"make_clip", "add_videos"}
    with pytest.raises(Refused, match="unknown scope 'everything'"):
        allowed("everything")


def test_a_change_by_an_agent_is_in_the_audit_log(server: Serving) -> None:
    async def cancel(url: str, job: str) -> Any:
        async with over_http(url) as client:
            return await ask(client, "cancel_job", job_id=job)

    with serving(server.library.folder, token=TOKEN, mcp_scopes="delete") as other:
        job = begin(other.ledger, "unwanted").id
        assert asyncio.run(cancel(other.url, job))["state"] == "cancelled"
        entry = Audit(other.library.home).page(limit=1)[0][0]
    assert (entry.who, entry.address, entry.action, entry.target) == (
        "token", "127.0.0.1", "job changed", f"cancel {job}"
    )  # fmt: skip


def test_over_http_an_agent_needs_what_every_program_needs(server: Serving) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    stranger = {"Accept": "application/json, text/event-stream"}
    friend = stranger | {"Authorization": f"Bearer {TOKEN}"}
    page = friend | {"Origin": "https://evil.example"}
    answers = [server.http.post("/mcp", json=body, headers=told).status_code for told in (stranger, friend, page)]
    assert answers == [401, 200, 403]
    assert server.http.get("/mcp", headers=friend).status_code == 405


def test_every_example_of_the_grammar_is_understood(server: Serving) -> None:
    queries = [line.split("`")[1] for line in GRAMMAR.splitlines() if line.startswith("| `")]
    assert len(queries) > 10
    assert [query for query in queries if server.library.search(query).note] == []


def test_a_tool_that_fails_unexpectedly_tells_the_agent_nothing_of_the_inside(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*_args: Any) -> None:
        raise RuntimeError("/secret/path")

    async def knock() -> str:
        async with over_http(server.url) as client:
            return await refusal(client, "list_videos")

    monkeypatch.setattr(type(server.library.videos), "page", break_down)
    assert "secret" not in json.dumps(asyncio.run(knock()))
