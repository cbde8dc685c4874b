"""Commands that need no home: version, completion."""

import sys
from importlib.metadata import version as version_of

import click
from click.shell_completion import get_completion_class

from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.screen import DONE
from rushes.surfaces.cli.session import Session


@command("version", "rushes version", "rushes version --json")
def version(session: Session) -> None:
    """Print the version."""
    ours, python = version_of("rushes"), sys.version.split()[0]
    session.document({"version": ours, "python": python})
    session.line(f"rushes {ours}", (f"  Python {python}", DONE))


@command("completion", "rushes completion bash >> ~/.bashrc", "rushes completion fish | source")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(session: Session, shell: str) -> None:
    """Print the completion script for a shell."""
    made = get_completion_class(shell)
    assert made
    script = made(click.get_current_context().find_root().command, {}, "rushes", "_RUSHES_COMPLETE").source()
    if session.json:
        session.document({"shell": shell, "script": script})
    else:
        click.echo(script)
