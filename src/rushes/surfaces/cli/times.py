"""Instants of the ledger as people read them: their own time with its zone on a terminal, UTC everywhere else."""

from datetime import datetime

from rushes.surfaces.cli.screen import Screen


def moment(at: str, screen: Screen) -> str:
    """2026-01-31 18:05 CET; in a pipe 2026-01-31T17:05:09Z."""
    return f"{local(at):%Y-%m-%d %H:%M %Z}" if screen.terminal else utc(at)


def utc(at: str) -> str:
    """Without fractions of a second."""
    return f"{at[:19]}Z"


def local(at: str) -> datetime:
    """In the zone of this machine."""
    return datetime.fromisoformat(at).astimezone()


def seconds_between(start: str, end: str) -> float:
    """How long it took."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
