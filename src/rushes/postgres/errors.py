"""Errors of psycopg as errors of the domain."""

import contextlib
import re
from collections.abc import Iterator

import psycopg
from psycopg import errors

from rushes.domain.errors import NoRoom, NotAllowed, RushesError, StoreAway, StoreMissing, StoreRefuses

_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, errors.IdleInTransactionSessionTimeout,
         errors.ReadOnlySqlTransaction)  # fmt: skip


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Raise errors of psycopg as errors of the domain."""
    try:
        yield
    except errors.DiskFull as e:
        raise NoRoom(f"the database cannot be written: {e}") from e
    except errors.InsufficientPrivilege as e:
        raise NotAllowed(f"the database denies access: {e}", "Give this role the permission.") from e
    except _AWAY as e:
        raise _away(e) from e
    except psycopg.Error as e:
        raise RushesError(f"the database failed: {e}") from e


def _away(e: psycopg.Error) -> StoreAway:
    """A server that does not let us in says why in words only: what fails before a session has no code."""
    text = str(e)
    if re.search(r'database "[^"]*" does not exist|no such database', text):
        hint = "Create the database, or correct its name in the store's URL."
        return StoreMissing(f"the database does not exist: {text}", hint)
    if re.search(r'authentication failed|role "[^"]*" does not exist|no pg_hba.conf entry', text):
        return StoreRefuses(f"the database denies access: {text}", "Check user and password in the store's URL.")
    return StoreAway(f"the database does not respond: {text}")
