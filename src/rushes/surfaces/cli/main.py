"""The command `rushes`: its commands by what people want, and one place where errors become exit codes."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from rushes.domain.errors import RushesError
from rushes.settings import find_home
from rushes.surfaces.cli import errors
from rushes.surfaces.cli.command import Resolved, everywhere, resolved, session_of
from rushes.surfaces.cli.session import Session

# Modules are loaded when their command is used: `rushes --help` and the completion of a shell need no video library.
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "Develop": {
        "run": "run",
        "add": "add",
        "worker": "worker",
        "watch": "watch",
        "estimate": "add",
        "init": "maintenance",
        "up": "up",
    },
    "Look": {
        "ls": "browse",
        "show": "browse",
        "search": "browse",
        "people": "people",
        "clip": "cut",
        "stereo": "stereo",
        "export": "cut",
        "compare": "compare",
        "serve": "serve",
    },
    "Steer": {"jobs": "jobs", "failed": "failed"},
    "Care": {
        "verify": "maintenance",
        "rm": "remove",
        "gc": "maintenance",
        "backup": "maintenance",
        "restore": "maintenance",
        "index": "index",
        "reindex": "maintenance",
        "models": "models",
        "doctor": "about",
        "config": "about",
        "version": "meta",
        "completion": "meta",
    },
}
SENTENCES: Mapping[str, str] = {
    "run": "Develop footage here and now: watchable, searchable, cuttable.",
    "add": "Take footage in and leave the work to a worker.",
    "worker": "Do the work that was added, until told to stop.",
    "estimate": "Say how long a run would take on this machine.",
    "watch": "Take in what is new in folders and buckets, by itself.",
    "init": "Make a home in a folder, for the footage below it.",
    "up": "Try a fleet on this machine: servers and workers in one command.",
    "ls": "List the videos.",
    "show": "Show one video: what it is and what was made of it.",
    "search": "Find what was said, written or seen, to the word.",
    "people": "Who is seen: list, name, merge, split, hide.",
    "compare": "Show what two runs of a video say, side by side.",
    "index": "Bring the search index up to date, or fill it from sidecars.",
    "clip": "Cut a span out, to the frame.",
    "stereo": "3D: look at it in seconds, make it.",
    "export": "Write subtitles, text or shots of a video.",
    "serve": "Open the library in a browser, and to programs over HTTP.",
    "jobs": "Watch and steer jobs.",
    "failed": "Work that gave up: look, retry, put away.",
    "verify": "Read every file and check it; --repair makes damaged ones again.",
    "rm": "Delete videos with all that was made of them; originals stay.",
    "gc": "Free space: what is no longer needed.",
    "backup": "Copy the home, while it is in use if need be.",
    "restore": "Make a home from a backup.",
    "reindex": "Build the search index anew from the results.",
    "models": "The weights on this machine.",
    "doctor": "Check this machine and this home.",
    "config": "The settings in force.",
    "version": "Say which version this is.",
    "completion": "Print the completion script of a shell.",
}


class ReaderLeft(Exception):
    """The reader of a pipe has seen enough. Not an OSError: click would take that for a failure."""


@contextmanager
def _noticing_that_nobody_reads() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as e:
        raise ReaderLeft from e


class Rushes(click.Group):
    """The group of all commands."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Every command, in the order of the help."""
        return [name for group in COMMANDS.values() for name in group]

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """A command, its module loaded now."""
        for group in COMMANDS.values():
            if name in group:
                module = import_module(f"rushes.surfaces.cli.commands.{group[name]}")
                command: click.Command = module.COMMANDS[name]
                return command
        return None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Resolved:
        """A slip of the pen is answered with what was meant."""
        return resolved(super().resolve_command, self, ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """By what people want to do."""
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, SENTENCES[name]) for name in group])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Where --help is printed."""
        with _noticing_that_nobody_reads():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Where a command does its work."""
        with _noticing_that_nobody_reads():
            return super().invoke(ctx)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run and end the process with the exit code that the outcome means."""
        words = [*(args[0] if args else kwargs.get("args") or sys.argv[1:])]
        session = Session(json="--json" in words)  # known before the words are understood, or not
        kwargs |= {"standalone_mode": False, "obj": session}
        with session.closing:
            code = _guarded(lambda: super(Rushes, self).main(*args, **kwargs), session)
        sys.exit(code)


def _guarded(go: Any, session: Session) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without a letter shows a question mark
    try:
        code = go()
        sys.stdout.flush()
    except (BrokenPipeError, ReaderLeft):
        return errors.unread()
    except (KeyboardInterrupt, click.Abort):
        return errors.tell_interrupt(session)
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.ClickException as e:
        return errors.tell_usage(session, e)
    except RushesError as e:
        return errors.tell_known(session, e)
    except Exception as e:  # noqa: BLE001 - the last door: whatever comes here is a bug and is told as one
        logs = find_home(Path.cwd(), session.home or None) / "logs"
        return errors.tell_system(session, e, logs) if isinstance(e, OSError) else errors.tell_bug(session, e, logs)
    return code if isinstance(code, int) else errors.OK


@click.command(
    "rushes",
    cls=Rushes,
    params=everywhere(),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nStart with: rushes run FILM.mp4\nEvery command explains itself: rushes run --help",
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Develops footage overnight, whatever dies: watch it, search it, cut it."""
    session_of(ctx)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
