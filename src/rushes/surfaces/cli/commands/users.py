"""Accounts for the browser: ls, add, password, remove, sessions. Works even if nobody can log in."""

import sys

import click

from rushes.domain.errors import Refused
from rushes.library import needed
from rushes.surfaces.cli.command import CliGroup, command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.screen import Column
from rushes.surfaces.cli.session import Session
from rushes.surfaces.words import date_time, plural

with needed("serve"):
    from rushes.library.access.accounts import Accounts, check_password


@command("ls", "rushes users ls", "rushes users ls --json")
def ls(session: Session) -> None:
    """List the accounts, which of them are admins, and how many browsers are logged in."""
    found = _accounts(session).all()
    session.rows("user", found)
    columns = [Column("name", wide=True), Column("role"), Column("browsers", right=True), Column("since")]
    rows = [[a.name, "admin" if a.admin else "user", str(a.sessions), _when(session, a.created_at)] for a in found]
    session.table(columns, rows)
    if not found:
        session.remark("no accounts: everyone on this machine has access. Create one: rushes users add NAME")


@command("add", "rushes users add ada", "rushes users add bert --admin", "pass show rushes | rushes users add ada")
@click.argument("name")
@click.option("--admin", is_flag=True, help="May also drain workers and read the audit log. The first user always may.")
def add(session: Session, name: str, admin: bool) -> None:
    """Create an account for the browser.

    The command prompts for the password, or reads it from a pipe; it never appears on the command line, where others
    could read it. As soon as there is an account, everyone has to log in.
    """
    accounts = _accounts(session)
    account = accounts.create(name, _password(session, f"Password for {name}"), admin=admin)
    accounts.audit.write_here("account added", name)
    _report(session, f"{name} can log in now{', as an admin' if account.admin else ''}", user=name, admin=account.admin)


@command("password", "rushes users password ada", "pass show rushes | rushes users password ada")
@click.argument("name")
def password(session: Session, name: str) -> None:
    """Change a password, for example a forgotten one.

    The command prompts for the new one, or reads it from a pipe. Every browser of the account is logged out.
    """
    accounts = _accounts(session)
    accounts.change_password(name, _password(session, f"New password for {name}"))
    accounts.audit.write_here("password changed", name)
    _report(session, f"the password of {name} is changed, and every browser is logged out", user=name)


@command("remove", "rushes users remove ada", "rushes users remove ada --yes")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def remove(session: Session, name: str, yes: bool) -> None:
    """Delete an account and log its browsers out; videos and jobs stay.

    Without any account, everyone on this machine has access again after the next start of the server.
    """
    accounts = _accounts(session)
    if not yes:
        if session.json or not sys.stdin.isatty():
            raise Refused("cannot ask for confirmation: not a terminal", "Pass --yes.")
        click.confirm(f"Delete the account {name}?", abort=True)
    accounts.remove(name)
    accounts.audit.write_here("account removed", name)
    _report(session, f"{name} can no longer log in", user=name)


@command("sessions", "rushes users sessions", "rushes users sessions ada", "rushes users sessions ada --end")
@click.argument("name", default="", metavar="[NAME]")
@click.option("--end", is_flag=True, help="Log out every browser of NAME.")
def sessions(session: Session, name: str, end: bool) -> None:
    """List the browsers that are logged in, or log those of a user out."""
    accounts = _accounts(session)
    if end:
        _end(session, accounts, name)
        return
    found = list(accounts.sessions(name))
    session.rows("session", found)
    columns = [Column("user", wide=True), Column("from"), Column("since"), Column("until")]
    session.table(columns, [[s.account, s.address, _when(session, s.since), _when(session, s.until)] for s in found])
    if not found:
        session.remark("no browser is logged in")


def _end(session: Session, accounts: Accounts, name: str) -> None:
    if not name:
        raise Refused("--end needs the name of a user", "For example: rushes users sessions ada --end")
    count = accounts.end_sessions(name)
    accounts.audit.write_here("sessions ended", name)
    _report(session, f"{plural(count, 'browser')} of {name} logged out", user=name, ended=count)


def _accounts(session: Session) -> Accounts:
    return Accounts(open_library(session).home)


def _password(session: Session, question: str) -> str:
    """From a prompt that shows nothing, or the first line of a pipe.

    Raises:
        Refused: it is too short.
    """
    if sys.stdin.isatty() and not session.json:
        text = str(click.prompt(question, hide_input=True, confirmation_prompt=True))
    else:
        text = sys.stdin.readline().rstrip("\r\n")
    check_password(text)
    return text


def _when(session: Session, at: str) -> str:
    return date_time(at, local=session.out.terminal)


def _report(session: Session, sentence: str, **doc: object) -> None:
    session.document(doc)
    session.line(sentence)


users = CliGroup(
    "users", "List, add, repair and remove the accounts of rushes serve.", [ls, add, password, remove, sessions]
)
