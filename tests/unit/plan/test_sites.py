"""What reads an original is planned for the machines that see it; all else for every machine."""

from dataclasses import replace

from rushes.domain.stage import Scope, StageSpec
from rushes.domain.video import Fingerprint
from rushes.plan.planner import JobSpec, first_task, results_of

PROBE = StageSpec("probe", 1, Scope.VIDEO, ("facts",), reads_source=True, opens_plan=True)
SPEC = JobSpec("me", Fingerprint("/films/a.mp4", 1, 1, 1), ("probe",))


def test_a_task_that_reads_the_original_is_bound_to_its_site() -> None:
    bound = replace(SPEC, source=replace(SPEC.source, site="studio"))
    assert first_task("job_a", SPEC, PROBE).lane == "cpu"
    assert first_task("job_a", bound, PROBE).lane == "cpu@studio"
    assert first_task("job_a", bound, replace(PROBE, reads_source=False)).lane == "cpu"


def test_the_same_path_on_two_sites_is_two_questions() -> None:
    specs = {
        first_task("job_a", replace(SPEC, source=replace(SPEC.source, site=site)), PROBE).spec for site in ("a", "b")
    }
    assert len(specs) == 2
    assert len({results_of(spec)["facts"] for spec in specs}) == 2
