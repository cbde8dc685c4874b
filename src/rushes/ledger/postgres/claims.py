"""Claims whose answer was lost: the leased tasks must be looked up, because nothing else frees them."""

import time

DOUBT_SECONDS = 30.0  # after a claim without an answer; the server ends one after ten


class UnconfirmedClaims:
    """Calls of `claim` in this process that may have leased tasks of which their worker knows nothing."""

    def __init__(self) -> None:
        self._claims: dict[int, tuple[str, float]] = {}

    def add(self, claim: int, worker: str) -> None:
        """That call failed, and may have been committed."""
        self._claims[claim] = worker, time.monotonic() + DOUBT_SECONDS

    def of(self, worker: str) -> list[int]:
        """The calls of a worker that are still in doubt."""
        return [claim for claim, (who, _) in list(self._claims.items()) if who == worker]

    def looked(self, worker: str, begun: float) -> None:
        """A look for them that began then found no more: those that no server can be at since are over."""
        for claim, (who, until) in list(self._claims.items()):
            if who == worker and until <= begun:
                self._claims.pop(claim, None)
