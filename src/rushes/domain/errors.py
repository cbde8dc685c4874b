"""What can go wrong, as one tree by what happens next; every error carries a hint for people."""

from typing import ClassVar


class RushesError(Exception):
    """Something that people are told about in plain words."""

    hint: ClassVar[str] = "This looks like a bug in rushes: please report it with the log."
    exit_code: ClassVar[int] = 1
    verdict: ClassVar[str] = "may work next time"

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.advice = hint or self.hint


class TryAgain(RushesError):
    """The work may succeed later: back off and try again."""

    hint = "Nothing to do: it is tried again by itself."
    exit_code = 5


class NeverWorks(RushesError):
    """The work cannot succeed as it is: a dead letter at once."""

    hint = "Change the input or the settings, then retry."
    exit_code = 7
    verdict = "will not work as it is"


class LeaseLost(RushesError):
    """Somebody else has the task now: stop and write nothing."""

    hint = "Nothing to do: another worker goes on with it."
    exit_code = 5


class JobCancelled(RushesError):
    """The job was cancelled: stop and write nothing."""

    hint = "Bring it back with: rushes jobs retry JOB"


class Drained(RushesError):
    """The worker is stopping: the task is given back and counts as nothing."""

    hint = "Nothing to do: the next worker takes it at once."
    exit_code = 5


class Refused(RushesError):
    """The caller asked for something that cannot be done as asked."""

    hint = "See --help."
    exit_code = 2
    verdict = "works after you act"


class NotFound(Refused):
    """What was asked for does not exist (for this owner)."""

    hint = "List what there is with: rushes ls, or rushes jobs ls"
    exit_code = 6

    def __init__(self, message: str, hint: str | None = None, what: str = "") -> None:
        """`what` is missing: video, job, task, ...; each surface says where these are listed."""
        super().__init__(message, hint)
        self.what = what


class NotAllowed(Refused):
    """A credential is missing or does not reach this far."""

    hint = "Check the owner and the credentials."
    exit_code = 4


class OverLimit(Refused):
    """A limit of this home or machine stands against it."""

    hint = "Make room or raise the limit, then run the same command again."
    exit_code = 8


class StoreAway(TryAgain):
    """A store did not answer; never a failure of the work itself."""

    hint = "Check that the home's disk (or the server) is there; work goes on by itself."


class StoreMissing(StoreAway):
    """The server answers, and has no such bucket or database."""

    hint = "Create it, or correct its name in the settings; work goes on by itself."
    exit_code = 6


class StoreRefuses(StoreAway):
    """A store does not know our credentials, or they do not reach that far."""

    hint = "Check the credentials and what they may do; work goes on by itself."
    exit_code = 4


class RegistryAway(TryAgain):
    """The weights could not be fetched: the network or the registry did not give them."""

    hint = "Check the network, then: rushes models pull"


class NoRoom(Drained):
    """The disk is nearly full: intake stops at a chunk boundary and resumes by itself."""

    hint = "Free some space (rushes gc helps); work resumes by itself."
    exit_code = 8


class Interrupted(Drained):
    """Ctrl-C ended the work before it was finished."""

    hint = "Run the same command again: it goes on."
    exit_code = 130


class Terminated(Drained):
    """SIGTERM ended the work before it was finished."""

    hint = "Run the same command again: it goes on."
    exit_code = 143


class BadMedia(NeverWorks):
    """The file is not footage that can be opened safely and completely."""

    hint = "Play the file in another player; if it is damaged, copy or export it again."


class SourceMissing(NeverWorks):
    """The original is not where it was."""

    hint = "Put the file back (or mount the disk), then: rushes failed retry"
    verdict = "works after you act"


class SourceChanged(NeverWorks):
    """The original is not the file that was taken in."""

    hint = "Run it again as a new video: rushes run PATH"
    verdict = "works after you act"


class ModelMissing(NeverWorks):
    """The weights that a stage needs are not on this machine."""

    hint = "Fetch them with: rushes models pull"
    verdict = "works after you act"


class SlotDied(TryAgain):
    """The child process that ran the work ended without an answer."""

    hint = "The last lines of its log say more; a file that does it every time is dead-lettered."


class SlotTimedOut(SlotDied):
    """The work ran longer than its limit and was ended."""

    hint = "Raise task_seconds, or choose smaller chunks with --chunk."


class SlotTooBig(SlotDied):
    """The work used more memory than its limit and was ended."""

    hint = "Raise slot_memory_mb, or run fewer slots."


class KillsItsWorker(NeverWorks):
    """The task lost its worker ten times: it is not tried again by itself."""

    hint = "Look at its log, then: rushes failed retry --class KillsItsWorker"


class DamagedBlob(TryAgain):
    """A stored file does not have the bytes that its name promises."""

    hint = "Repair with: rushes verify --repair"


class WrongHome(Refused):
    """The home cannot be opened safely from here."""

    hint = "Read the message; rushes doctor shows the state of the home."
    exit_code = 7
