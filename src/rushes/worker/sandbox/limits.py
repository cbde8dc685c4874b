"""Kernel limits of a slot: generous, but finite."""

import resource

_PROCESSES, _PROCESSES_OF_USER = 1024, 16_384


def limit(address: int, file: int, cpu_seconds: int, *, alone: bool) -> None:
    """At most so many bytes of addresses and of one file, so much time of the processor, and no core files.

    Threads and processes are counted for this slot alone in a user namespace, else for everything that its user runs.
    """
    _at_most(resource.RLIMIT_AS, address)
    _at_most(resource.RLIMIT_FSIZE, file)
    _at_most(resource.RLIMIT_CPU, cpu_seconds)
    _at_most(resource.RLIMIT_CORE, 0)
    _at_most(resource.RLIMIT_NPROC, _PROCESSES if alone else _PROCESSES_OF_USER)


def _at_most(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (least, least))
