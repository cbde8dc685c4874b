"""Writes docs/reference and openapi/ from the program, docs/documents.md from the tests; --check says what is stale."""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import Field, fields
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import document_clauses
import openapi_contracts
from document_clauses import table
from mcp.server import MCPServer
from pydantic import BaseModel

from rushes.domain.errors import RushesError
from rushes.library import Library
from rushes.settings import Settings
from rushes.surfaces.cli.main import COMMANDS, main
from rushes.surfaces.mcp.server import create as create_mcp
from rushes.surfaces.server.app import create

FOLDER = Path(__file__).resolve().parent.parent / "docs"
NOTE = "<!-- Made by scripts/make_reference.py from the program itself; change it there. -->\n"

CODES = {
    0: "success, also when there was nothing to do",
    1: "failure, or a bug",
    2: "the command or its options are invalid, or it is not possible",
    3: "finished, but some files or chunks failed",
    4: "a credential is missing",
    5: "temporary: the same command may work later",
    6: "not found",
    7: "permanent failure: running it again does not help",
    8: "refused by a limit (disk, size, length)",
    130: "stopped by Ctrl-C after running chunks were finished; the same command continues",
    143: "the same after SIGTERM",
}
MESSAGES = {
    "status": "progress of a running stage (or `total`) of a job, at most once a second",
    "stage": "a stage of a job has finished",
    "job": "`add`: a path and its job",
    "worker": "`worker`: the first line: lanes and slots",
    "waiting": "`worker`, `serve`: the store does not respond yet: why, and how many seconds the command waits for it",
    "task": "`worker`: how one attempt ended: done, found (the result existed), failed, dead or given back",
    "skipped": "`run`, `add`: a file was skipped, and why; not an error",
    "film": "`stereo make`: a finished video: its path, size, frames and format",
    "part": "`up`: a server or worker has started, for the first time or again",
    "part_ended": "`up`: a server or worker has ended: why, and when it is restarted",
    "up": "`up`: everything runs; the home and the settings that use it, without passwords",
    "serving": "`serve`: it listens: its address, whether access is open, and where to create the first account",
    "metrics": "`worker --metrics`: the address of its health and metrics",
    "grpc": "`serve --grpc`: where it listens for gRPC, and its queues",
    "check": "`doctor`: one check of this machine or home",
    "estimate": "`estimate`: one file",
    "failure": "`failed ls`: one class of dead letters",
    "rate": "`failed rates`: how often one stage failed and was retried",
    "user": "`users ls`: one account",
    "session": "`users sessions`: one browser that is logged in",
    "worker_token": "`tokens ls`: one token for workers without credentials",
    "audit": "`audit`: one entry, newest first",
    "removed": "`rm`: one deleted video",
    "model": "`models ls`: one model",
    "event": "`jobs events`: one numbered fact of a job's history",
    "output": "`jobs events --output`: one thing that an attempt reported",
    "error": "one file, chunk or stage failed; the rest continues",
    "summary": "the last line: the outcome, with `code` and, after an interruption, `resumable: true`",
    "exit_error": "the last line when the command itself failed: `code`, `kind`, `message`, `hint`",
}


def pages() -> dict[str, str]:
    """Every page by its path below docs."""
    made = {"cli": _cli(), "settings": _settings(), "errors": _errors(), "http": _http()}
    more = {"reference/mcp.json": _mcp(), "documents.md": document_clauses.page()}
    contracts = {f"../openapi/{name}": text for name, text in _contracts().items()}
    return {f"reference/{name}.md": text for name, text in made.items()} | more | contracts


@cache
def _contracts() -> Mapping[str, str]:
    return openapi_contracts.contracts()


def _cli() -> str:
    parts = ["# Commands\n", NOTE, _usage("rushes", main)]
    for title, group in COMMANDS.items():
        parts.append(f"## {title}\n")
        for name in group:
            command = main.get_command(click.Context(main), name)
            assert command
            parts += _command(f"rushes {name}", command)
    parts.append("## Output\n")
    parts.append(
        "Data goes to stdout, progress and messages to stderr. A terminal gets tables, colour and progress bars; a "
        "pipe gets plain lines. `NO_COLOR` is respected. `--json` prints one document; lists and long-running commands "
        "print one JSON object per line, with its kind in `message_type`. Lines of long-running commands have `time` "
        "and `level`, like log lines. Times in JSON are UTC:\n"
    )
    parts.append(table(("message_type", "meaning"), [(f"`{name}`", words) for name, words in MESSAGES.items()]))
    parts += ["## Exit codes\n", "An unknown code is a failure.\n"]
    parts.append(table(("code", "meaning"), [(str(code), words) for code, words in CODES.items()]))
    return "\n".join(parts)


def _command(path: str, command: click.Command) -> Iterator[str]:
    subs = getattr(command, "commands", {})
    yield f"### {path}\n"
    yield _usage(path, command)
    for name, sub in subs.items():
        yield f"#### {path} {name}\n"
        yield _usage(f"{path} {name}", sub)


def _usage(path: str, command: click.Command) -> str:
    ctx = click.Context(command, info_name=path, max_content_width=80, terminal_width=80)
    ctx.help_option_names = ["-h", "--help"]
    return f"```\n{command.get_help(ctx)}\n```\n"


def _settings() -> str:
    words = (
        "Highest precedence first: the environment, `rushes.toml` in the home, the user's own `rushes.toml`, the "
        "default. `rushes config show` prints every value in effect and where it comes from. `RUSHES_HOME` works like "
        "`--home`.\n"
    )
    example = '```toml\n# rushes.toml\nprofile = "high_quality"\nslots = 2\n```\n'
    names = table(("name", "default", "meaning", "environment"), [_setting(f) for f in fields(Settings)])
    return "\n".join(["# Settings\n", NOTE, words, example, names])


def _setting(field: Field[Any]) -> tuple[str, ...]:
    names = [f"RUSHES_{field.name.upper()}", *field.metadata["aliases"]]
    default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    shown = f"`{default}`" if default else ""
    return f"`{field.name}`", shown, field.metadata["doc"], " ".join(f"`{n}`" for n in names)


def _errors() -> str:
    words = "One class hierarchy, by what happens next. Each error has a meaning, a hint and an exit code.\n"
    titles = ("error", "is a", "means", "do", "verdict", "exit")
    return "\n".join(["# Errors\n", NOTE, words, table(titles, [_error(kind) for kind in tree()])])


def tree(kind: type[RushesError] = RushesError) -> Iterator[type[RushesError]]:
    """Every error, parents first, in the order in which they are written down."""
    yield kind
    for sub in kind.__subclasses__():
        if sub.__module__ == RushesError.__module__:
            yield from tree(sub)


def _error(kind: type[RushesError]) -> tuple[str, ...]:
    parent = "" if kind is RushesError else f"`{kind.__base__.__name__}`" if kind.__base__ else ""
    means = (kind.__doc__ or "").split("\n")[0]
    return f"`{kind.__name__}`", parent, means, kind.hint, kind.verdict, str(kind.exit_code)


@cache
def _http() -> str:
    words = (
        "Every operation of `/openapi.json`, by its id; ids are stable, because clients are generated from them. "
        "Errors are `application/problem+json`. HEAD works wherever GET does, except for event streams.\n"
    )
    with TemporaryDirectory() as folder, Library(Path(folder) / "home") as library:
        paths = create(library).openapi()["paths"]
    found = [(told, method, path) for path, methods in paths.items() for method, told in methods.items()]
    tags = dict.fromkeys(told["tags"][0] for told, _, _ in found)
    titles, parts = ("operation", "request", "what it does"), []
    for tag in tags:
        parts += [f"## {tag}\n", table(titles, [_operation(*one) for one in found if one[0]["tags"][0] == tag])]
    return "\n".join(["# HTTP\n", NOTE, words, *parts])


def _operation(told: dict[str, Any], method: str, path: str) -> tuple[str, ...]:
    return f"`{told['operationId']}`", f"`{method.upper()} {path}`", told["description"].partition("\n")[0]


@cache
def _mcp() -> str:
    """What agents are told of: tools with their schemas, resources and prompts, with every scope."""
    scopes = {"mcp_scopes": ("add,delete", "the reference")}
    with TemporaryDirectory() as folder, Library(Path(folder) / "home", options=scopes) as library:
        server = create_mcp(library)
        with ThreadPoolExecutor(1) as thread:  # a test runner may have a loop of its own in this one
            told = thread.submit(asyncio.run, _told(server)).result()
    return json.dumps(told, indent=1, sort_keys=True) + "\n"


async def _told(server: MCPServer[Any]) -> dict[str, Any]:
    lists: dict[str, Sequence[BaseModel]] = {
        "tools": await server.list_tools(),
        "resources": await server.list_resources(),
        "resource_templates": await server.list_resource_templates(),
        "prompts": await server.list_prompts(),
    }
    dumped = {name: [one.model_dump(mode="json", exclude_none=True) for one in some] for name, some in lists.items()}
    return {"instructions": server.instructions, **dumped}


def run(*, check: bool) -> int:
    """Write the pages, or say which are stale."""
    stale = [name for name, text in pages().items() if not _same(FOLDER / name, text)]
    for name in stale:
        if check:
            sys.stderr.write(f"docs/{name} is stale: run scripts/make_reference.py\n")
        else:
            (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
            (FOLDER / name).write_text(pages()[name], "utf-8")
    return int(check and bool(stale))


def _same(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text("utf-8") == text


if __name__ == "__main__":
    sys.exit(run(check="--check" in sys.argv[1:]))
