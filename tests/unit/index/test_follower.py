"""The follower: words are found while the job runs, once each, from the right run, whoever is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

from rushes.blobs.folder import FolderBlobs
from rushes.blobs.port import ByteRange
from rushes.domain.errors import DamagedBlob
from rushes.domain.job import JobCommand
from rushes.domain.keys import blob_key, manifest_key
from rushes.domain.observation import dump
from rushes.index.changes import CursorMove, JobRead, Reset
from rushes.index.deleted_jobs import DELETED
from rushes.index.follower import NAME
from rushes.index.port import find_video
from rushes.index.run_selection import Candidate, choose
from rushes.index.search import search
from rushes.index.sqlite import SqliteIndex
from rushes.ledger.memory import MemoryLedger
from rushes.ledger.sqlite import SqliteLedger
from rushes.records.port import Record
from rushes.records.sqlite import SqliteRecords
from tests.unit.index_kit import Studio, line


@pytest.fixture(params=["memory", "sqlite"])
def studio(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Studio]:
    index = SqliteIndex(tmp_path / "index.sqlite")
    ledger = MemoryLedger() if request.param == "memory" else SqliteLedger(tmp_path / "ledger.sqlite")
    yield Studio(ledger, FolderBlobs(tmp_path / "files"), SqliteRecords(Path(":memory:")), index)
    ledger.close()
    index.close()


def test_a_word_of_the_first_chunk_is_found_while_the_others_are_not_done(studio: Studio) -> None:
    studio.open("job_a", chunks=30)
    studio.chunk("job_a", 2, line("a word of minute two", 125))
    assert studio.said() == []
    assert studio.follower.catch_up() == 1
    assert studio.said() == ["a word of minute two"]
    video = find_video(studio.index, "anna", "v")
    assert video is not None
    assert (video.name, video.state, video.languages) == ("a.mp4", "chunking_complete", ("en",))


def test_what_was_done_in_events_that_are_no_longer_kept_is_found_all_the_same(studio: Studio) -> None:
    studio.open("job_a", chunks=3)
    studio.follower.catch_up()
    studio.chunk("job_a", 0, line("early word", 1))
    studio.chunk("job_a", 1, line("late word", 70))
    studio.ledger.control("job_a", JobCommand.TRIM, 0)
    studio.follower.catch_up()
    assert sorted(studio.said()) == ["early word", "late word"]


def test_more_than_a_page_of_events_between_two_looks_hides_nothing(studio: Studio) -> None:
    studio.open("job_a", chunks=3)
    studio.follower.catch_up()
    studio.chunk("job_a", 0, line("first word", 1))
    for _ in range(510):  # a page has 500
        studio.give_back("job_a", 2)
    studio.chunk("job_a", 1, line("last word", 70))
    assert len(studio.ledger.events("job_a")) == 500, "the ledger answers by pages"
    studio.follower.catch_up()
    assert studio.said() == ["first word", "last word"]
    assert studio.follower.catch_up() == 0


def test_a_job_whose_ledger_was_lost_is_read_again_from_its_beginning(studio: Studio) -> None:
    studio.open("job_a", chunks=2)
    studio.chunk("job_a", 0, line("a word", 1))
    studio.index.apply(JobRead("job_a", 99))  # in the ledger that was lost it had gone further
    studio.follower.catch_up()
    assert studio.said() == ["a word"]
    studio.chunk("job_a", 1, line("another word", 70))
    studio.follower.catch_up()
    assert studio.said() == ["a word", "another word"]


def test_nothing_is_read_twice_and_nothing_is_doubled(studio: Studio) -> None:
    studio.open("job_a")
    studio.chunk("job_a", 0, line("word", 1))
    studio.follower.catch_up()
    assert studio.follower.catch_up() == 0
    studio.index.apply(CursorMove("ledger", "", ["job_a"]))
    studio.follower.catch_up()
    assert studio.said() == ["word"]
    assert studio.index.summary("anna").kinds == {"speech": 1}


def test_the_assembled_transcript_stands_for_its_chunks(studio: Studio) -> None:
    studio.open("job_a", chunks=2)
    studio.chunk("job_a", 0, line("word one", 1))
    studio.chunk("job_a", 1, line("word two", 61))
    studio.follower.catch_up()
    assert studio.said() == ["word one", "word two"]
    studio.whole("job_a", line("word one", 1), line("word two, corrected", 61))
    studio.follower.catch_up()
    assert studio.said() == ["word one", "word two, corrected"]
    video = find_video(studio.index, "anna", "v")
    assert video is not None
    assert (video.state, video.poster) == ("completed", "thumbs/v/poster.jpg")


def test_a_new_run_is_shown_when_its_step_is_done_and_not_before(studio: Studio) -> None:
    studio.open("job_a", chunks=2)
    for n in range(2):
        studio.chunk("job_a", n, line(f"word {n}", n * 60))
    studio.open("job_b", chunks=2, take="again-")
    studio.chunk("job_b", 0, line("other 0", 0), take="again-")
    studio.follower.catch_up()
    assert studio.said() == ["word 0", "word 1"]
    studio.chunk("job_b", 1, line("other 1", 60), take="again-")
    studio.follower.catch_up()
    assert studio.said() == ["other 0", "other 1"]


def test_before_any_run_is_done_the_newest_partial_one_is_shown(studio: Studio) -> None:
    studio.open("job_a", chunks=2)
    studio.chunk("job_a", 0, line("word 0", 0))
    studio.open("job_b", chunks=2, take="again-")
    studio.chunk("job_b", 0, line("other 0", 0), take="again-")
    studio.follower.catch_up()
    assert studio.said() == ["other 0"]


def test_adopted_results_are_found_as_soon_as_the_plan_is_open(studio: Studio) -> None:
    studio.open("job_a", chunks=2)
    studio.chunk("job_a", 0, line("word 0", 0))
    studio.chunk("job_a", 1, line("word 1", 60))
    studio.open("job_b", chunks=2, adopted=True)
    studio.index.apply(Reset())
    studio.follower.catch_up()
    assert studio.said() == ["word 0", "word 1"]
    assert len(studio.index.videos("anna")[0]) == 1


def test_a_result_set_aside_disappears(studio: Studio) -> None:
    studio.open("job_a", chunks=2)
    studio.chunk("job_a", 0, line("word 0", 0))
    studio.chunk("job_a", 1, line("word 1", 60))
    studio.follower.catch_up()
    studio.ledger.set_aside("anna", ["v-0"], "damaged")
    assert studio.follower.check("anna") == 1
    assert studio.said() == ["word 1"]
    assert studio.follower.check("anna") == 0


def test_a_repaired_result_is_found_again(studio: Studio) -> None:
    studio.open("job_a", chunks=1)
    studio.chunk("job_a", 0, line("word", 0))
    studio.follower.catch_up()
    studio.ledger.set_aside("anna", ["v-0"], "damaged")
    studio.blobs.delete(manifest_key("anna", "v-0"))
    studio.ledger.revive("job_a", stages=["transcribe"], again=True)
    studio.follower.catch_up()
    assert studio.said() == []
    studio.chunk("job_a", 0, line("word again", 0))
    studio.follower.catch_up()
    assert studio.said() == ["word again"]


def test_damaged_results_are_left_out_and_the_rest_is_found(studio: Studio) -> None:
    studio.open("job_a", chunks=3)
    studio.chunk("job_a", 0, line("word 0", 0))
    studio.chunk("job_a", 1, line("word 1", 60))
    blob = studio.blobs.put("anna", dump([line("word 1", 60)]))
    studio.blobs.delete(blob_key("anna", blob.sha256))
    studio.blobs.create(manifest_key("anna", "v-2"), b"not a manifest")
    studio.chunk("job_a", 2, line("word 2", 120))
    studio.follower.catch_up()
    assert studio.said() == ["word 0"]


def test_a_manifest_that_a_bucket_cannot_give_back_is_left_out_and_the_rest_is_found(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio.open("job_a", chunks=2)
    studio.chunk("job_a", 0, line("word 0", 0))
    studio.chunk("job_a", 1, line("word 1", 60))
    read = studio.blobs.read

    def refused(key: str) -> ByteRange | None:
        if key == manifest_key("anna", "v-1"):
            raise DamagedBlob(f"{key} does not match what was written")
        return read(key)

    monkeypatch.setattr(studio.blobs, "read", refused)
    studio.follower.catch_up()
    assert studio.said() == ["word 0"]


def test_reindex_gives_the_same_answers(studio: Studio) -> None:
    for name in ("u", "v"):
        studio.open(f"job_{name}", chunks=2, video=name)
        studio.chunk(f"job_{name}", 0, line("word one", 1), line("un mot word", 2, "fr"), video=name)
        studio.chunk(f"job_{name}", 1, line("word two", 61), video=name)
        studio.follower.catch_up()
    studio.open("job_x", chunks=1, take="again-")
    studio.chunk("job_x", 0, line("word anew", 1), take="again-")
    studio.records.put(NAME, "anna", "v", {"name": "Holiday"})
    studio.follower.catch_up()
    before = _answers(studio.index)
    said = {h.text for h in search(studio.index, "anna", "word", limit=99).hits}
    assert studio.follower.reindex() == 3
    assert _answers(studio.index) == before
    assert said == {"word anew", "word one", "un mot word", "word two"}


def _answers(index: SqliteIndex) -> tuple[object, ...]:
    found = search(index, "anna", "word OR mot", limit=1000)
    return (found.hits, found.total, index.videos("anna"), index.lines("anna", "v"), index.summary("anna"))


class Asked(SqliteRecords):
    """Records that remember how often they were asked for deletions."""

    asked = 0

    def get_many(self, kind: str, owner: str, ids: Collection[str]) -> Mapping[str, Record]:
        self.asked += kind == DELETED
        return super().get_many(kind, owner, ids)

    def get(self, kind: str, owner: str, id: str) -> Record | None:
        self.asked += kind == DELETED
        return super().get(kind, owner, id)


def test_deletions_of_many_jobs_are_one_question(studio: Studio) -> None:
    studio.records = records = Asked(Path(":memory:"))
    for video in "vwxyz":
        studio.open(f"job_{video}", chunks=1, video=video)
        studio.chunk(f"job_{video}", 0, line(f"word {video}", 1), video=video)
    records.put(DELETED, "anna", "x", {"jobs": ["job_x"], "over": True})
    records.put(DELETED, "anna", "y", {"jobs": ["job_before"], "over": True})
    assert studio.follower.catch_up() == 5
    assert studio.said() == ["word v", "word w", "word y", "word z"]
    assert records.asked == 1


def test_a_new_index_finds_results_whose_events_are_gone(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    studio.open("job_a", chunks=2)
    studio.chunk("job_a", 0, line("word one", 1))
    monkeypatch.setattr(type(studio.ledger), "events", lambda *_, **__: ())
    assert studio.follower.reindex() == 1
    assert studio.said() == ["word one"]


def test_only_what_is_new_is_read(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    studio.open("job_a", chunks=2)
    studio.chunk("job_a", 0, line("word one", 1))
    studio.follower.catch_up()
    studio.chunk("job_a", 1, line("word two", 61))
    read: list[str] = []
    real = FolderBlobs.read

    def counted(self: FolderBlobs, key: str) -> ByteRange | None:
        read.append(key)
        return real(self, key)

    monkeypatch.setattr(FolderBlobs, "read", counted)
    studio.follower.catch_up()
    assert set(read) == {manifest_key("anna", "v-1")}
    assert studio.said() == ["word one", "word two"]


def test_a_job_that_was_deleted_or_is_gone_meanwhile_is_not_taken_in(studio: Studio) -> None:
    studio.open("job_a", 1)
    studio.chunk("job_a", 0, line("hello", 1))
    studio.records.put(DELETED, "anna", "v", {"jobs": ["job_a"], "originals": False, "over": True})
    studio.index.apply(CursorMove("ledger", studio.index.cursor("ledger"), ["job_none"]))
    assert studio.follower.catch_up() == 2
    assert studio.index.catalog("anna") == ()
    assert not studio.index.backlog(10).jobs


def test_people_whose_faces_have_changed_are_grouped_by_the_next_look(studio: Studio) -> None:
    studio.follower._people.mark_stale("anna")
    studio.follower.catch_up()
    assert studio.index.cursor("people") == "[]"


def test_names_that_people_gave_are_followed(studio: Studio) -> None:
    studio.records.put(NAME, "anna", "v", {"name": "Holiday"})
    studio.open("job_a")
    studio.chunk("job_a", 0, line("word", 1))
    studio.follower.catch_up()
    assert search(studio.index, "anna", "word").hits[0].name == "Holiday"
    studio.records.delete(NAME, "anna", "v")
    studio.follower.catch_up()
    assert search(studio.index, "anna", "word").hits[0].name == "a.mp4"


def test_a_cancelled_job_keeps_what_it_found(studio: Studio) -> None:
    studio.open("job_a")
    studio.chunk("job_a", 0, line("word", 1))
    studio.ledger.control("job_a", JobCommand.CANCEL)
    studio.follower.catch_up()
    assert studio.said() == ["word"]
    video = find_video(studio.index, "anna", "v")
    assert video is not None
    assert video.state == "cancelled"


def test_few_jobs_at_a_time_still_reach_the_end(studio: Studio) -> None:
    for n in range(5):
        studio.open(f"job_{n}", chunks=1, video=f"v{n}")
        studio.chunk(f"job_{n}", 0, line("word", 1), video=f"v{n}")
    assert [studio.follower.catch_up(limit=2) for _ in range(4)] == [2, 2, 1, 0]
    assert len(studio.said()) == 5


def test_who_finds_another_following_reads_what_there_is(studio: Studio) -> None:
    studio.open("job_a")
    studio.chunk("job_a", 0, line("word", 1))
    with studio.index.lock():
        assert studio.follower.catch_up(patience=0) == 0
        assert studio.said() == []
    assert studio.follower.catch_up() == 1


CHILD = """
import sys
from pathlib import Path
from rushes.blobs.folder import FolderBlobs
from rushes.blobs.port import ByteRange
from rushes.index.follower import Follower
from rushes.index.sqlite import SqliteIndex
from rushes.ledger.sqlite import SqliteLedger
from rushes.records.sqlite import SqliteRecords
home = Path(sys.argv[1])
ledger, index = SqliteLedger(home / "ledger.sqlite"), SqliteIndex(home / "index.sqlite")
Follower(ledger, SqliteRecords(Path(":memory:")), FolderBlobs(home / "files"), index).catch_up()
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_every_write_the_next_one_finds_everything_once(tmp_path: Path, moment: str) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    studio = Studio(
        ledger, FolderBlobs(tmp_path / "files"), SqliteRecords(Path(":memory:")), SqliteIndex(tmp_path / "truth.sqlite")
    )
    studio.open("job_v", chunks=2)
    studio.chunk("job_v", 0, line("word one", 1))
    studio.chunk("job_v", 1, line("word two", 61))
    studio.follower.catch_up()
    truth = _answers(studio.index)
    studio.index.close()
    killed, nth = True, 0
    while killed:
        nth += 1
        for file in tmp_path.glob("index.sqlite*"):
            file.unlink()
        killed = _killed(tmp_path, f"index:{moment}#{nth}")
        studio.index = SqliteIndex(tmp_path / "index.sqlite")
        studio.follower.catch_up()
        assert _answers(studio.index) == truth
        studio.index.close()
    assert nth > 5  # queue, run, results, met, show
    ledger.close()


def _killed(home: Path, crash: str) -> bool:
    (home / "passed").unlink(missing_ok=True)
    env = {**os.environ, "RUSHES_CRASH": crash, "RUSHES_CRASH_COUNT": str(home / "passed")}
    code = subprocess.run([sys.executable, "-c", CHILD, str(home)], env=env, check=False, timeout=240).returncode
    assert code in {0, -signal.SIGKILL}
    return code != 0


def test_the_choice_is_pure_and_asks_only_where_it_matters() -> None:
    def nobody(job: str, stage: str) -> bool:
        raise AssertionError(job + stage)

    one = Candidate("speech", "a", "2026-01-01", "transcribe", whole=False)
    assert choose([one, one], nobody) == {"speech": ("a", "transcribe")}
    whole = Candidate("speech", "a", "2026-01-01", "transcript", whole=True)
    assert choose([one, whole], nobody) == {"speech": ("a", "transcript")}
    newer = Candidate("speech", "b", "2026-01-02", "transcribe", whole=False)
    assert choose([one, whole, newer], lambda *_: False) == {"speech": ("a", "transcript")}
    assert choose([one, whole, newer], lambda *_: True) == {"speech": ("b", "transcribe")}
    text = Candidate("text", "a", "2026-01-01", "read_text", whole=False)
    assert choose([one, text], nobody) == {"speech": ("a", "transcribe"), "text": ("a", "read_text")}
