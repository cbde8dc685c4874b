"""Options that several commands share, and opening the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from rushes import tracing
from rushes.domain.errors import NotFound
from rushes.files import make_private
from rushes.library import RECIPES, Library
from rushes.surfaces.cli.session import Session
from rushes.telemetry import RotatingLog, log_to, stop_logging

if TYPE_CHECKING:
    from rushes.library import JobRequest

LIMIT = 100  # rows on a page of a list
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Overrides = Mapping[str, tuple[str, Any]]  # option -> setting and value; None leaves it as it is
NO_OVERRIDES: Overrides = MappingProxyType({})


def text_option(name: str, metavar: str, help: str, default: str = "") -> Decorator:
    """An option whose value is a text."""
    return click.option(name, default=default, metavar=metavar, help=help)


def number_option(name: str, help: str, least: int, most: int | None = None, default: int | None = None) -> Decorator:
    """An option whose value is a number."""
    shown = default is not None
    return click.option(
        name, default=default, show_default=shown, type=click.IntRange(least, most), metavar="N", help=help
    )


def together(*options: Decorator) -> Decorator:
    """Options that belong together, in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


paths_argument = click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
page_options = together(
    number_option("--limit", "Print at most N.", 1, 1000, LIMIT),
    number_option("--page", "Print page N.", 1, default=1),
    text_option("--cursor", "CURSOR", "Continue after an earlier list (for programs)."),
)
chunk_option = text_option("--chunk", "SECONDS", "Length of a chunk, or 'large' (default: 60).")
slots_option = number_option("--slots", "Process N chunks at the same time.", 1)
_OPTION = "An option of a stage, e.g. develop.target_fps=5 or read_text.languages=en+de."
_ONLY = "Only these stages and what they need, e.g. transcript or shots."
request_options = together(
    text_option("--recipe", "NAME", f"What to make: {', '.join(RECIPES)}."),
    click.option("--only", multiple=True, metavar="STAGE", help=_ONLY),
    click.option("--skip", multiple=True, metavar="STAGE", help="Leave these stages out, e.g. transcribe."),
    text_option("--profile", "NAME", "Models to use: fast, balanced or high_quality."),
    text_option("--language", "CODE", "Spoken language, e.g. en or de (default: detect)."),
    chunk_option,
    click.option("--option", "stage_options", multiple=True, metavar="STAGE.NAME=VALUE", help=_OPTION),
    click.option("--priority", default=0, metavar="N", help="Jobs with a higher priority run first."),
    click.option("--again", default=0, metavar="N", help="Recompute as take N; earlier results are kept."),
)


class Share(click.ParamType[float]):
    """A part of all, as a percentage."""

    name = "share"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """How it is written."""
        return "PERCENT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Between 0 and 1."""
        try:
            share = float(str(value).removesuffix("%")) / 100
        except ValueError:
            share = 0.0
        if not 0 < share <= 1:
            self.fail(f"{value!r} is not a percentage. Write it as 1% or 0.5%.", param, ctx)
        return share


class PartOf(click.ParamType[tuple[int, int]]):
    """One of several parts."""

    name = "part"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """How it is written."""
        return "N/OF"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Which one, and of how many."""
        number, _, of = str(value).partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            self.fail(f"{value!r} is not a part. Write the second of eight as 2/8.", param, ctx)
        return int(number), int(of)


def cursor_of(page: int, cursor: str, following: Callable[[str], str]) -> str:
    """Where a page begins; `following` answers the cursor after a page, "" at the end.

    Raises:
        NotFound: there are not so many pages.
    """
    for number in range(1, page):
        if not (cursor := following(cursor)):
            raise NotFound(f"there is no page {page}", f"The last page is {number}.")
    return cursor


def more_remark(command: str, limit: int, usual: int, page: int) -> str:
    """How to see the next page."""
    return f"more: {command}{f' --limit {limit}' if limit != usual else ''} --page {page + 1}"


def request_of(words: dict[str, Any]) -> JobRequest:
    """The request that the options make."""
    from rushes.library import JobRequest, parse_options  # noqa: PLC0415 - not for commands that make no request

    options = parse_options(words["stage_options"])
    return JobRequest(**{**words, "only": names(words["only"]), "skip": names(words["skip"]), "stage_options": options})


def names(given: Sequence[str]) -> tuple[str, ...]:
    """Names given one by one, or separated by commas."""
    return tuple(name for one in given for name in one.split(",") if name)


def open_library(
    session: Session,
    *,
    create: bool = False,
    logs_to_stderr: bool = False,
    over: Overrides = NO_OVERRIDES,
    places: Sequence[str] = (),
) -> Library:
    """Open the chosen home; logs go to a file there, so that they do not disturb progress bars.

    A home that was named with --home and does not exist is not created by commands that only read.
    """
    tracing.start(_process())
    session.closing.callback(tracing.stop)
    create = create or not session.home
    options = {name: (value, option) for option, (name, value) in over.items()}
    library = session.closing.enter_context(
        Library(session.home or None, create=create, options=options, process=_process(), places=places)
    )
    level = "debug" if session.verbose else library.settings.log_level
    to = None if logs_to_stderr or session.verbose else _log_file(library.folder / "logs")
    if to:
        session.closing.callback(to.close)
    log_to(to, level, _process())
    session.closing.callback(stop_logging)
    return library


def _process() -> str:
    """The command: worker, serve, jobs ls."""
    context = click.get_current_context(silent=True)
    return context.command_path.partition(" ")[2] if context else "library"


def _log_file(folder: Path) -> RotatingLog | None:
    try:
        make_private(folder)
        return RotatingLog(folder / "rushes.log")
    except OSError:
        return None
