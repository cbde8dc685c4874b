"""A command that teaches: one sentence, its options, examples; some options hold everywhere, before and after it."""

import difflib
from collections.abc import Callable, Sequence
from typing import Any

import click

from rushes.surfaces.cli.session import Session

_EVERYWHERE = "--home DIR  --json  --quiet  --verbose  --no-progress"


def everywhere() -> list[click.Option]:
    """The options that every command takes; they change the session and are not passed on."""
    return [
        _option(["--home"], "home", "The home to use, else the nearest .rushes upwards, else your own.", metavar="DIR"),
        _option(["--json"], "json", "JSON for programs: one document, or a line per message.", is_flag=True),
        _option(["-q", "--quiet"], "quiet", "Only the data and the errors.", is_flag=True),
        _option(["-v", "--verbose"], "verbose", "More detail, and tracebacks.", is_flag=True),
        _option(["--no-progress"], "progress", "No bars.", is_flag=True, flag_value=False, default=None),
    ]


def _option(names: list[str], field: str, help: str, **more: Any) -> click.Option:
    def keep(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        if value is not None and value is not (False if field != "progress" else None):
            setattr(session_of(ctx), field, value)

    more.setdefault("default", None)
    return click.Option([*names, f"everywhere_{field}"], help=help, expose_value=False, callback=keep, **more)


def session_of(ctx: click.Context) -> Session:
    """The one session of an invocation."""
    session = ctx.find_root().ensure_object(Session)
    ctx.obj = session
    return session


class Verb(click.Command):
    """A command with examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.params += _hidden(everywhere())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then those that hold everywhere in one line."""
        super().format_options(ctx, formatter)
        _tell_everywhere(formatter)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples, as they are typed."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{' ' * formatter.current_indent}{example}\n")


def _tell_everywhere(formatter: click.HelpFormatter) -> None:
    with formatter.section("Everywhere"):
        formatter.write_text(_EVERYWHERE)


def verb(name: str, *examples: str) -> Callable[[Callable[..., Any]], Verb]:
    """Make a function a command with these examples."""
    return click.command(name, cls=Verb, examples=examples)


Resolved = tuple[str | None, click.Command | None, list[str]]


def resolved(
    resolve: Callable[[click.Context, list[str]], Resolved], group: click.Group, ctx: click.Context, args: list[str]
) -> Resolved:
    """The command that was named.

    Raises:
        click.UsageError: there is none; names the one that looks most like it.
    """
    try:
        return resolve(ctx, args)
    except click.UsageError as e:
        near = difflib.get_close_matches(args[0], group.list_commands(ctx), 1)
        hint = f" Did you mean {ctx.command_path} {near[0]}?" if near else ""
        raise click.UsageError(f"there is no command {args[0]!r}.{hint}", ctx) from e


class Group(click.Group):
    """Commands that belong together: `rushes jobs ls`; alone it shows them."""

    def __init__(self, name: str, help: str, commands: Sequence[click.Command]) -> None:
        super().__init__(name, help=help, commands=list(commands), params=_hidden(everywhere()), no_args_is_help=False)
        self.invoke_without_command = True
        self.callback = _show_help

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Its commands, then the options that hold everywhere in one line."""
        self.format_commands(ctx, formatter)
        _tell_everywhere(formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Where to read on."""
        formatter.write_paragraph()
        formatter.write_text(f"Every command explains itself: {ctx.command_path} {self.list_commands(ctx)[0]} --help")

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """In the order in which they are needed."""
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Resolved:
        """A slip of the pen is answered with what was meant."""
        return resolved(super().resolve_command, self, ctx, args)


def _hidden(options: list[click.Option]) -> list[click.Parameter]:
    """Named in one line below the command's own."""
    for option in options:
        option.hidden = True
    return list(options)


@click.pass_context
def _show_help(ctx: click.Context) -> None:
    session_of(ctx)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
