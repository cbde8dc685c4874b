"""The command `rushes`: its commands by purpose; errors become exit codes here."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from rushes import home_folder
from rushes.domain.errors import RushesError
from rushes.home_location import find_home
from rushes.surfaces.cli import errors
from rushes.surfaces.cli.command import SuggestingGroup, global_options, show_help
from rushes.surfaces.cli.session import Session

# Each command: the module that is loaded when it is used (`rushes --help` needs no video library), and what it does.
COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Process": {
        "run": ("run", "Process videos now: make them watchable, searchable and ready to cut."),
        "add": ("run", "Add videos as jobs and leave the work to a worker."),
        "worker": ("worker", "Process the jobs that were added, until stopped."),
        "watch": ("run", "Add new videos in folders and buckets automatically."),
        "stereo": ("stereo", "Make a 3D version of a video, or preview it in seconds."),
        "estimate": ("run", "Estimate how long a run would take on this machine."),
        "rates": ("stereo", "Show how long 3D conversion took, day by day."),
        "init": ("maintenance", "Create a home in a folder, for the videos below it."),
    },
    "Use": {
        "ls": ("browse", "List the videos."),
        "show": ("browse", "Show one video and what was made from it."),
        "search": ("search", "Find what was said, written or seen."),
        "people": ("people", "List, name, merge, split and hide the people seen in videos."),
        "clip": ("clips", "Cut a clip out of a video, exact to the frame."),
        "export": ("clips", "Export subtitles, text or shots of a video."),
        "compare": ("browse", "Show the results of two runs of a video side by side."),
        "select": ("browse", "Choose which run of a video is shown, searched and exported."),
    },
    "Serve": {
        "serve": ("server", "Serve the library to browsers and to programs over HTTP."),
        "ml": ("server", "Serve models to workers and to programs over HTTP."),
        "mcp": ("server", "Let agents search and read the library over the Model Context Protocol."),
        "up": ("server", "Try a fleet on this machine: servers and workers in one command."),
    },
    "Control": {
        "jobs": ("jobs", "List and control jobs."),
        "failed": ("failed", "List, retry or dismiss tasks that failed."),
        "users": ("users", "List, add, repair and remove the accounts of rushes serve."),
        "tokens": ("access", "Create and revoke worker tokens; rotate the key that signs task tokens."),
        "audit": ("access", "Show who did what, when and from where."),
    },
    "Maintain": {
        "doctor": ("machine", "Check this machine and this home."),
        "verify": ("maintenance", "Check every stored file; --repair recreates damaged ones."),
        "rm": ("maintenance", "Delete videos and everything made from them; originals are kept."),
        "gc": ("maintenance", "Free disk space that is no longer needed."),
        "backup": ("maintenance", "Copy the home, even while it is in use."),
        "restore": ("maintenance", "Create a home from a backup."),
        "trust": ("maintenance", "Trust a home or backup that someone else created."),
        "index": ("maintenance", "Update the search index, or fill it from sidecar files."),
        "reindex": ("maintenance", "Rebuild the search index from the results."),
        "migrate": ("maintenance", "Apply store upgrades that older versions cannot work with."),
        "models": ("machine", "List, download, check and time the models on this machine."),
        "config": ("machine", "Show the settings in effect."),
        "version": ("program", "Print the version."),
        "completion": ("program", "Print the completion script for a shell."),
    },
}


class ReaderLeft(Exception):
    """The reader of a pipe has closed it. Not an OSError: click would treat that as a failure."""


@contextmanager
def _raise_reader_left() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as e:
        raise ReaderLeft from e


class Rushes(SuggestingGroup):
    """The group of all commands."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Every command, in the order of the help."""
        return [name for group in COMMANDS.values() for name in group]

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """A command, its module loaded now."""
        for group in COMMANDS.values():
            if name in group:
                command: click.Command = getattr(import_module(f"rushes.surfaces.cli.commands.{group[name][0]}"), name)
                return command
        return None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """By purpose."""
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, sentence) for name, (_, sentence) in group.items()])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Where --help is printed."""
        with _raise_reader_left():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Where a command does its work."""
        with _raise_reader_left():
            return super().invoke(ctx)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command and end the process with its exit code."""
        words = [*(args[0] if args else kwargs.get("args") or sys.argv[1:])]
        session = Session(json="--json" in words)  # errors of parsing are JSON as well
        kwargs |= {"standalone_mode": False, "obj": session}
        with session.closing:
            code = _guarded(lambda: super(Rushes, self).main(*args, **kwargs), session)
        sys.exit(code)


def _guarded(go: Any, session: Session) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows a question mark
    try:
        code = go()
        sys.stdout.flush()
    except (BrokenPipeError, ReaderLeft):
        return errors.stop_writing()
    except (KeyboardInterrupt, click.Abort):
        return errors.report_interrupt(session)
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.ClickException as e:
        return errors.report_usage(session, e)
    except RushesError as e:
        return errors.report_known(session, e)
    except Exception as e:  # noqa: BLE001 - whatever arrives here is a bug and is reported as one
        logs = _logs(session)
        if isinstance(e, OSError):
            return errors.report_os_error(session, e, logs)
        return errors.report_bug(session, e, logs)
    return code if isinstance(code, int) else errors.OK


def _logs(session: Session) -> Path | None:
    """Where a bug is written down: in the home, if that is one to trust."""
    with suppress(RushesError, OSError):
        home = find_home(Path.cwd(), session.home or None)
        home_folder.check(home)
        return home / "logs"
    return None


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - takes longer than the rest of --help

        click.echo(f"rushes {version('rushes')}")
        ctx.exit()


_VERSION = click.Option(
    ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
main = Rushes(
    "rushes",
    help="Makes videos watchable, searchable and easy to cut; work continues after any crash.",
    callback=show_help,
    params=[*global_options(), _VERSION],
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nStart with: rushes run VIDEO.mp4\nHelp for one command: rushes run --help",
)
