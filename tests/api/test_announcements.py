"""Whatever makes tasks ready again also announces them: where hints wait in a queue, nobody looks without one."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from rushes.domain.job import JobCommand, JobState
from rushes.domain.task import Failure
from rushes.home import Home
from rushes.jobs.control import announce
from rushes.jobs.intake import JobRequest, job_spec, wake
from rushes.library.watching.watch import hand_over
from rushes.sources.folder import fingerprint
from rushes.transport.poll import Poll
from rushes.transport.port import Transport
from rushes.transport.redis import RedisHints
from tests.api.kit import WORKER, Serving, begin, enter

_fresh = itertools.count()


class Queue(Poll):
    """Hints stay until somebody takes them."""

    queues = True


@pytest.fixture(params=["a queue", "valkey"])
def hints(request: pytest.FixtureRequest, server: Serving) -> Iterator[Transport]:
    hints: Transport = Queue()
    if request.param == "valkey":
        hints = RedisHints(request.getfixturevalue("valkey_server").url, f"announced{next(_fresh)}")
    server.library.home.__dict__["transport"] = hints
    yield hints
    hints.close()


def _dead(home: Home) -> str:
    """A job whose first task has given up."""
    job = begin(home.ledger, "dead").id
    enter(home.ledger)
    (lease,) = home.ledger.claim(WORKER, ["cpu"], 1, [f"{job}.probe"])
    home.ledger.fail(WORKER, lease.task, lease.fence, Failure("BadMedia", "broken", "", ""), None)
    assert home.ledger.job(job).state is JobState.FAILED
    return job


def _cancelled(home: Home) -> str:
    job = begin(home.ledger, "cancelled").id
    home.ledger.control(job, JobCommand.CANCEL)
    return job


def _paused(home: Home) -> str:
    job = begin(home.ledger, "paused").id
    home.ledger.control(job, JobCommand.PAUSE)
    return job


def _moved_back(server: Serving, job: str) -> None:
    home, film = server.library.home, server.library.home.folder / "film.mp4"
    film.write_bytes(b"")
    hand_over(home, job_spec(home, fingerprint(film), JobRequest()), home.ledger.job(job))


Act = Callable[[Serving, str], object]
WAYS: dict[str, tuple[Callable[[Home], str], Act]] = {
    "Library.retry": (_dead, lambda s, job: s.library.jobs.retry(job)),
    "Library.retry of a cancelled job": (_cancelled, lambda s, job: s.library.jobs.retry(job)),
    "Library.resume": (_paused, lambda s, job: s.library.jobs.resume(job)),
    "Library.retry_failed": (_dead, lambda s, _job: s.library.jobs.failed.retry_all()),
    "asked for again, failed": (_dead, lambda s, job: wake(s.library.home, s.ledger.job(job))),
    "asked for again, cancelled": (_cancelled, lambda s, job: wake(s.library.home, s.ledger.job(job))),
    "asked for again, paused": (_paused, lambda s, job: wake(s.library.home, s.ledger.job(job))),
    "moved back": (_cancelled, _moved_back),
    "API, job": (_dead, lambda s, job: s.post(f"/api/v1/jobs/{job}/retry")),
    "API, resume": (_paused, lambda s, job: s.post(f"/api/v1/jobs/{job}/resume")),
    "API, step": (_dead, lambda s, job: s.post(f"/api/v1/tasks/{job}.probe/retry")),
    "API, dead letters": (_dead, lambda s, _job: s.post("/api/v1/failed/retry")),
    "page of a job": (_dead, lambda s, job: s.http.post(f"/jobs/{job}", data={"do": "retry"})),
    "page of a job, resume": (_paused, lambda s, job: s.http.post(f"/jobs/{job}", data={"do": "resume"})),
    "page of jobs": (_dead, lambda s, job: s.http.post("/jobs/some", data={"do": "retry", "job": job})),
    "page of dead letters": (_dead, lambda s, _job: s.http.post("/failed/retry", data={"only": "BadMedia"})),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_ready_again_is_announced(server: Serving, hints: Transport, way: str) -> None:
    ready, act = WAYS[way]
    job = ready(server.library.home)
    assert hints.missing("cpu", [f"{job}.probe"]) == (f"{job}.probe",)
    act(server, job)
    (task,) = server.ledger.tasks(job).rows
    assert task.state == "ready"
    assert hints.missing("cpu", [f"{job}.probe"]) == ()


def test_a_stage_that_is_not_known_here_is_left_to_others(server: Serving, hints: Transport) -> None:
    announce(server.library.home, ["job_a.unheard_of", "job_a.probe"])
    assert hints.missing("cpu", ["job_a.unheard_of", "job_a.probe"]) == ("job_a.unheard_of",)
