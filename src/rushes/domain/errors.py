"""Errors, as one tree by what happens next; each has a hint for people."""

from typing import ClassVar

from rushes.domain.redaction import redact
from rushes.domain.text import clean_text


class RushesError(Exception):
    """An error that is reported to people in plain words."""

    hint: ClassVar[str] = "This looks like a bug in rushes. Please report it with the log."
    exit_code: ClassVar[int] = 1
    verdict: ClassVar[str] = "may work next time"

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(redact(clean_text(message)))
        self.advice = redact(clean_text(hint)) if hint else self.hint


class TryAgain(RushesError):
    """The work may succeed later: back off and try again."""

    hint = "Nothing to do: it is retried automatically."
    exit_code = 5


class NeverWorks(RushesError):
    """The work cannot succeed without a change: a dead letter at once."""

    hint = "Change the input or the settings, then retry."
    exit_code = 7
    verdict = "will not work without a change"


class LeaseLost(RushesError):
    """Another worker has the task now: stop and write nothing."""

    hint = "Nothing to do: another worker continues."
    exit_code = 5


class JobCancelled(RushesError):
    """The job was cancelled: stop and write nothing."""

    hint = "Undo with: rushes jobs retry JOB"


class Drained(RushesError):
    """The worker is stopping: the task is given back; this is not a failure."""

    hint = "Nothing to do: another worker takes the task."
    exit_code = 5


class Refused(RushesError):
    """The request is invalid or not possible."""

    hint = "See --help."
    exit_code = 2
    verdict = "works after you fix the cause"


class NotFound(Refused):
    """It does not exist, or belongs to another owner."""

    hint = "List videos with: rushes ls. List jobs with: rushes jobs ls"
    exit_code = 6

    def __init__(self, message: str, hint: str | None = None, what: str = "") -> None:
        """`what` is missing: video, job, task, ...; each surface says where these are listed."""
        super().__init__(message, hint)
        self.what = what


class Requested(RushesError):
    """The command is stored; the worker that holds the film carries it out."""

    hint = "Nothing to do. Follow it with: rushes jobs show JOB"
    exit_code = 0
    verdict = "is carried out by another worker"


class NotAllowed(Refused):
    """A credential is missing or has too few permissions."""

    hint = "Check the owner and the credentials."
    exit_code = 4


class ForgedToken(Refused):
    """The task token was not signed by this server, or was changed."""

    hint = "Use the token exactly as Dequeue returned it."


class ExpiredToken(Refused):
    """The task token has expired."""

    hint = "Take a job again with Dequeue."


class ForeignToken(Refused):
    """The task token belongs to another owner, queue or job."""

    hint = "Use the token that Dequeue returned with this job."


class StaleToken(Refused):
    """The attempt of this task token is over: it is done, was given back, or another worker has it."""

    hint = "Drop the work: the job is done, or another worker does it."


class OverLimit(Refused):
    """A limit was exceeded."""

    hint = "Free some space or raise the limit, then run the same command again."
    exit_code = 8


class StoreAway(TryAgain):
    """A store does not respond; this never counts as a failed attempt."""

    hint = "Check the disk of the home, or the server. Work continues automatically."


class Throttled(StoreAway):
    """A store throttles requests, and retries with back-off did not help."""

    hint = "Wait a moment. If it persists, raise the limits of the table or the queue."
    retry_after = 5


class StoreMissing(StoreAway):
    """The server responds, but the bucket or database does not exist."""

    hint = "Create it, or correct its name in the settings. Work continues automatically."
    exit_code = 6


class StoreRefuses(StoreAway):
    """A store rejects the credentials."""

    hint = "Check the credentials and their permissions. Then retry the tasks that failed: rushes failed retry"
    exit_code = 4
    verdict = "works after you fix the cause"


class NoCredentials(StoreRefuses):
    """No credentials for a store were found, or their service does not respond."""

    hint = "Configure credentials. Work continues automatically."


class EngineAway(StoreAway):
    """No inference service responds; this never counts as a failed attempt."""

    hint = "Check the inference service (rushes ml) and the setting inference. Work continues automatically."


class AnswerPending(Drained):
    """An asynchronous endpoint has not answered yet: the task waits without occupying a slot."""

    hint = "Nothing to do: the task continues when the answer arrives."

    def __init__(self, message: str, hint: str | None = None, delay: float = 5.0) -> None:
        """`delay`: seconds after which the answer is looked for, if no event tells of it before."""
        super().__init__(message, hint)
        self.delay = delay


class InferenceFailed(TryAgain):
    """A model failed in an inference service; this counts as a failed attempt."""

    hint = "See the log of the inference service. The task is retried, and fails for good after four attempts."


class RegistryAway(TryAgain):
    """A model could not be downloaded."""

    hint = "Check the network, then: rushes models pull"


class NoRoom(Drained):
    """The disk is nearly full: work pauses after the running chunks and resumes automatically."""

    hint = "Free some space (rushes gc helps). Work resumes automatically."
    exit_code = 8


class Interrupted(Drained):
    """Ctrl-C stopped the work before it was finished."""

    hint = "Run the same command again to continue."
    exit_code = 130


class Terminated(Drained):
    """SIGTERM stopped the work before it was finished."""

    hint = "Run the same command again to continue."
    exit_code = 143


class BadMedia(NeverWorks):
    """The file is not a video that can be read completely."""

    hint = "Try to play the file in another player. If it is damaged, copy or export it again."


class OverBudget(BadMedia):
    """Reading the structure of a file takes far more time, memory or bytes than its size explains."""

    hint = "The file may be malicious. If you trust it, remux it with another program."


class SourceMissing(NeverWorks):
    """The original is missing."""

    hint = "Restore the file (or mount its disk), then: rushes failed retry"
    verdict = "works after you fix the cause"


class SourceChanged(NeverWorks):
    """The original has changed since it was added."""

    hint = "Process it as a new video: rushes run PATH"
    verdict = "works after you fix the cause"


class ModelMissing(NeverWorks):
    """A model that a stage needs is not on this machine."""

    hint = "Download it with: rushes models pull"
    verdict = "works after you fix the cause"


class OtherModel(Refused):
    """An inference service has another version of the model."""

    hint = "Install the same version of rushes and of the model on the inference service and on its clients."


class SlotDied(TryAgain):
    """The process that ran the task crashed."""

    hint = "See the last lines of its log. The task is retried, and fails for good after four attempts."


class SlotTimedOut(SlotDied):
    """The task exceeded its time limit and was stopped."""

    hint = "Raise task_seconds, or use smaller chunks with --chunk."


class SlotTooBig(SlotDied):
    """The task exceeded its memory limit and was stopped."""

    hint = "Raise slot_memory_mb, or run fewer slots."


class KillsItsWorker(NeverWorks):
    """The task lost its worker ten times and is not retried automatically."""

    hint = "See its log, then: rushes failed retry --class KillsItsWorker"


class SandboxMissing(Refused):
    """Slots cannot be sandboxed as the settings require, so no task runs."""

    hint = 'rushes doctor lists the layers that this kernel supports; sandbox = "auto" uses those.'


class DamagedBlob(TryAgain):
    """A stored file is damaged: its content does not match its hash."""

    hint = "Repair with: rushes verify --repair"


class WrongHome(Refused):
    """The home cannot be opened safely from here."""

    hint = "Check the home with: rushes doctor"
    exit_code = 7


def is_final(error: BaseException) -> bool:
    """Whether the work is never retried automatically: it cannot succeed, or access was denied."""
    return is_final_kind(type(error))


def is_final_kind(kind: type[BaseException]) -> bool:
    """The same of a kind of error."""
    return issubclass(kind, NeverWorks | NotAllowed | StoreRefuses) and not issubclass(kind, NoCredentials)
