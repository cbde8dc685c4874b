"""The outbox: outcomes that must reach the ledger; one that cannot be written fails only its own task."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rushes.domain.errors import DamagedBlob, LeaseLost, NoRoom, RushesError, StoreAway, is_final
from rushes.domain.task import Failure, Finish, Lease, Verdict, retry_delay
from rushes.ledger.port import WorkLedger
from rushes.telemetry import log
from rushes.worker import commands, inputs
from rushes.worker.hints import Hints
from rushes.worker.slots import jitter

AGAIN = (LeaseLost, StoreAway, NoRoom)  # not the fault of the entry: the core sends it again


@dataclass(frozen=True, slots=True)
class Outbox:
    """Writes outcomes to the ledger and reports those that were written."""

    ledger: WorkLedger
    open_plan: Callable[[Lease, Finish], None]
    report: inputs.Report
    hints: Hints
    about: Callable[[Lease], dict[str, object]]

    def complete(self, worker: str, entries: Sequence[commands.Complete]) -> None:
        """Done, all in one transaction; if that cannot be written, one by one.

        Raises:
            StoreAway, NoRoom: to be sent again.
        """
        try:
            reply = self.ledger.complete(worker, [x.finish for x in entries])
        except AGAIN:
            raise
        except Exception as e:  # noqa: BLE001 - whatever one result holds must not end the others
            return self._complete_each(worker, entries, e)
        for entry, verdict in zip(entries, reply.verdicts, strict=True):
            self._written(entry, verdict)
        self.hints.settle(x.lease.task for x in entries)
        return self.hints.announce(reply.ready)

    def open_plan_of(self, worker: str, entry: commands.Complete) -> bool:
        """Write the plan before the task that opens it is completed; a plan that cannot be made is a failure.

        Raises:
            StoreAway, NoRoom: to be sent again.
        """
        try:
            self.open_plan(entry.lease, entry.finish)
        except (StoreAway, NoRoom):
            raise
        except LeaseLost:  # of this one task: lost, or its job was cancelled
            self.report(inputs.OutboxEntryWritten(entry, Verdict.LOST))
            return False
        except Exception as e:  # noqa: BLE001 - one plan that cannot be made must not end the worker
            log.warning("the plan cannot be made", exc_info=True, extra=self.about(entry.lease))
            self._fail(worker, entry, e)
            return False
        return True

    def send(self, worker: str, entry: commands.Fail | commands.GiveBack) -> None:
        """Failed, or given back: then it is announced, unless it waits for its time.

        Raises:
            StoreAway, NoRoom: to be sent again.
        """
        lease = entry.lease
        if isinstance(entry, commands.GiveBack):
            self.ledger.give_back(worker, [(lease.task, lease.fence)], entry.reason, entry.delay)
            self.report(inputs.OutboxEntryWritten(entry))
            log.info("given back: %s", entry.reason, extra=self.about(lease))
            self.hints.settle([lease.task])
            return self.hints.announce([lease.task] if not entry.delay else [], lease.fence + 1)
        log.warning("%s: %s", entry.failure.kind, entry.failure.message, extra=self.about(lease))
        return self._write(worker, entry, entry.failure, entry.delay)

    def _complete_each(self, worker: str, entries: Sequence[commands.Complete], error: Exception) -> None:
        if len(entries) > 1:
            for entry in entries:
                self.complete(worker, [entry])
            return
        log.error("the outcome cannot be written", exc_info=error, extra=self.about(entries[0].lease))
        self._fail(worker, entries[0], error)

    def _fail(self, worker: str, entry: commands.Complete, error: Exception) -> None:
        known = error if isinstance(error, RushesError) else RushesError(f"{type(error).__name__}: {error}")
        failure = Failure(type(error).__name__, str(known), known.advice, known.verdict)
        delay = None if is_final(error) else retry_delay(entry.lease.failures + 1, jitter())
        if isinstance(error, DamagedBlob) and delay is not None:
            delay = 0.0  # it was quarantined: the next attempt makes it again
        self._write(worker, entry, failure, delay)

    def _write(self, worker: str, entry: commands.OutboxEntry, failure: Failure, delay: float | None) -> None:
        lease = entry.lease
        failure = replace(failure, at=datetime.now(UTC).isoformat(), retry_count=lease.failures)
        try:
            verdict = self.ledger.fail(worker, lease.task, lease.fence, failure, delay)
        except AGAIN:
            raise
        except Exception as e:  # noqa: BLE001 - text that the store cannot hold
            log.error("the failure cannot be written as it is", exc_info=e, extra=self.about(lease))
            verdict = self.ledger.fail(worker, lease.task, lease.fence, _plain(failure), delay)
        self._written(entry, verdict)
        self.hints.settle([lease.task])

    def _written(self, entry: commands.OutboxEntry, verdict: Verdict) -> None:
        self.report(inputs.OutboxEntryWritten(entry, verdict))
        if verdict is not Verdict.OK:
            log.warning("refused: the task is %s", verdict.value, extra=self.about(entry.lease))
        elif isinstance(entry, commands.Complete):
            made = "adopted" if entry.finish.adopted else f"done in {entry.finish.seconds or 0.0:.1f} s"
            log.info(made, extra=self.about(entry.lease))


def _plain(failure: Failure) -> Failure:
    """The same in ASCII, which every store can hold."""
    lines = tuple(map(_ascii, failure.lines))
    return replace(failure, kind=_ascii(failure.kind), message=_ascii(failure.message), lines=lines)


def _ascii(text: str) -> str:
    return text.replace("\x00", "").encode("ascii", "backslashreplace").decode("ascii")
