"""Watching places: what is new there is taken in by itself, with the default recipe unless another is wished for."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rushes.domain.errors import NotFound, Refused
from rushes.library.intake import Added, Wish, take_in
from rushes.sources.port import MISSING, LeftOut
from rushes.sources.watch import Watched
from rushes.wiring import House

LOOK_SECONDS = 5.0  # between two looks: what is still being written has changed by then


def wait(seconds: float) -> bool:
    """Wait, then go on."""
    time.sleep(seconds)
    return True


def watch(
    house: House, places: Sequence[str], wish: Wish, *, once: bool, pause: Callable[[float], bool]
) -> Iterator[Added]:
    """Take in what is new at these places (else at those of the settings), look after look.

    `pause` waits that many seconds and answers whether to go on. With `once`, until everything that is there and
    does not grow any more is taken in. The same content at another place is the same video, and no work is done twice.
    Raises:
        Refused: there is nothing to watch, or the wish itself cannot be had.
        NotFound: a place is not there.
    """
    watched = [Watched(house.source(place)) for place in _checked(house, places)]
    looks = 2 if any(w.source.grows for w in watched) else 1
    while True:
        yield from take_in(house, (found for place in watched for found in place.new()), wish)
        looks -= 1
        if (once and not looks) or not pause(LOOK_SECONDS):
            return


def _checked(house: House, places: Sequence[str]) -> Sequence[str]:
    places = places or [place for place in house.settings.sources.split(",") if place]
    if not places:
        raise Refused("there is nothing to watch", "Name a folder or a bucket, or set sources in rushes.toml.")
    for place in places:
        first = next(iter(house.source(place).look()), None)
        if isinstance(first, LeftOut) and first.reason == MISSING:
            raise NotFound(f"{place}: {first.reason}", "Name a folder with footage, or s3://bucket/prefix.")
    return [place if "://" in place else str(Path(place).absolute()) for place in places]
