"""Turns into a server that ends with its parent: takes the server's user, then executes its program.

It runs by its path with the standard library alone, which takes 10 ms.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, ends_by: int, user: int, group: int, argv: list[str]) -> None:
    """Become `argv`, as `user` unless that is negative; `ends_by` comes when the parent ends."""
    if user >= 0:
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    if sys.platform == "linux":  # after the change of user, which clears it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ends_by)
    if os.getppid() != parent:  # it ended before we asked
        sys.exit("the process that started this server has ended")
    os.execv(argv[0], argv)  # noqa: S606 - our own argument list


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:5]]
    main(numbers[0], numbers[1], numbers[2], numbers[3], sys.argv[5:])
