"""The options that describe a job."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from rushes.domain.errors import Refused
from rushes.library import RECIPES, JobRequest

paths_argument = click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")


def request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that describe a job."""
    options = [
        click.option("--recipe", default="", metavar="NAME", help=f"What to make: {', '.join(RECIPES)}."),
        click.option(
            "--only",
            multiple=True,
            metavar="STAGE",
            help="Only these stages and what they need, e.g. transcript or shots.",
        ),
        click.option("--skip", multiple=True, metavar="STAGE", help="Leave these stages out, e.g. transcribe."),
        click.option("--profile", default="", metavar="NAME", help="Models to use: fast, balanced or high_quality."),
        click.option(
            "--language", default="", metavar="CODE", help="Spoken language, e.g. en or de (default: detect)."
        ),
        click.option("--chunk", default="", metavar="SECONDS", help="Length of a chunk, or 'large' (default: 60)."),
        click.option("--priority", default=0, metavar="N", help="Jobs with a higher priority run first."),
        click.option("--again", default=0, metavar="N", help="Recompute as take N; earlier results are kept."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def request_of(words: dict[str, Any]) -> JobRequest:
    """The request that the options make."""
    chunk = words["chunk"]
    if chunk and chunk != "large" and not (chunk.isascii() and chunk.isdigit() and int(chunk) > 0):
        raise Refused(f"invalid --chunk {chunk!r}: use seconds or 'large'", "For example: --chunk 30")
    return JobRequest(**{**words, "only": names(words["only"]), "skip": names(words["skip"])})


def names(given: Sequence[str]) -> tuple[str, ...]:
    """Names given one by one, or separated by commas."""
    return tuple(name for one in given for name in one.split(",") if name)
