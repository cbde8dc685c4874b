"""Access of workers and people: tokens, the key that signs task tokens, the audit log."""

from itertools import islice

import click

from rushes.library.access.audit import Audit
from rushes.library.access.task_tokens import TokenKeys
from rushes.library.access.worker_tokens import WorkerTokens
from rushes.surfaces.cli.command import CliGroup, command
from rushes.surfaces.cli.options import number_option, open_library, text_option
from rushes.surfaces.cli.screen import Column
from rushes.surfaces.cli.session import Session
from rushes.surfaces.words import date_time, parse_ago


@command("worker", "rushes tokens worker render-1")
@click.argument("name")
def worker(session: Session, name: str) -> None:
    """Create a token for workers without other credentials, and show it once.

    Such a worker runs `rushes worker --server ADDRESS` with RUSHES_WORKER_TOKEN. It may take any task on videos, and
    can read the files of its current tasks, nothing else. Any number of workers may share a token.
    """
    home = open_library(session, create=True).home
    token = WorkerTokens(home).create(name)
    Audit(home).write_here("worker token created", name)
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
    """Revoke a worker token.

    Servers notice within 15 seconds. Tasks that its workers hold go to other workers when the leases expire.
    """
    home = open_library(session).home
    WorkerTokens(home).revoke(name)
    Audit(home).write_here("worker token revoked", name)
    session.document({"name": name, "revoked": True})
    session.line(f"the worker token {name} is revoked")


@command("rotate", "rushes tokens rotate")
def rotate(session: Session) -> None:
    """Sign task tokens with a new key from now on.

    Tokens signed with the previous key stay valid, those of older keys do not. Rotate twice to invalidate every token
    that was issued before; other workers then take over their jobs.
    """
    key = TokenKeys(open_library(session).home).rotate()
    session.document({"key": key})
    session.line(f"task tokens are signed with key {key} now")


tokens = CliGroup(
    "tokens", "Create and revoke worker tokens; rotate the key that signs task tokens.", [worker, ls, revoke, rotate]
)


@command("audit", "rushes audit", "rushes audit --since 7d", "rushes audit --since 2026-01-31 --json")
@text_option("--since", "WHEN", "A date, or how long ago: 30m, 24h, 7d.", default="30d")
@number_option("--limit", "Print at most N entries.", 1, 1_000_000, 1000)
def audit(session: Session, since: str, limit: int) -> None:
    """Show who did what, when and from where, newest first.

    Logins and failed ones, deletions, changes to jobs, workers and accounts, and downloads of originals; over HTTP and
    in the terminal. Entries are kept for `audit_days`. In the browser: /audit, for admins.
    """
    found = list(islice(Audit(open_library(session).home).since(parse_ago(since)), limit))
    session.rows("audit", found)
    columns = [Column("when"), Column("who"), Column("from"), Column("action"), Column("what", wide=True)]
    local = session.out.terminal
    session.table(columns, [[date_time(e.at, local=local), e.who, e.address, e.action, e.target] for e in found])
    if not found:
        session.remark("no entries in that time")
