"""Opening a plan: the facts of probe become drafts of tasks, and drafts with existing results are adopted."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import quote

from rushes.blobs.manifests import read_manifest
from rushes.blobs.port import Blobs
from rushes.blobs.published import publish_names
from rushes.domain.errors import DamagedBlob, LeaseLost
from rushes.domain.result import Manifest
from rushes.domain.stage import StageSpec
from rushes.domain.task import Draft, Finish, Lease, TaskState, Verdict, trace_of, with_trace
from rushes.domain.video import VideoFacts
from rushes.jobs.maintenance.repair import quarantine
from rushes.jobs.originals import read_facts, source_of
from rushes.ledger.pages import all_tasks
from rushes.ledger.port import Ledger
from rushes.plan.job_names import JobNames
from rushes.plan.planner import JobSpec, job_facts, plan, results_of


@dataclass(frozen=True, slots=True)
class PlanOpener:
    """Writes the plan that the completion of probe will open; given to the worker, which knows no video."""

    ledger: Ledger
    blobs: Blobs
    specs: Mapping[str, StageSpec]
    names: JobNames | None = None

    def __call__(self, lease: Lease, finish: Finish) -> None:
        """Write every page of the plan.

        Raises:
            LeaseLost: somebody else has the task now.
            DamagedBlob: what probe found is damaged; it was set aside, so that probe runs again.
        """
        job = self.ledger.job(lease.job)
        spec = JobSpec.from_text(job.payload)
        key = results_of(lease.spec)["facts"]
        found, facts = self._found(spec.owner, key)
        spec = replace(spec, source=source_of(spec, found))
        planned = plan(job.id, spec, facts, self.specs, lease.spec)
        if trace := trace_of(lease.spec):
            planned = tuple(replace(draft, spec=with_trace(draft.spec, trace)) for draft in planned)
        drafts = self._adopted(spec, planned)
        stem = quote(self.names.stem(spec)) if self.names else ""
        kept = job_facts(spec, facts, job.name, len({draft.chunk for draft in drafts} - {None}), stem)
        for page in range(0, max(1, len(drafts)), self.ledger.batch):
            some = drafts[page : page + self.ledger.batch]
            if self.ledger.draft(job.id, lease.task, finish.fence, some, kept) is not Verdict.OK:
                raise LeaseLost(f"the lease of {lease.task} was lost")

    def check(self, lease: Lease) -> tuple[str, ...]:
        """After the plan is open: what was adopted and is set aside since is made after all; the tasks to announce.

        Until then nobody who clears up could see that this job wants it.
        """
        done = [t for t in all_tasks(self.ledger, lease.job, TaskState.DONE) if t.adopted and t.id != lease.task]
        keys = {task.id: set(results_of(task.spec).values()) for task in done}
        owner = self.ledger.job(lease.job).owner
        known = self.ledger.known(owner, set().union(*keys.values())).keys() if keys else set()
        lost = [task for task, some in keys.items() if not some <= known]
        return self.ledger.revive(lease.job, lost, again=True) if lost else ()

    def _found(self, owner: str, key: str) -> tuple[Manifest, VideoFacts]:
        try:
            manifest = read_manifest(self.blobs, owner, key)
            return manifest, read_facts(self.blobs, owner, manifest)
        except DamagedBlob as e:
            quarantine(self.ledger, self.blobs, owner, key, str(e))
            raise

    def _adopted(self, spec: JobSpec, drafts: tuple[Draft, ...]) -> tuple[Draft, ...]:
        keys = {d.id: set(results_of(d.spec).values()) for d in drafts}
        known = self.ledger.known(spec.owner, set().union(*keys.values())) if drafts else {}
        for d in drafts:
            for key in keys[d.id] if keys[d.id] <= known.keys() else ():
                if known[key].text_sha256:
                    self._publish(spec, d.chunk, key)
        return tuple(replace(d, adopted=keys[d.id] <= known.keys()) for d in drafts)

    def _publish(self, spec: JobSpec, chunk: int | None, key: str) -> None:
        """A text that is there gets its name by this job's path as well: adopted, it will owe none."""
        with suppress(DamagedBlob):  # verify finds it
            manifest = read_manifest(self.blobs, spec.owner, key)
            publish_names(self.blobs, spec.owner, self.names.by_path(spec, chunk, manifest) if self.names else {})
