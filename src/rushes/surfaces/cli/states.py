"""The states of jobs in people's words and colours."""

from rushes.domain.job import Job, JobState
from rushes.surfaces.cli.screen import DONE, NOW, TROUBLE

WORDS = {
    JobState.CREATED: ("waiting", ""),
    JobState.CHUNKING: ("probing", NOW),
    JobState.RUNNING: ("running", NOW),
    JobState.COMPLETED: ("done", DONE),
    JobState.FAILED: ("failed", TROUBLE),
    JobState.CANCELLED: ("cancelled", DONE),
}


STATES = {word: state for state, (word, _) in WORDS.items()}  # the inverse, for options


def state_part(state: str) -> tuple[str, str]:
    """A state's word and its style."""
    return WORDS[JobState(state)] if state in set(JobState) else (state, "")


def job_part(job: Job) -> tuple[str, str]:
    """The same for a job, which may be paused besides."""
    open_states = (JobState.CREATED, JobState.CHUNKING, JobState.RUNNING)
    return ("paused", NOW) if job.paused and job.state in open_states else state_part(job.state)
