"""Watching the remembered places while a server runs: what is new there is taken in."""

import threading

from rushes.domain.errors import Refused, RushesError
from rushes.home import Home
from rushes.library.watching.paths import Paths
from rushes.library.watching.watch import LOOK_SECONDS, PlaceWatcher
from rushes.library.watching.watched_places import remembered_request
from rushes.records.port import Record
from rushes.sources.watch import WatchedSource
from rushes.telemetry import BugLog, Outage, log

LAST_SECONDS = 3.0  # that a look may still take: a place that does not answer holds nobody up


class PathWatcher:
    """Looks at every remembered place, look after look; places come and go between two looks."""

    def __init__(self, home: Home) -> None:
        self._home, self._paths = home, Paths(home)
        self._watchers: dict[tuple[str, int], PlaceWatcher] = {}  # by id and version of the record
        self._outage, self._bugs = Outage("the watched places cannot be scanned"), BugLog()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="paths", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; a look that has begun may take a little to end."""
        self._over.set()
        self._thread.join(LAST_SECONDS)

    def look(self) -> None:
        """Take in what is new at each place."""
        records = {(record.id, record.version): record for record in self._paths.all()}
        self._watchers = {key: watcher for key, watcher in self._watchers.items() if key in records}
        refused: RushesError | None = None
        for key, record in records.items():
            try:
                if key not in self._watchers:
                    self._watchers[key] = self._watcher(record)
                self._look_at(self._watchers[key])
            except Refused as e:  # what is asked there is not possible any more; other places are looked at
                refused = e
            if self._over.is_set():
                return
        if refused:
            raise refused

    def _look_at(self, watcher: PlaceWatcher) -> None:
        for added in watcher.scan():
            if added.created or added.error:
                log.info("%s: %s", added.path, added.error or "added")

    def _watcher(self, record: Record) -> PlaceWatcher:
        place, wanted = str(record.doc["path"]), remembered_request(record.doc)
        return PlaceWatcher(self._home, {place: WatchedSource(self._home.source(place))}, wanted, None)

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                self.look()
                self._outage.ended()
            except RushesError as e:
                self._outage.began(f"{e}. {e.advice}")
            except Exception as e:  # noqa: BLE001 - the places are looked at until the end
                if not self._over.is_set():  # else the home is closed already
                    self._bugs.add(e)
