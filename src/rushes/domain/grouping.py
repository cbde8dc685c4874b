"""Grouping values by a key."""

from collections.abc import Callable, Iterable
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


def grouped(things: Iterable[T], by: Callable[[T], K]) -> dict[K, list[T]]:
    """The things that have the same key, in the order in which they come."""
    groups: dict[K, list[T]] = {}
    for thing in things:
        groups.setdefault(by(thing), []).append(thing)
    return groups
