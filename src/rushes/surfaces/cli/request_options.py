"""The options that say what is wanted of footage."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from rushes.domain.errors import Refused
from rushes.library import JobRequest
from rushes.plan.recipes import RECIPES

paths_argument = click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")


def wishes(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what is wanted of footage."""
    options = [
        click.option("--recipe", default="", metavar="NAME", help=f"What is wanted: {', '.join(RECIPES)}."),
        click.option(
            "--only",
            multiple=True,
            metavar="STAGE",
            help="Only these stages, like transcript or shots, and what they need.",
        ),
        click.option("--skip", multiple=True, metavar="STAGE", help="Without these stages, like transcribe."),
        click.option("--profile", default="", metavar="NAME", help="Models: fast, balanced or high_quality."),
        click.option("--language", default="", metavar="CODE", help="What is spoken, like en or de (else found out)."),
        click.option("--chunk", default="", metavar="SECONDS", help="Length of a chunk, or 'large'."),
        click.option("--priority", default=0, metavar="N", help="Higher ones first."),
        click.option("--again", default=0, metavar="TAKE", help="Make it anew as take 1, 2, ...; nothing is deleted."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def wish_of(words: dict[str, Any]) -> JobRequest:
    """The wish that the options say."""
    chunk = words["chunk"]
    if chunk and chunk != "large" and not (chunk.isascii() and chunk.isdigit() and int(chunk) > 0):
        raise Refused(f"--chunk {chunk!r} is neither seconds nor 'large'", "For example: --chunk 30")
    return JobRequest(**{**words, "only": names(words["only"]), "skip": names(words["skip"])})


def names(given: Sequence[str]) -> tuple[str, ...]:
    """Names that were given one by one or with commas between them."""
    return tuple(name for one in given for name in one.split(",") if name)
