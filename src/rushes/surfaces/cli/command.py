"""Commands with examples in their help, and the global options before or after a command."""

import difflib
from collections.abc import Callable, Sequence
from typing import Any

import click

from rushes.surfaces.cli.session import Session

_GLOBAL = "--home DIR  --json  --quiet  --verbose  --no-progress"


def global_options() -> list[click.Option]:
    """The options that every command accepts; they change the session and are not passed on."""
    home = "Home to use (default: the nearest .rushes in this folder or above, else your own)."
    return [
        _option(["--home"], "home", home, metavar="DIR"),
        _option(["--json"], "json", "Print JSON: one document, or one line per message.", is_flag=True),
        _option(["-q", "--quiet"], "quiet", "Print only data and errors.", is_flag=True),
        _option(["-v", "--verbose"], "verbose", "Print more detail, and tracebacks.", is_flag=True),
        _option(["--no-progress"], "progress", "Show no progress bars.", is_flag=True, flag_value=False, default=None),
    ]


def _option(names: list[str], field: str, help: str, **more: Any) -> click.Option:
    def keep(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        if value is not None and value is not (False if field != "progress" else None):
            setattr(session_of(ctx), field, value)

    more.setdefault("default", None)
    return click.Option([*names, f"global_{field}"], help=help, expose_value=False, callback=keep, **more)


def session_of(ctx: click.Context) -> Session:
    """The one session of an invocation."""
    session = ctx.find_root().ensure_object(Session)
    ctx.obj = session
    return session


class CliCommand(click.Command):
    """A command whose help ends with examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.params += _hidden(global_options())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then the global ones in one line."""
        super().format_options(ctx, formatter)
        _write_global_options(formatter)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples, as they are typed."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{' ' * formatter.current_indent}{example}\n")


def _write_global_options(formatter: click.HelpFormatter) -> None:
    with formatter.section("Global options"):
        formatter.write_text(_GLOBAL)


def command(
    name: str, *examples: str, cls: type[CliCommand] = CliCommand
) -> Callable[[Callable[..., Any]], CliCommand]:
    """Make a function, which gets the session first, a command with these examples."""
    return lambda function: click.command(name, cls=cls, examples=examples)(click.pass_obj(function))


Resolved = tuple[str | None, click.Command | None, list[str]]


class SuggestingGroup(click.Group):
    """A group that suggests the closest command when there is none of a name."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Resolved:
        """The command that was named.

        Raises:
            click.UsageError: there is none.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as e:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            hint = f" Did you mean {ctx.command_path} {near[0]}?" if near else ""
            raise click.UsageError(f"unknown command {args[0]!r}.{hint}", ctx) from e


class CliGroup(SuggestingGroup):
    """Commands that belong together, like `rushes jobs ls`; alone it prints its help."""

    def __init__(self, name: str, help: str, commands: Sequence[click.Command]) -> None:
        super().__init__(name, help=help, commands=list(commands), params=_hidden(global_options()), callback=show_help)
        self.invoke_without_command, self.no_args_is_help = True, False

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Its commands, then the global options in one line."""
        self.format_commands(ctx, formatter)
        _write_global_options(formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """How to get help for one of them."""
        formatter.write_paragraph()
        formatter.write_text(f"Help for one command: {ctx.command_path} {self.list_commands(ctx)[0]} --help")

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """In the order in which they are needed."""
        return list(self.commands)


def _hidden(options: list[click.Option]) -> list[click.Parameter]:
    """They are named in one line below the command's own."""
    for option in options:
        option.hidden = True
    return list(options)


@click.pass_context
def show_help(ctx: click.Context) -> None:
    """What a group does without a command."""
    session_of(ctx)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
