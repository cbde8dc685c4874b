"""What a request may ask for, and what is refused before anything is submitted."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rushes.domain.errors import Refused
from rushes.domain.task import Finish
from rushes.domain.video import Fingerprint
from rushes.domain.worker import Incarnation
from rushes.home import Home
from rushes.index.deleted_jobs import DELETED
from rushes.jobs.intake import LARGE, JobRequest, job_spec, missing_models, take_in
from rushes.jobs.maintenance.video_removal import retention_rules
from rushes.sources.folder import fingerprint
from rushes.sources.port import FoundFile
from rushes.wiring import open_home

FILM = Fingerprint("film.mp4", 1000, 1)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = open_home(tmp_path / ".rushes")
    yield home
    home.close()


@pytest.mark.parametrize("wanted", [JobRequest(language="klingon"), JobRequest(chunk="0"), JobRequest(chunk="1e3")])
def test_a_request_that_nobody_can_carry_out_is_refused(home: Home, wanted: JobRequest) -> None:
    with pytest.raises(Refused) as refused:
        job_spec(home, FILM, wanted)
    assert refused.value.advice


@pytest.mark.parametrize(("chunk", "seconds"), [("", 60), ("30", 30), ("007", 7), ("large", LARGE[0])])
def test_a_chunk_is_as_long_as_was_asked(home: Home, chunk: str, seconds: int) -> None:
    assert job_spec(home, FILM, JobRequest(chunk=chunk, language="de")).chunk_seconds == seconds


@pytest.mark.parametrize(("keep_days", "days"), [(0, 1), (1, 1), (3, 3)])
def test_files_of_work_in_progress_are_kept_for_a_day_at_least(home: Home, keep_days: int, days: int) -> None:
    kept = home.loaded.over({"keep_days": (keep_days, "the test")})
    rules = retention_rules(Home(home.folder, kept, home.stores))
    assert (rules.keep_days, rules.young_seconds) == (keep_days, days * 86400.0)


def found(home: Home, name: str) -> FoundFile:
    path = home.originals / name
    path.write_bytes(b"a film")
    return FoundFile(fingerprint(path))


def test_what_was_deleted_is_taken_in_again_only_if_it_is_named(home: Home) -> None:
    film, wanted = found(home, "film.mp4"), JobRequest(only=("develop",))
    (taken,) = take_in(home, [film], wanted)
    assert taken.created
    assert taken.job
    worker = Incarnation("w1", "h", "b", 1, "1")
    home.ledger.renew(worker, {}, {})
    (lease,) = home.ledger.claim("w1", [home.ledger.tasks(taken.job.id).rows[0].lane], 1)
    home.ledger.draft(taken.job.id, lease.task, lease.fence, [], '{"video": "vid_a"}')
    home.ledger.complete("w1", [Finish(lease.task, lease.fence)])
    home.records.put(DELETED, home.owner, "vid_a", {"jobs": [taken.job.id], "originals": False, "over": True})
    (left,) = take_in(home, [film], wanted)
    assert "deleted" in left.skipped
    (again,) = take_in(home, [film], wanted, named=[film.path])
    assert again.created
    assert again.job
    assert again.job.id != taken.job.id


def test_a_stage_works_in_the_profile_that_was_asked_for_unless_its_own_options_say_another(home: Home) -> None:
    stage = next(name for name, spec in home.specs.items() if "profile" in spec.options)
    only = JobRequest(only=(stage,))
    assert job_spec(home, FILM, only).options[stage]["profile"] == home.settings.profile
    assert job_spec(home, FILM, replace(only, profile="fast")).options[stage]["profile"] == "fast"
    own = replace(only, profile="fast", options={stage: {"profile": "high_quality"}})
    assert job_spec(home, FILM, own).options[stage]["profile"] == "high_quality"


def test_the_models_that_are_missing_are_those_of_the_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSHES_MODELS", str(tmp_path / "no models"))
    home = open_home(tmp_path / "home")
    wanted = JobRequest(only=("transcribe",))
    lacks = {profile: missing_models(home, replace(wanted, profile=profile)) for profile in ("fast", "high_quality")}
    assert lacks["fast"] != lacks["high_quality"]
    assert missing_models(home, wanted) == missing_models(home, replace(wanted, profile=home.settings.profile))
    home.close()
