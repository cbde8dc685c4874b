"""Watching places: what is new there is taken in by itself, with the default recipe unless another is wished for."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rushes.domain.errors import NotFound, Refused, TryAgain
from rushes.library.desk import Desk
from rushes.library.intake import Added, Wish, take_in
from rushes.sources.port import MISSING, Found, LeftOut
from rushes.sources.storage_events import Arrival, News
from rushes.sources.watch import Watched
from rushes.telemetry import log
from rushes.wiring import House

LOOK_SECONDS = 5.0  # between two looks: what is still being written has changed by then
SCAN_LOOKS = 60  # where storage events tell, what lies there is listed only every five minutes
_MESSAGES = 100  # batches of messages that one look reads at the most


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
    Uploads that jobs wait for in the home's bucket are told to the ledger.
    Raises:
        Refused: there is nothing to watch, or the wish itself cannot be had.
        NotFound: a place is not there.
    """
    eye = _Eye(house, [Watched(house.source(place)) for place in _checked(house, places)], wish, house.news)
    looks = 2 if any(w.source.grows for w in eye.watched) else 1
    while True:
        yield from eye.look()
        looks -= 1
        if (once and not looks) or not pause(LOOK_SECONDS):
            return


@dataclass(slots=True)
class _Eye:
    """Some places and the news of them, look after look."""

    house: House
    watched: Sequence[Watched]
    wish: Wish
    news: News | None
    _looks: int = field(default=0, init=False)

    def look(self) -> Iterator[Added]:
        """First what was told, then what was not."""
        if self.news:
            yield from self._hear(self.news)
        due = not self.news or self._looks % SCAN_LOOKS == 0
        for place in self.watched:
            if due or place.source.grows:
                yield from self._take_in(place, place.new())
        if due:
            self._sweep()
        self._looks += 1

    def _hear(self, news: News) -> Iterator[Added]:
        """A message is settled when all that it told has been done; else it comes again."""
        for _ in range(_MESSAGES):
            if not (messages := news.receive()):
                return
            for told in messages:
                try:
                    added = [one for arrival in told.arrivals for one in self._met(arrival)]
                except TryAgain as e:
                    log.warning("a storage event is left for later: %s", e)
                    continue
                yield from added
                if not any(isinstance(one.error, TryAgain) for one in added):
                    news.settle([told])

    def _met(self, arrival: Arrival) -> list[Added]:
        if self.house.awaited:
            Desk(self.house).announce(self.house.awaited.met(arrival))
        return [one for place in self.watched for one in self._take_in(place, place.told(arrival))]

    def _sweep(self) -> None:
        try:
            if self.house.awaited:
                Desk(self.house).announce(self.house.awaited.sweep())
        except (TryAgain, FileNotFoundError) as e:
            log.warning("uploads cannot be looked for now: %s", e)

    def _take_in(self, place: Watched, found: Sequence[Found]) -> Iterator[Added]:
        for one in take_in(self.house, found, self.wish):
            if isinstance(one.error, TryAgain):
                place.forget(one.path)
            yield one


def _checked(house: House, places: Sequence[str]) -> Sequence[str]:
    places = places or [place for place in house.settings.sources.split(",") if place]
    if not places and not house.settings.storage_events:
        raise Refused("there is nothing to watch", "Name a folder or a bucket, or set sources in rushes.toml.")
    for place in places:
        first = next(iter(house.source(place).look()), None)
        if isinstance(first, LeftOut) and first.reason == MISSING:
            raise NotFound(f"{place}: {first.reason}", "Name a folder with footage, or s3://bucket/prefix.")
    return [place if "://" in place else str(Path(place).absolute()) for place in places]
