"""Task tokens of workers that are not ours: changing the key that signs them."""

from rushes.library.access.task_tokens import TokenKeys
from rushes.surfaces.cli.command import CliGroup, command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.session import Session


@command("rotate", "rushes tokens rotate")
def rotate(session: Session) -> None:
    """Sign task tokens with a new key from now on.

    Tokens of the key before are still accepted, those of older keys are not: rotated twice, every token that was handed
    out before is refused, and its job is done by whoever takes it next.
    """
    key = TokenKeys(open_library(session).home).rotate()
    session.document({"key": key})
    session.line(f"task tokens are signed with key {key} now")


tokens = CliGroup("tokens", "Change the key that signs task tokens.", [rotate])
