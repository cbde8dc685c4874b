"""What this machine, this home and this program are: doctor, config, version, completion."""

import sys
from dataclasses import fields

import click
from click.shell_completion import get_completion_class

from rushes.settings import Settings
from rushes.surfaces.cli.opened import opened
from rushes.surfaces.cli.screen import DONE, TROUBLE, Column
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.verb import Group, verb
from rushes.wiring import VERSION


@verb("version", "rushes version", "rushes version --json")
@click.pass_obj
def version(session: Session) -> None:
    """Say which version this is."""
    python = sys.version.split()[0]
    if session.json:
        session.document({"version": VERSION, "python": python})
    else:
        session.out.line(f"rushes {VERSION}", (f"  Python {python}", DONE))


@verb("doctor", "rushes doctor", "rushes doctor --json | jq '.[] | select(.ok == false)'")
@click.pass_obj
def doctor(session: Session) -> int:
    """Check this machine and this home; exit 1 if something needs you."""
    checks = opened(session).doctor()
    if session.json:
        session.document(checks)
    else:
        rows = [[("ok", DONE) if c.ok else ("look", TROUBLE), c.name, c.detail] for c in checks]
        session.out.table([Column(""), Column(""), Column("", wide=True)], rows)
        for check in checks:
            if not check.ok and check.hint:
                session.out.block("do", DONE, f"{check.name}: {check.hint}")
    return 0 if all(c.ok for c in checks) else 1


@verb("show", "rushes config show", "RUSHES_SLOTS=1 rushes config show", "rushes config show --json")
@click.pass_obj
def config_show(session: Session) -> None:
    """Show every setting, its value and where it came from."""
    library = opened(session)
    loaded = library.house.loaded
    rows = [(f.name, getattr(loaded.settings, f.name), loaded.origin[f.name]) for f in fields(Settings)]
    if session.json:
        settings = {name: {"value": value, "origin": origin} for name, value, origin in rows}
        session.document({"home": library.house.home, "settings": settings})
        return
    columns = [Column("setting"), Column("value", wide=True), Column("from")]
    session.out.table(
        columns, [[n, str(v), (origin, DONE) if origin == "default" else origin] for n, v, origin in rows]
    )
    session.remark((f"home {library.house.home}", DONE))


@verb("completion", "rushes completion bash >> ~/.bashrc", "rushes completion fish | source")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    made = get_completion_class(shell)
    assert made
    click.echo(made(ctx.find_root().command, {}, "rushes", "_RUSHES_COMPLETE").source())


config = Group("config", help="The settings in force.", commands=[config_show])
COMMANDS = {"version": version, "doctor": doctor, "config": config, "completion": completion}
