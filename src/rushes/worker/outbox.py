"""Letters: bookkeeping that must reach the ledger; one that cannot be written fails its own task and no other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rushes.domain.errors import DamagedBlob, LeaseLost, NeverWorks, NoRoom, RushesError, StoreAway
from rushes.domain.task import Failure, Finish, Lease, Verdict, retry_delay
from rushes.ledger.port import Ledger
from rushes.telemetry import log
from rushes.worker import commands, inputs
from rushes.worker.hints import Hints
from rushes.worker.slots import jitter

AGAIN = (LeaseLost, StoreAway, NoRoom)  # no fault of the letter: the core posts it again


@dataclass(frozen=True, slots=True)
class Outbox:
    """Writes outcomes to the ledger and tells what came of it."""

    ledger: Ledger
    open_plan: Callable[[Lease, Finish], None]
    tell: Callable[[inputs.Input], None]
    hints: Hints
    about: Callable[[Lease], dict[str, object]]

    def complete(self, worker: str, letters: Sequence[commands.Complete]) -> None:
        """Done, all in one transaction; if that cannot be written, one by one.

        Raises:
            StoreAway, NoRoom: to be posted again.
        """
        try:
            reply = self.ledger.complete(worker, [x.finish for x in letters])
        except AGAIN:
            raise
        except Exception as e:  # noqa: BLE001 - whatever one result holds must not end the others
            return self._complete_each(worker, letters, e)
        for letter, said in zip(letters, reply.verdicts, strict=True):
            self._settled(letter, said)
        self.hints.settle(x.lease.task for x in letters)
        return self.hints.announce(reply.ready)

    def opened(self, worker: str, letter: commands.Complete) -> bool:
        """Write the plan before the task that opens it is completed; a plan that cannot be made is a failure.

        Raises:
            StoreAway, NoRoom: to be posted again.
        """
        try:
            self.open_plan(letter.lease, letter.finish)
        except (StoreAway, NoRoom):
            raise
        except LeaseLost:  # of this one task: lost, or its job was cancelled
            self.tell(inputs.OutboxEntryWritten(letter))
            return False
        except Exception as e:  # noqa: BLE001 - one plan that cannot be made must not end the worker
            log.warning("the plan failed", exc_info=True, extra=self.about(letter.lease))
            self._fail(worker, letter, e)
            return False
        return True

    def post(self, worker: str, letter: commands.Fail | commands.GiveBack) -> None:
        """Failed, or handed back: then others are told at once.

        Raises:
            StoreAway, NoRoom: to be posted again.
        """
        lease = letter.lease
        if isinstance(letter, commands.GiveBack):
            self.ledger.give_back(worker, [(lease.task, lease.fence)], letter.reason)
            self.tell(inputs.OutboxEntryWritten(letter))
            log.info("given back: %s", letter.reason, extra=self.about(lease))
            self.hints.settle([lease.task])
            return self.hints.announce([lease.task])
        log.warning("%s: %s", letter.failure.kind, letter.failure.message, extra=self.about(lease))
        return self._write(worker, letter, letter.failure, letter.delay)

    def _complete_each(self, worker: str, letters: Sequence[commands.Complete], error: Exception) -> None:
        if len(letters) > 1:
            for letter in letters:
                self.complete(worker, [letter])
            return
        log.error("the outcome cannot be written", exc_info=error, extra=self.about(letters[0].lease))
        self._fail(worker, letters[0], error)

    def _fail(self, worker: str, letter: commands.Complete, error: Exception) -> None:
        said = error if isinstance(error, RushesError) else RushesError(f"{type(error).__name__}: {error}")
        failure = Failure(type(error).__name__, str(said), said.advice, said.verdict)
        delay = None if isinstance(error, NeverWorks) else retry_delay(letter.lease.failures + 1, jitter())
        if isinstance(error, DamagedBlob) and delay is not None:
            delay = 0.0  # it was set aside: the next attempt makes it anew
        self._write(worker, letter, failure, delay)

    def _write(self, worker: str, letter: commands.OutboxEntry, failure: Failure, delay: float | None) -> None:
        lease = letter.lease
        try:
            said = self.ledger.fail(worker, lease.task, lease.fence, failure, delay)
        except AGAIN:
            raise
        except Exception as e:  # noqa: BLE001 - text that the store cannot hold
            log.error("the failure cannot be written as it is", exc_info=e, extra=self.about(lease))
            said = self.ledger.fail(worker, lease.task, lease.fence, _plain(failure), delay)
        self._settled(letter, said)
        self.hints.settle([lease.task])

    def _settled(self, letter: commands.OutboxEntry, said: Verdict) -> None:
        self.tell(inputs.OutboxEntryWritten(letter))
        if said is not Verdict.OK:
            log.warning("refused: the task is %s", said.value, extra=self.about(letter.lease))


def _plain(failure: Failure) -> Failure:
    """The same in letters that every store can hold."""
    lines = tuple(map(_ascii, failure.lines))
    return Failure(_ascii(failure.kind), _ascii(failure.message), failure.hint, failure.verdict, lines, failure.signal)


def _ascii(text: str) -> str:
    return text.replace("\x00", "").encode("ascii", "backslashreplace").decode("ascii")
