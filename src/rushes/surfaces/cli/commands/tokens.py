"""Tokens of workers that have no other credentials, and the key that signs what they hold."""

import click

from rushes.library.access.audit import Audit
from rushes.library.access.task_tokens import TokenKeys
from rushes.library.access.worker_tokens import WorkerTokens
from rushes.surfaces.cli.command import CliGroup, command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.screen import Column
from rushes.surfaces.cli.session import Session
from rushes.surfaces.words import date_time


@command("worker", "rushes tokens worker render-1")
@click.argument("name")
def worker(session: Session, name: str) -> None:
    """Make a token for workers without other credentials, and show it once.

    Such a worker runs `rushes worker --server ADDRESS` with RUSHES_WORKER_TOKEN. It may take any task of footage, and
    reaches the files of the tasks that it holds, nothing else. Any number of workers may share a token.
    """
    home = open_library(session, create=True).home
    token = WorkerTokens(home).create(name)
    Audit(home).write_here("worker token made", name)
    session.document({"name": name, "token": token})
    session.line(token)


@command("ls", "rushes tokens ls", "rushes tokens ls --json")
def ls(session: Session) -> None:
    """List the tokens of workers, without their secrets."""
    found = WorkerTokens(open_library(session).home).all()
    session.rows("worker_token", found)
    rows = [[token.name, date_time(token.created_at, local=session.out.terminal)] for token in found]
    session.table([Column("name", wide=True), Column("since")], rows)
    if not found:
        session.remark("no worker tokens. Make one: rushes tokens worker NAME")


@command("revoke", "rushes tokens revoke render-1")
@click.argument("name")
def revoke(session: Session, name: str) -> None:
    """Refuse a worker token from now on.

    Servers notice within 15 seconds. What its workers hold goes to others when their leases are over.
    """
    home = open_library(session).home
    WorkerTokens(home).revoke(name)
    Audit(home).write_here("worker token revoked", name)
    session.document({"name": name, "revoked": True})
    session.line(f"the worker token {name} is refused from now on")


@command("rotate", "rushes tokens rotate")
def rotate(session: Session) -> None:
    """Sign task tokens with a new key from now on.

    Tokens of the key before are still accepted, those of older keys are not: rotated twice, every token that was handed
    out before is refused, and its job is done by whoever takes it next.
    """
    key = TokenKeys(open_library(session).home).rotate()
    session.document({"key": key})
    session.line(f"task tokens are signed with key {key} now")


tokens = CliGroup(
    "tokens", "Make and revoke tokens of workers; change the key that signs task tokens.", [worker, ls, revoke, rotate]
)
