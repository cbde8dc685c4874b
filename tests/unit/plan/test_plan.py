"""The plan: a pure function of the recipe and what probe found."""

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rushes.domain.errors import Refused
from rushes.domain.keys import is_name, parse_task_id, task_id
from rushes.domain.stage import Scope, StageSpec
from rushes.domain.video import AudioTrack, Fingerprint, VideoFacts, VideoTrack
from rushes.plan.grid import grid, trial_grid
from rushes.plan.planner import JobSpec, first_task, job_facts, needs_of, plan, results_of
from rushes.plan.recipes import stages_of

SPECS = {
    c.name: c
    for c in (
        StageSpec("probe", 1, Scope.VIDEO, ("facts",), reads_source=True, opens_plan=True),
        StageSpec("develop", 1, Scope.CHUNK, ("proxy", "metrics"), ("probe",), reads_source=True),
        StageSpec("audio", 1, Scope.VIDEO, ("pcm", "windows"), ("probe",), reads_source=True),
        StageSpec("playlist", 1, Scope.VIDEO, ("hls",), ("probe", "develop", "audio")),
        StageSpec("shots", 1, Scope.VIDEO, ("shots",), ("probe", "develop")),
        StageSpec("transcribe", 1, Scope.CHUNK, ("lines",), ("probe", "audio"), models=("speech",)),
        StageSpec("transcript", 1, Scope.VIDEO, ("transcript",), ("probe", "transcribe")),
    )
}
TICKS = 12800


def film(seconds: int = 300, key_every: int = 2, sha256: str = "ab" * 32) -> VideoFacts:
    keys = tuple(range(0, seconds * TICKS, key_every * TICKS))
    video = VideoTrack(0, "h264", 640, 360, Fraction(1, TICKS), 0, seconds * TICKS, seconds * 25, keys, Fraction(25))
    audio = AudioTrack(1, "aac", 48000, 2, Fraction(1, 48000), 0, seconds * 48000)
    return VideoFacts(sha256, 1000, "mp4", video, (audio,))


def asked(**changes: object) -> JobSpec:
    values: dict[str, object] = {
        "owner": "me",
        "source": Fingerprint("film.mp4", 1000, 1, 2),
        "stages": stages_of("searchable", SPECS),
        "models": {"speech": "whisper-base@d01c3014"},
    }
    return JobSpec(**(values | changes))  # type: ignore[arg-type]


def planned(
    question: JobSpec, facts: VideoFacts, specs: dict[str, StageSpec] | None = None
) -> dict[str, dict[str, str]]:
    probe = first_task("job_a", question, SPECS["probe"])
    return {d.id: results_of(d.spec) for d in plan("job_a", question, facts, specs or SPECS, probe.spec)}


def test_every_chunk_begins_at_a_key_frame_and_nothing_is_left_out() -> None:
    facts = film()
    assert facts.video is not None
    spans = grid(facts, 60)
    assert [s.start for s in spans] == [0, 60 * TICKS, 120 * TICKS, 180 * TICKS, 240 * TICKS]
    assert all(s.start in facts.video.keys for s in spans)
    assert [a.end for a in spans[:-1]] == [b.start for b in spans[1:]]
    assert spans[-1].end == facts.video.end


@given(st.integers(1, 400), st.integers(1, 30), st.integers(1, 120))
def test_a_grid_covers_the_film_without_gap_or_overlap(seconds: int, key_every: int, chunk: int) -> None:
    spans = grid(film(seconds, key_every), chunk)
    assert spans[0].start == 0
    assert spans[-1].end == seconds * TICKS
    assert all(a.end == b.start and a.start < a.end for a, b in itertools.pairwise(spans))


def test_large_chunks_are_cut_by_bytes_too() -> None:
    facts = film(seconds=1200)
    big = VideoFacts(facts.sha256, 400 * 2**20, facts.container, facts.video, facts.audio)
    assert len(grid(big, 300, 50 * 2**20)) == 8


def test_sound_alone_is_cut_anywhere_and_the_rest_is_the_last_chunk() -> None:
    facts = replace(film(seconds=150), video=None)
    seconds = [(s.start // 48000, s.end // 48000) for s in grid(facts, 60)]
    assert seconds == [(0, 60), (60, 120), (120, 150)]


def test_a_key_frame_at_the_very_end_begins_no_chunk() -> None:
    facts = film(seconds=120)
    assert facts.video is not None
    keys = (*facts.video.keys, facts.video.end)
    assert len(grid(replace(facts, video=replace(facts.video, keys=keys)), 60)) == 2


def test_a_trial_is_four_seconds_from_the_middle_for_every_stage() -> None:
    question, middle = asked(trial=True), trial_grid(film())[0]
    assert (middle.start, middle.end) == (148 * TICKS, 152 * TICKS)
    probe = first_task("job_a", question, SPECS["probe"])
    for draft in plan("job_a", question, film(), SPECS, probe.spec):
        assert json.loads(draft.spec)["span"] == middle.to_json()
    whole = plan("job_a", asked(), film(), SPECS, probe.spec)
    assert {d.stage for d in whole if json.loads(d.spec)["span"] is None} == {
        "audio",
        "playlist",
        "shots",
        "transcript",
    }


def test_damaged_footage_is_one_chunk() -> None:
    facts = film()
    assert facts.video is not None
    track = VideoTrack(
        0, "h264", 640, 360, facts.video.base, 0, facts.video.end, 1, facts.video.keys, None, seekable=False
    )
    assert len(grid(VideoFacts("cd" * 32, 1, "mp4", track), 60)) == 1


def test_the_same_question_gives_the_same_plan_and_the_owner_is_part_of_it() -> None:
    assert planned(asked(), film()) == planned(asked(), film())
    mine, theirs = planned(asked(), film()), planned(asked(owner="you"), film())
    assert not set(mine["job_a.shots"].values()) & set(theirs["job_a.shots"].values())


def test_another_model_changes_only_what_depends_on_it() -> None:
    a, b = planned(asked(), film()), planned(asked(models={"speech": "other@1"}), film())
    changed = {task.split(".")[1] for task in a if a[task] != b[task]}
    assert changed == {"transcribe", "transcript"}


def test_a_new_version_of_a_stage_changes_it_and_what_is_built_on_it() -> None:
    newer = SPECS | {
        "develop": StageSpec("develop", 2, Scope.CHUNK, ("proxy", "metrics"), ("probe",), reads_source=True)
    }
    a, b = planned(asked(), film()), planned(asked(), film(), newer)
    assert {t.split(".")[1] for t in a if a[t] != b[t]} == {"develop", "playlist", "shots"}


def test_the_same_content_elsewhere_has_the_same_results() -> None:
    moved = asked(source=Fingerprint("other/place.mp4", 1000, 9, 9))
    assert planned(asked(), film()) == planned(moved, film())


def test_a_join_needs_every_chunk_and_a_chunk_needs_its_own() -> None:
    probe = first_task("job_a", asked(), SPECS["probe"])
    drafts = {d.id: d for d in plan("job_a", asked(), film(), SPECS, probe.spec)}
    assert [n.ref for n in drafts["job_a.shots"].needs] == [f"job_a.develop.{n:05d}" for n in range(5)]
    assert [n.ref for n in drafts["job_a.transcribe.00003"].needs] == ["job_a.audio"]
    assert drafts["job_a.develop.00002"].needs == ()
    assert needs_of(drafts["job_a.shots"].spec) == tuple(n.ref for n in drafts["job_a.shots"].needs)
    assert len(json.loads(drafts["job_a.shots"].spec)["inputs"]["develop.metrics"]) == 5


def test_a_chunk_reads_what_was_made_of_its_own_chunk_alone() -> None:
    specs = SPECS | {"looks": StageSpec("looks", 1, Scope.CHUNK, ("seen",), ("develop",))}
    question = asked(stages=("probe", "develop", "looks"))
    probe = first_task("job_a", question, SPECS["probe"])
    drafts = {d.id: d for d in plan("job_a", question, film(), specs, probe.spec)}
    assert [n.ref for n in drafts["job_a.looks.00002"].needs] == ["job_a.develop.00002"]


def test_a_chunk_is_a_minute_unless_it_is_asked_otherwise() -> None:
    probe = first_task("job_a", asked(), SPECS["probe"])
    drafts = {d.id: d for d in plan("job_a", asked(), film(), SPECS, probe.spec)}
    assert json.loads(drafts["job_a.develop.00001"].spec)["span"][0] == 60 * TICKS


def test_work_is_ordered_minute_by_minute_after_what_unblocks_it() -> None:
    probe = first_task("job_a", asked(), SPECS["probe"])
    order = [d.id for d in sorted(plan("job_a", asked(), film(), SPECS, probe.spec), key=lambda d: d.order)]
    assert order[0] == "job_a.audio"
    assert order.index("job_a.transcribe.00000") < order.index("job_a.develop.00001")


def test_a_film_that_is_turned_is_listed_as_people_see_it() -> None:
    facts = film()
    assert facts.video
    turned = replace(facts, video=replace(facts.video, width=1920, height=1080, rotation=90))
    shown = json.loads(job_facts(asked(), turned, "a.mp4", 3))
    assert (shown["width"], shown["height"], shown["chunks"]) == (1080, 1920, 3)


def test_a_film_is_listed_with_its_rate() -> None:
    assert json.loads(job_facts(asked(), film(), "a.mp4", 1))["rate"] == [25, 1]


def test_sound_alone_is_listed_without_a_picture() -> None:
    shown = json.loads(job_facts(asked(), replace(film(), video=None), "a.mp3", 1))
    assert (shown["width"], shown["height"], shown["rate"]) == (0, 0, None)


def test_only_brings_what_it_needs_and_skip_takes_what_needs_it() -> None:
    assert stages_of("searchable", SPECS, only=["shots"]) == ("probe", "develop", "shots")
    assert "transcript" not in stages_of("searchable", SPECS, skip=["audio"])
    assert stages_of("subtitles", SPECS) == ("probe", "audio", "transcribe", "transcript")


@pytest.mark.parametrize(
    ("recipe", "only", "skip"), [("nope", (), ()), ("subtitles", ("x",), ()), ("subtitles", (), ("probe",))]
)
def test_a_wish_that_cannot_be_had_is_refused(recipe: str, only: tuple[str, ...], skip: tuple[str, ...]) -> None:
    with pytest.raises(Refused):
        stages_of(recipe, SPECS, only, skip)


def test_what_was_asked_for_by_name_is_not_skipped_in_silence() -> None:
    with pytest.raises(Refused, match="transcript needs transcribe"):
        stages_of("searchable", SPECS, only=("transcript",), skip=("transcribe",))
    assert "shots" in stages_of("searchable", SPECS, only=("shots",), skip=("transcribe",))


def test_a_payload_survives_names_that_are_no_text() -> None:
    odd = asked(source=Fingerprint("a\n'\"\udcff -x \U0001f3ac.mp4", 1, 2, 3))
    assert JobSpec.from_text(odd.to_text()) == odd
    assert odd.to_text().isascii()


@given(
    st.from_regex(r"job_[a-z2-7]{16}", fullmatch=True),
    st.from_regex(r"[a-z][a-z_]{0,20}", fullmatch=True),
    st.none() | st.integers(0, 99999),
)
def test_task_ids_are_built_and_parsed_by_one_pair(job: str, stage: str, chunk: int | None) -> None:
    assert is_name(stage)
    assert parse_task_id(task_id(job, stage, chunk)) == (job, stage, chunk)


def test_who_needs_one_output_is_not_asked_again_when_only_another_changes() -> None:
    specs = SPECS | {
        "develop": replace(SPECS["develop"], options={"height": 720}, output_options={"metrics": ()}),
        "shots": replace(SPECS["shots"], needs=("probe", "develop.metrics")),
    }
    question, facts = asked(stages=stages_of("searchable", specs)), film()
    before = planned(question, facts, specs)
    after = planned(replace(question, options={"develop": {"height": 360}}), facts, specs)
    changed = {(parse_task_id(t)[1], o) for t, keys in after.items() for o, k in keys.items() if before[t][o] != k}
    assert changed == {("develop", "proxy"), ("playlist", "hls")}


def test_a_need_of_one_output_still_waits_for_its_stage_and_reads_nothing_else() -> None:
    specs = SPECS | {"shots": replace(SPECS["shots"], needs=("probe", "develop.metrics", "develop.proxy"))}
    question, facts = asked(stages=stages_of("searchable", specs, only=["shots"])), film()
    (shots,) = [d for d in plan("job_a", question, facts, specs, first_task("job_a", question, specs["probe"]).spec)
                if d.stage == "shots"]  # fmt: skip
    assert len(needs_of(shots.spec)) == len(set(needs_of(shots.spec))) == 5
    assert set(json.loads(shots.spec)["inputs"]) == {"probe.facts", "develop.metrics", "develop.proxy"}
    assert "develop" not in stages_of("searchable", specs, skip=["develop"])
