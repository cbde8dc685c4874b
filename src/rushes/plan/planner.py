"""The planner: recipe + what probe found -> tasks with needs, ids and result keys.

Pure, so that any worker writes the same plan.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from rushes.domain.errors import NeverWorks
from rushes.domain.keys import JSON, canonical, digest, result_key, task_id, video_id
from rushes.domain.span import Span
from rushes.domain.stage import Scope, StageSpec, stage_of
from rushes.domain.task import ANY_ENGINE, STUB, Draft, Need
from rushes.domain.text import clean_text
from rushes.domain.video import Fingerprint, VideoFacts
from rushes.domain.worker import bound_lane
from rushes.plan.grid import grid, trial_grid


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a job asks, as its payload carries it: everything that decides the plan but what probe will find."""

    owner: str
    source: Fingerprint
    stages: tuple[str, ...]
    options: Mapping[str, Mapping[str, JSON]] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    profile: str = "balanced"
    chunk_seconds: int = 60
    chunk_bytes: int = 0
    take: int = 0  # of --again: nothing is deleted
    stub: tuple[str, ...] = ()  # stages whose models are played by the stub engine, and those that build on them
    trial: bool = False  # a few seconds from the middle, to learn how fast this machine is

    def to_text(self) -> str:
        """The payload."""
        return canonical(asdict(self)).decode("ascii")

    @staticmethod
    def from_text(text: str) -> "JobSpec":
        """The inverse of to_text.

        Raises:
            NeverWorks: it is not one.
        """
        try:
            doc = json.loads(text)
            doc["source"] = Fingerprint.from_json(doc["source"])
            doc["stages"] = tuple(doc["stages"])
            doc["stub"] = tuple(doc.get("stub", ()))
            return JobSpec(**doc)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise NeverWorks(f"the job's request cannot be read: {e!r}", "Submit the video again.") from e


Keys = Mapping[str, str]  # result keys by output


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task together with its question, while the plan is being made."""

    stage: str
    chunk: int | None
    keys: Keys


Planned = Mapping[str, Sequence[PlannedTask]]  # by stage
Inputs = Mapping[str, Sequence[str]]  # result keys by `stage.output`


def first_task(job: str, job_spec: JobSpec, stage: StageSpec, needs: Sequence[Need] = ()) -> Draft:
    """The task a job begins with. Probe asks about the file as it lies there: its content is not known yet."""
    question = {"source": asdict(job_spec.source), **_stage_question(stage, job_spec)}
    subject = f"{job_spec.source.path}\n{job_spec.source.size}\n{job_spec.source.mtime_ns}"
    keys = {o: result_key(subject, question | {"output": o}) for o in stage.outputs}
    spec = _task_spec(stage, job_spec, None, keys, {})
    return Draft(task_id(job, stage.name, None), job, stage.name, None, spec, _lane(stage, job_spec), 0, tuple(needs))


def clip_task(job: str, job_spec: JobSpec, stage: StageSpec, sha256: str, inputs: Mapping[str, list[str]]) -> Draft:
    """The one task of a clip: what it reads (result keys by `stage.output`) is there already."""
    spec = _task_spec(stage, job_spec, None, _keys(stage, job_spec, sha256, None, inputs, job), inputs)
    return Draft(task_id(job, stage.name, None), job, stage.name, None, spec, _lane(stage, job_spec), 0)


def plan(
    job: str, job_spec: JobSpec, facts: VideoFacts, specs: Mapping[str, StageSpec], probe_spec: str
) -> tuple[Draft, ...]:
    """All tasks after the first, in the order in which they are best done: minute by minute, every stage."""
    spans = trial_grid(facts) if job_spec.trial else grid(facts, job_spec.chunk_seconds, job_spec.chunk_bytes)
    made: dict[str, list[PlannedTask]] = {"probe": [PlannedTask("probe", None, results_of(probe_spec))]}
    drafts: list[tuple[tuple[int, int], Draft]] = []
    bounds = digest([span.to_json() for span in spans])
    for rank, name in enumerate(job_spec.stages):
        if name == "probe":
            continue
        if name not in specs:
            raise NeverWorks(f"no stage {name!r} on this machine", "Install the package that brings it, then retry.")
        stage = specs[name]
        whole = spans[0] if job_spec.trial else None
        undivided: Iterable[tuple[int | None, Span | None]] = [(None, whole)]
        made[name] = []
        for chunk, span in enumerate(spans) if stage.scope is Scope.CHUNK else undivided:
            draft, planned = _task(job, job_spec, facts.sha256, stage, chunk, span, made, bounds, len(spans))
            made[name].append(planned)
            drafts.append(((-1 if _unblocks(stage) else chunk or 0, rank), draft))
    drafts.sort(key=lambda pair: pair[0])
    return tuple(replace(draft, order=n) for n, (_, draft) in enumerate(drafts, 1))


def results_of(spec: str) -> dict[str, str]:
    """Output -> result key of a task, from its spec."""
    return dict(json.loads(spec)["results"])


def inputs_of(spec: str) -> tuple[str, ...]:
    """The keys of the results that a task reads, from its spec."""
    return tuple(key for keys in json.loads(spec)["inputs"].values() for key in keys)


def needs_of(spec: str) -> tuple[str, ...]:
    """The task ids a task needs, from its spec."""
    return tuple(json.loads(spec)["needs"])


def job_facts(job_spec: JobSpec, facts: VideoFacts, name: str, chunks: int, stem: str = "") -> str:
    """What is kept on the job row for lists and pages."""
    video = facts.video
    width, height = video.upright if video else (0, 0)
    doc = {known: getattr(facts, known) for known in ("sha256", "size", "container", "title", "shot_at")} | {
        "video": video_id(job_spec.owner, facts.sha256),
        "name": name,
        "path": clean_text(job_spec.source.path),
        "start": [facts.start.numerator, facts.start.denominator],  # media time that people see as zero
        "duration_us": int(facts.duration * 1_000_000),
        "width": width,
        "height": height,
        "rate": [video.rate.numerator, video.rate.denominator] if video and video.rate else None,
        "audio": bool(facts.audio),
        "trial": job_spec.trial,
        "stub": bool(job_spec.stub),
        "chunks": chunks,
        "stem": stem,  # of the names of its transcripts, as it stands in a URI
    }
    return canonical(doc).decode("ascii")


def _task(
    job: str,
    job_spec: JobSpec,
    sha256: str,
    stage: StageSpec,
    chunk: int | None,
    span: Span | None,
    made: Planned,
    bounds: str,
    chunks: int,
) -> tuple[Draft, PlannedTask]:
    wanted = [(need, p) for need in stage.needs for p in made[stage_of(need)]]
    upstream = [(need, p) for need, p in wanted if chunk is None or p.chunk in (None, chunk)]
    inputs: dict[str, list[str]] = {}
    for need, p in upstream:
        for output, key in p.keys.items():
            if need in (p.stage, f"{p.stage}.{output}"):
                inputs.setdefault(f"{p.stage}.{output}", []).append(key)
    keys = _keys(stage, job_spec, sha256, span, inputs, job)
    needs = [*dict.fromkeys(task_id(job, p.stage, p.chunk) for _, p in upstream if p.stage != "probe")]
    spec = _task_spec(stage, job_spec, span, keys, inputs, needs, bounds, chunks)
    id, met = task_id(job, stage.name, chunk), tuple(map(Need, needs))
    return Draft(id, job, stage.name, chunk, spec, _lane(stage, job_spec), 0, met), PlannedTask(stage.name, chunk, keys)


def _keys(
    stage: StageSpec, job_spec: JobSpec, sha256: str, span: Span | None, inputs: Inputs, job: str
) -> dict[str, str]:
    question = {
        **({"job": job} if stage.per_job else {}),
        "span": span.to_json() if span else None,
        "inputs": {name: list(keys) for name, keys in inputs.items() if not name.startswith("probe.")},
        "source": sha256,
        **_stage_question(stage, job_spec),
    }
    return {o: result_key(sha256, question | _output_question(stage, job_spec, o)) for o in stage.outputs}


def _output_question(stage: StageSpec, job_spec: JobSpec, output: str) -> dict[str, JSON]:
    """Only the options that change an output are part of its question."""
    options = _options(stage, job_spec)
    return {"output": output, "options": {n: options[n] for n in stage.output_options.get(output, options)}}


def _stage_question(stage: StageSpec, job_spec: JobSpec) -> dict[str, JSON]:
    return {
        "owner": job_spec.owner,
        "take": job_spec.take,
        "stage": stage.name,
        "version": stage.version,
        "options": _options(stage, job_spec),
        "models": _models(stage, job_spec),
        **({"engine": STUB} if stage.name in job_spec.stub else {}),
    }


def _models(stage: StageSpec, job_spec: JobSpec) -> dict[str, str]:
    return {m: STUB if stage.name in job_spec.stub else job_spec.models.get(m, "") for m in stage.models}


def _engine(stage: StageSpec, job_spec: JobSpec) -> str:
    return STUB if stage.name in job_spec.stub else ANY_ENGINE if stage.asks_engine else ""


def _options(stage: StageSpec, job_spec: JobSpec) -> dict[str, JSON]:
    return {**stage.options, **job_spec.options.get(stage.name, {})}


def _task_spec(
    stage: StageSpec,
    job_spec: JobSpec,
    span: Span | None,
    keys: Keys,
    inputs: Inputs,
    needs: Sequence[str] = (),
    bounds: str = "",
    chunks: int = 0,
) -> str:
    options = _options(stage, job_spec)
    doc = {
        "results": dict(keys),
        "inputs": {name: list(k) for name, k in inputs.items()},
        "needs": list(needs),
        "span": span.to_json() if span else None,
        "options": options,
        "models": _models(stage, job_spec),
        "engine": _engine(stage, job_spec),
        "version": stage.version,
        "profile": job_spec.profile,
        "config_hash": digest(options)[:16],
        "plan_hash": digest([bounds, job_spec.profile, _stage_question(stage, job_spec)]),
        "source": asdict(job_spec.source) if stage.reads_source else None,
        "owner": job_spec.owner,
        **({"chunks": chunks} if stage.per_job else {}),
    }
    return canonical(doc).decode("ascii")


def _lane(stage: StageSpec, job_spec: JobSpec) -> str:
    """What reads the original goes to machines that see it; all else reads results, which every machine does."""
    return bound_lane(stage.lane, job_spec.source.site) if stage.reads_source else stage.lane


def _unblocks(stage: StageSpec) -> bool:
    """Whole-video work that only needs probe (audio) goes first: chunks wait for it."""
    return stage.scope is Scope.VIDEO and set(stage.needs) <= {"probe"}
