"""Claims whose answer was lost: the leased tasks must be looked up, because nothing else frees them."""

import time

_DOUBT_SECONDS = 30.0  # after a claim without an answer; the server ends one after ten


class UnconfirmedClaims:
    """Calls of `claim` in this process that may have leased tasks of which their worker knows nothing."""

    def __init__(self) -> None:
        self._claims: dict[int, tuple[str, float]] = {}

    def add(self, claim: int, worker: str) -> None:
        """That call failed, and may have been committed."""
        self._claims[claim] = worker, time.monotonic() + _DOUBT_SECONDS

    def of(self, worker: str) -> list[int]:
        """The calls of a worker that are still in doubt."""
        now = time.monotonic()
        self._claims = {claim: (who, until) for claim, (who, until) in self._claims.items() if until > now}
        return [claim for claim, (who, _) in self._claims.items() if who == worker]
