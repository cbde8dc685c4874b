"""Every index answers alike: what is found, exactly where, in which order, and nothing of other owners."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import postgres_kit
import pytest
import search_oracle
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.index.changes import (
    Correction,
    CorrectionUpdate,
    CursorMove,
    IndexedResult,
    JobRead,
    Reselection,
    Reset,
    ResultRemoval,
    Run,
    RunUpdate,
    SelectionUpdate,
    Track,
    TrackUpdate,
    VideoRemoval,
    VideoRename,
)
from rushes.index.grammar import parse
from rushes.index.port import Hit, Index, SearchResult, Video, VideoState, find_video
from rushes.index.postgres import PostgresIndex
from rushes.index.search import next_hit, search
from rushes.index.sqlite import SqliteIndex

BASE = Fraction(1, 16000)
ODD = ['"', '"""', "a AND", "NEAR(", "NEAR(ask not, 2)", "*", "col:ask", "-", "OR", "()", "ask*what", '-"', "{ask}",
       "^ask", "ask + not", "\0", "\ud800ask", "🎬", "x" * 10_000, "ask " * 3_000, '"' * 9_999, "words : ask", "rank:1",
       "-ask", "'; DROP TABLE line; --", "say:", "ask OR", "kind:speech"]  # fmt: skip

Make = Callable[[], Index]


def _sqlite(folder: Path, n: int) -> SqliteIndex:
    return SqliteIndex(folder / f"index-{n}.sqlite")


def _postgres(version: int) -> Callable[[Path, int], PostgresIndex]:
    def new(folder: Path, _n: int) -> PostgresIndex:
        index = PostgresIndex(postgres_kit.database(version, folder))
        index.apply(Reset())
        return index

    return new


OPEN: dict[str, Callable[[Path, int], SqliteIndex | PostgresIndex]] = {"sqlite": _sqlite}
OPEN |= {f"postgres{version}": _postgres(version) for version in postgres_kit.VERSIONS}


@pytest.fixture(params=OPEN)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    opened: list[SqliteIndex | PostgresIndex] = []

    def new() -> Index:
        for old in opened:
            old.close()
        opened.append(OPEN[request.param](tmp_path, len(opened)))
        return opened[-1]

    yield new
    for index in opened:
        index.close()


@pytest.fixture
def index(make: Make) -> Index:
    return make()


def _said(text: str, second: float = 0.0, kind: str = "speech", language: str = "en") -> Observation:
    """A line whose words last a second each."""
    start = int(second * 16000)
    timed = [(f" {w}", start + n * 16000, start + (n + 1) * 16000, 0.5) for n, w in enumerate(text.split())]
    span = Span(start, start + 16000 * max(1, len(timed)), BASE)
    return Observation(kind, span, text, 0.75, language, tuple(timed))


def _show(index: Index, lines: Sequence[Observation], video: str = "vid_1", owner: str = "anna", key: str = "") -> None:
    key = key or f"key-{video}"
    facts = {"video": video, "name": f"{video}.mp4", "duration_us": 9_000_000}
    run = Run(f"job-{owner}-{video}", owner, video, "searchable", "completed", f"2026-01-0{video[-1]}", facts)
    kinds = sorted({line.kind for line in lines})
    offers = [IndexedResult(owner, video, run.job, "transcribe", 0, kind, key, "sha") for kind in kinds]
    index.apply(RunUpdate(run, offers))
    index.apply(
        SelectionUpdate(owner, video, [(o, [line for line in lines if line.kind == o.kind]) for o in offers], ())
    )


def _marked(hit: Hit) -> str:
    return "".join(f"[{text}]" if marked else text for text, marked in hit.pieces)


def test_a_hit_says_which_words_in_which_video_exactly_when(index: Index) -> None:
    _show(index, [_said("Ask not what your country can do", 10)])
    (hit,) = search(index, "anna", "COUNTRY what").hits
    assert (hit.video, hit.name, hit.kind, hit.language, hit.confidence) == ("vid_1", "vid_1.mp4", "speech", "en", 0.75)
    assert hit.span == Span(12 * 16000, 15 * 16000, BASE)
    assert hit.line == Span(10 * 16000, 17 * 16000, BASE)
    assert (hit.start_us, hit.end_us, hit.thumb_us) == (12_000_000, 15_000_000, 13_500_000)
    assert _marked(hit) == "Ask not [what] your [country] can do"
    assert hit.text == "Ask not what your country can do"


def test_accents_and_case_are_folded_and_the_text_is_shown_as_it_is(index: Index) -> None:
    _show(index, [_said("Où est l'Été ?")])
    (hit,) = search(index, "anna", "ete ou").hits
    assert _marked(hit) == "[Où] est l'[Été] ?"
    assert hit.span == Span(0, 48000, BASE)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("ask", {1, 2}),
        ("ask not", {1}),
        ('"not what"', {1}),
        ('"what not"', set()),
        ("wha*", {1, 2}),
        ("ask -country", {2}),
        ("country OR weather", {1, 3}),
        ("say:ask", {1, 2}),
        ("1000", {3}),
        ("dont OR don't", {3}),
        ("日本", {4}),
        ("本日", set()),
        ("nothing", set()),
    ],
)
def test_the_grammar_finds_what_it_means(index: Index, query: str, found: set[int]) -> None:
    lines = ["ask not what your country", "Ask what the others", "Don't: 1,000 kinds of weather", "東京は日本です"]
    _show(index, [_said(text, 10 * n) for n, text in enumerate(lines, 1)])
    answer = search(index, "anna", query)
    assert {h.line.start // 160000 for h in answer.hits} == found
    assert (answer.total, answer.videos) == (len(found), int(bool(found)))


@pytest.mark.parametrize("query", ODD)
def test_no_input_is_an_error(index: Index, query: str) -> None:
    _show(index, [_said("ask not what your country")])
    answer = search(index, "anna", query, limit=10**30, cursor=query, video=query if query == "\0" else "")
    assert answer.hits or answer.total == 0
    assert search(index, query, "ask").total == 0
    assert search(index, "anna", "ask", limit=-5).total == 1


def test_fields_look_at_their_kind_alone(index: Index) -> None:
    _show(index, [_said("exit", 1), _said("exit", 2, kind="text"), _said("exit door", 3, kind="text")])
    assert [h.kind for h in search(index, "anna", "say:exit").hits] == ["speech"]
    assert search(index, "anna", "exit").total == 3
    assert {h.text for h in search(index, "anna", "exit -say:exit").hits} == {"exit", "exit door"}
    assert search(index, "anna", "speech").total == 0


def test_a_line_without_timed_words_is_found_as_a_whole(index: Index) -> None:
    line = Observation("speech", Span(5, 9, BASE), "no times here", 1.0)
    _show(index, [line])
    assert search(index, "anna", "times").hits[0].span == line.span


def test_words_are_timed_even_if_the_text_was_put_together_otherwise(index: Index) -> None:
    timed = (
        (" 1", 0, 10, 1.0),
        (",000", 10, 20, 1.0),
        (" well", 20, 30, 1.0),
        ("-known", 30, 40, 1.0),
        (" ?!", 40, 50, 1.0),
    )
    _show(index, [Observation("speech", Span(0, 60, BASE), "1,000 well-known?!", 1.0, words=timed)])
    spans = [search(index, "anna", q).hits[0].span for q in ("1000", "known", "well-known", "1000 known")]
    assert [(s.start, s.end) for s in spans] == [(0, 20), (30, 40), (20, 40), (0, 40)]


@pytest.mark.parametrize("text", ["<img src=x onerror=alert(1)>", "a\x1b[31m\0b \u202eimg", "-->", "\ud800 img"])
def test_pieces_are_text_and_hold_no_control(index: Index, text: str) -> None:
    _show(index, [_said(text + " img")])
    hit = search(index, "anna", "img").hits[0]
    assert all(c.isprintable() for piece, _ in hit.pieces for c in piece)
    assert [piece for piece, marked in hit.pieces if marked][-1].endswith("img")
    hit.text.encode()


def test_owners_see_nothing_of_each_other(index: Index) -> None:
    _show(index, [_said("secret plan")])
    _show(index, [_said("other plan")], owner="bert", video="vid_2")
    assert [h.text for h in search(index, "bert", "plan").hits] == ["other plan"]
    assert search(index, "bert", "secret").total == 0
    assert find_video(index, "bert", "vid_1") is None
    assert index.lines("bert", "vid_1") == ()
    assert index.summary("bert").videos == 1
    assert [v.id for v in index.videos("bert")[0]] == ["vid_2"]


def test_the_best_come_first_then_by_video_and_time(index: Index) -> None:
    _show(index, [_said("budget", 9), _said("budget", 3)], "vid_2")
    _show(index, [_said("budget budget", 5), _said("the budget of the year that was so long", 1)], "vid_1")
    order = [(h.video, h.line.start // 16000) for h in search(index, "anna", "budget").hits]
    assert order == [("vid_1", 5), ("vid_2", 3), ("vid_2", 9), ("vid_1", 1)]


def test_pages_give_every_hit_once(index: Index) -> None:
    for n in range(1, 6):
        _show(index, [_said("word " * k, k) for k in range(1, 9)], f"vid_{n}")
    whole = search(index, "anna", "word", limit=100).hits
    pages: list[Hit] = []
    cursor, first = "", True
    while cursor or first:
        page = search(index, "anna", "word", limit=3, cursor=cursor)
        assert (page.total, page.videos) == (40, 5)
        pages, cursor, first = [*pages, *page.hits], page.cursor, False
    assert tuple(pages) == whole
    assert len(whole) == 40


def test_a_search_can_stay_in_one_video(index: Index) -> None:
    _show(index, [_said("word")], "vid_1")
    _show(index, [_said("word")], "vid_2")
    assert [h.video for h in search(index, "anna", "word", video="vid_2").hits] == ["vid_2"]


def test_lines_come_in_order_of_time_and_whole(index: Index) -> None:
    lines = [_said("three", 3), _said("one", 1), _said("two", 2)]
    _show(index, [*lines, _said("other", 0, kind="text")])
    assert index.lines("anna", "vid_1") == (lines[1], lines[2], lines[0])
    assert [o.text for o in index.lines("anna", "vid_1", "text")] == ["other"]


def test_what_is_dropped_is_found_no_more_and_the_rest_stays(index: Index) -> None:
    _show(index, [_said("old words")], key="old")
    _show(index, [_said("kept words")], key="kept")
    index.apply(SelectionUpdate("anna", "vid_1", (), [("speech", "old")]))
    assert [h.text for h in search(index, "anna", "words").hits] == ["kept words"]
    assert search(index, "anna", "old").total == 0


def test_a_video_that_is_gone_leaves_nothing_and_may_come_again(index: Index) -> None:
    for owner, video in (("anna", "vid_1"), ("anna", "vid_2"), ("bert", "vid_1")):
        _show(index, [_said(f"words of {video}")], video, owner)
    index.apply(TrackUpdate("anna", "vid_1", [Track("vid_1", Span(1, 9, BASE), (0, 0, 1, 1), (), b"")]))
    index.apply(CursorMove("ledger", "7", ["job-anna-vid_1"]))
    index.apply(JobRead("job-anna-vid_1", 5))
    index.apply(VideoRemoval("anna", "vid_1"))
    assert find_video(index, "anna", "vid_1") is None
    assert [h.video for h in search(index, "anna", "words").hits] == ["vid_2"]
    assert search(index, "bert", "words").total == 1
    assert (index.tracks("anna"), index.backlog(0).videos) == ((), ())
    assert index.state("anna", "vid_1") == VideoState()
    assert {result.key for result, _ in index.state("anna", "vid_2").results} == {"key-vid_2"}
    index.apply(CursorMove("ledger", "8", ["job-anna-vid_1"]))
    assert index.backlog(9).jobs == (("job-anna-vid_1", 0),)
    _show(index, [_said("other words")])
    assert [h.text for h in search(index, "anna", "other").hits] == ["other words"]


def test_a_result_is_shown_all_or_none(index: Index) -> None:
    _show(index, [_said("kept")], key="a")
    offer = IndexedResult("anna", "vid_1", "job-anna-vid_1", "transcribe", 1, "speech", "b", "sha")

    def dying() -> Iterator[Observation]:
        yield _said("first of two", 1)
        raise KeyboardInterrupt

    class Lines(Sequence[Observation]):
        def __iter__(self) -> Iterator[Observation]:
            return dying()

        def __getitem__(self, at: object) -> Observation:  # type: ignore[override]
            raise IndexError

        def __len__(self) -> int:
            return 2

    with pytest.raises(KeyboardInterrupt):
        index.apply(SelectionUpdate("anna", "vid_1", [(offer, Lines())], [("speech", "a")]))
    assert [h.text for h in search(index, "anna", "kept OR first").hits] == ["kept"]


def test_a_video_knows_its_jobs_its_languages_and_its_names(index: Index) -> None:
    facts = {"video": "v", "name": "a.mp4", "path": "day/a.mp4", "duration_us": 5, "rate": [24000, 1001]}
    old = Run(
        "job_1", "anna", "v", "subtitles", "completed", "2026-01-01", facts | {"name": "old.mp4", "path": "old.mp4"}
    )
    new = Run("job_2", "anna", "v", "searchable", "chunking_complete", "2026-01-02", facts)
    names = {"thumbs/v/poster.jpg": "k", "videos/proxy/v/index.m3u8": "k"}
    index.apply(RunUpdate(new, (), names))
    index.apply(RunUpdate(old))
    offer = IndexedResult("anna", "v", "job_1", "transcribe", 0, "speech", "k", "sha")
    index.apply(SelectionUpdate("anna", "v", [(offer, [_said("un", language="fr"), _said("one"), _said("two")])], ()))
    video = find_video(index, "anna", "v")
    assert video is not None
    assert (video.name, video.path, video.rate, video.job, video.state) == (
        "a.mp4", "day/a.mp4", (24000, 1001), "job_2", "chunking_complete")  # fmt: skip
    assert (video.added_at, video.jobs, video.languages) == ("2026-01-01", ("job_2", "job_1"), ("en", "fr"))
    assert video.paths == ("day/a.mp4", "old.mp4")
    assert (video.poster, video.proxy) == ("thumbs/v/poster.jpg", "videos/proxy/v/index.m3u8")
    index.apply(VideoRename("anna", "v", "Holiday"))
    assert search(index, "anna", "one").hits[0].name == "Holiday"
    index.apply(VideoRename("anna", "v", None))
    assert find_video(index, "anna", "v") == video
    index.apply(ResultRemoval("anna", ["k"]))
    again = find_video(index, "anna", "v")
    assert again is not None
    assert again.poster == ""


def test_videos_come_newest_first_in_pages(index: Index) -> None:
    for n in range(1, 6):
        _show(index, [_said("x")], f"vid_{n}")
    found: list[Video] = []
    cursor, first = "", True
    while cursor or first:
        page, cursor = index.videos("anna", cursor, 2)
        found, first = [*found, *page], False
    assert [v.id for v in found] == ["vid_5", "vid_4", "vid_3", "vid_2", "vid_1"]
    assert index.videos("anna", "not a cursor")[0] == tuple(found)


def test_a_name_that_is_no_text_is_kept_by_every_store(index: Index) -> None:
    facts = {"name": "a\0b\udcff.mp4", "shot_at": "\0"}
    index.apply(RunUpdate(Run("j", "anna", "v", "", "completed", "2026", facts)))
    assert [v.name for v in index.videos("anna")[0]] == ["a b\ufffd.mp4"]


def test_a_summary_says_what_there_is_to_find(index: Index) -> None:
    assert index.summary("anna").videos == 0
    _show(index, [_said("a"), _said("b", 1, language="de"), _said("c", 2, kind="text", language="")])
    summary = index.summary("anna")
    assert (summary.videos, summary.duration_us) == (1, 9_000_000)
    assert (summary.kinds, summary.languages) == ({"speech": 2, "text": 1}, {"en": 1, "de": 1})


def test_what_is_queued_stays_queued_until_it_was_read(index: Index) -> None:
    index.apply(CursorMove("ledger", "7", ["b", "a"]))
    assert index.cursor("ledger") == "7"
    assert index.cursor("records") == ""
    assert index.backlog(9).jobs == (("a", 0), ("b", 0))
    index.apply(JobRead("a", 3))
    assert index.backlog(9).jobs == (("b", 0),)
    index.apply(CursorMove("ledger", "8", ["a"]))
    assert index.backlog(1).jobs == (("a", 3),)


def test_a_reset_index_is_empty_and_works(index: Index) -> None:
    _show(index, [_said("word")])
    index.apply(CursorMove("ledger", "7", ["a"]))
    index.apply(Reset())
    assert (search(index, "anna", "word").total, index.cursor("ledger"), index.backlog(1).jobs) == (0, "", ())
    _show(index, [_said("word")])
    assert search(index, "anna", "word").total == 1


def test_what_people_said_instead_is_listed_and_found_until_it_is_taken_back(index: Index) -> None:
    _show(index, [_said("ask not what", 0), _said("kept", 9)])
    index.apply(
        CorrectionUpdate("anna", "c", Correction("c", "vid_1", "speech", 0, 3_000_000, "Ask\0 the \ud800 whale"))
    )
    assert [o.span.start_us for o in index.lines("anna", "vid_1")] == [0, 9_000_000]
    assert [(h.start_us, h.end_us) for h in search(index, "anna", "whale").hits] == [(0, 3_000_000)]
    assert search(index, "anna", "not").total == 0
    index.apply(CorrectionUpdate("anna", "c", None))
    assert search(index, "anna", "whale OR not").hits[0].text == "ask not what"


def test_tracks_are_kept_as_they_are_and_replaced_by_video(index: Index) -> None:
    box = (0.1, 0.2, 0.3, 0.4)
    tracks = [Track(v, Span(n, 9, BASE), box, ((Span(n, 9, BASE), box, 0.5),), b"\0\xff") for v in "ab" for n in (1, 2)]
    index.apply(TrackUpdate("anna", "b", tracks[2:]))
    index.apply(TrackUpdate("anna", "a", tracks[:2]))
    assert index.tracks("anna") == tuple(tracks)
    assert index.tracks("bert") == ()
    index.apply(TrackUpdate("anna", "a", []))
    assert index.tracks("anna") == tuple(tracks[2:])


def test_a_choice_can_be_opened_again(index: Index) -> None:
    _show(index, [_said("a")], "vid_1")
    _show(index, [_said("a")], "vid_2")
    assert index.backlog(0).videos == ()
    index.apply(Reselection("anna", "vid_2"))
    assert index.backlog(0).videos == (("anna", "vid_2"),)
    index.apply(Reselection("anna"))
    assert index.backlog(0).videos == (("anna", "vid_1"), ("anna", "vid_2"))


def test_labels_and_the_catalog_say_what_there_is(index: Index) -> None:
    _show(index, [_said("dog", 1, "object"), _said("dog", 9, "object"), _said("cat", 1, "object")])
    assert index.summary("anna").labels == {"object": {"dog": 2, "cat": 1}}
    index.apply(VideoRename("anna", "vid_1", "Holiday"))
    assert [(s.id, s.name, s.shot_at) for s in index.catalog("anna")] == [("vid_1", "Holiday", "2026-01-01")]
    assert index.catalog("anna", ["vid_1", "vid_2"]) == index.catalog("anna")
    assert (
        index.videos("anna", ids=["vid_2", "vid_1", "vid_1"])[0]
        == index.videos("anna")[0]
        == (find_video(index, "anna", "vid_1"),)
    )
    assert index.videos("anna", ids=[]) == index.videos("bert", ids=["vid_1"]) == ((), "")
    assert index.catalog("anna", []) == index.catalog("anna", ["vid_2"]) == index.catalog("bert") == ()


def test_a_video_is_found_by_its_name_and_by_what_is_in_it(index: Index) -> None:
    _show(index, [_said("one beach", 1)])
    _show(index, [_said("other beach", 1)], "vid_2")
    assert [hit.video for hit in search(index, "anna", "name:vid_2").hits] == ["vid_2"]
    index.apply(VideoRename("anna", "vid_1", "Été à Nice"))
    (hit,) = search(index, "anna", "nice").hits
    assert (hit.video, hit.kind, hit.start_us, _marked(hit)) == ("vid_1", "name", 0, "Été à [Nice]")
    (hit,) = search(index, "anna", "ete beach").hits
    assert (hit.video, hit.kind, hit.text) == ("vid_1", "speech", "one beach")
    assert search(index, "anna", "name:nice").total == 1
    index.apply(VideoRename("anna", "vid_1", None))
    assert not search(index, "anna", "nice").total


def test_shots_are_found_by_what_happens_in_them(index: Index) -> None:
    shots = [Observation("shot", Span(n * 16000, (n + 5) * 16000, BASE), f"shot {n}", 1.0) for n in (0, 5, 10)]
    _show(index, [*shots, _said("anna", 1, "person"), _said("anna", 6, "person"), _said("anna", 8, "person")])
    assert [hit.text for hit in search(index, "anna", "kind:shot", order="time").hits] == [
        "shot 0",
        "shot 5",
        "shot 10",
    ]
    found = search(index, "anna", "kind:shot person:anna", order="time").hits
    assert [(hit.kind, hit.start_us, hit.end_us) for hit in found] == [
        ("shot", 0, 5_000_000),
        ("shot", 5_000_000, 10_000_000),
    ]
    assert {hit.kind for hit in search(index, "anna", "shot").hits} <= {"name"}


def test_a_place_that_was_not_recognised_is_nothing_to_find(index: Index) -> None:
    _show(index, [_said("unknown", 1, "place"), _said("beach", 2, "place"), _said("unknown", 3)])
    assert [hit.kind for hit in search(index, "anna", "unknown").hits] == ["speech"]
    assert index.summary("anna").labels["place"] == {"beach": 1}


def test_a_hit_begins_at_the_first_occurrence_and_names_each(index: Index) -> None:
    said = (("gold", 0, 32000, 1.0), ("and", 32000, 64000, 1.0), ("gold", 64000, 80000, 1.0))
    longer = Observation("speech", Span(0, 10 * 16000, BASE), "gold and gold", 0.9, "en", said)
    _show(index, [longer, _said("gold", 20)])
    first, second = search(index, "anna", "gold", order="time").hits
    assert (first.start_us, [s.start_us for s in first.times]) == (0, [0, 4_000_000])
    visited, at = [], -1
    while hit := next_hit(index, "anna", "gold", "vid_1", at):
        at = hit.start_us
        visited.append(at)
    assert visited == [0, 4_000_000, second.start_us]
    back = next_hit(index, "anna", "gold", "vid_1", second.start_us, back=True)
    assert back is not None
    assert back.start_us == 4_000_000


@pytest.mark.parametrize("link", ["before", "during", "near:9s"])
def test_a_linked_hit_is_told_as_what_stands_first(index: Index, link: str) -> None:
    start, end = {"before": (2, 3), "during": (0, 9), "near:9s": (4, 5)}[link]
    said = Observation("speech", Span(16000, 32000, BASE), "budget", 1.0, "en")
    _show(index, [said, Observation("text", Span(start * 16000, end * 16000, BASE), "q3", 1.0)])
    (hit,) = search(index, "anna", f"say:budget {link} text:q3").hits
    assert (hit.kind, hit.text, hit.start_us) == ("speech", "budget", 1_000_000)


VOCABULARY = ["ask", "asked", "not", "country", "été", "Été", "1,000", "don't", "日本", "a", "a."]
KINDS = ["speech", "speech", "text", "object", "person"]
FIELDS = ["say", "text", "object", "person"]
PLAIN = st.one_of(
    st.sampled_from(VOCABULARY),
    st.sampled_from(VOCABULARY).map(lambda w: w[:2] + "*"),
    st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=3).map(lambda ws: f'"{" ".join(ws)}"'),
)
TERMS = st.one_of(
    PLAIN, st.tuples(st.sampled_from(FIELDS), PLAIN).map(":".join), st.sampled_from(["object:*", "say:*"])
)
PARTS = st.one_of(TERMS, TERMS, TERMS.map("-{}".format), st.just("OR"))
LINKS = st.sampled_from(["near:1s", "near:0s", "NEAR", "before", "BEFORE", "before:2s", "DURING", "WITH"])
QUERIES = st.one_of(
    st.lists(PARTS, max_size=5).map(" ".join),
    st.tuples(TERMS, TERMS, PARTS).map(lambda ts: "({} OR {}) {}".format(*ts)),
    st.tuples(TERMS, TERMS, TERMS).map(lambda ts: "{} NOT ({} {})".format(*ts)),
    st.tuples(TERMS, LINKS, TERMS).map(" ".join),
    st.tuples(TERMS, LINKS, TERMS, st.one_of(LINKS, st.just(""), st.just("-")), TERMS).map(" ".join),
)
LINES = st.lists(
    st.tuples(
        st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=5).map(" ".join),
        st.sampled_from(KINDS),
        st.sampled_from([0.0, 0.5, 1.0, 2.5, 4.0]),
    ),
    max_size=7,
)


LONGER = [("yes", "text", 4.0), ("no no", "object", 2.5), ("a. no yes no", "text", 4.0), ("no a. no", "speech", 0.0),
          ("no yes no", "person", 2.5)]  # fmt: skip
EQUAL = [("yes no", "text", 0.0), ("a. no no", "person", 4.0), ("no no yes", "speech", 0.5),
         ("yes no yes no", "object", 0.0)]  # fmt: skip


@given(library=st.lists(LINES, max_size=2), queries=st.lists(QUERIES, min_size=1, max_size=6))
@example(library=[LONGER], queries=["n* yes"])
@example(library=[EQUAL], queries=["no no", "no n* no", "n* no"])
@settings(suppress_health_check=list(HealthCheck), max_examples=60)
def test_it_finds_exactly_what_a_look_at_everything_finds(
    make: Make, library: list[list[tuple[str, str, float]]], queries: list[str]
) -> None:
    index = make()
    videos = {f"vid_{n}": _film(some) for n, some in enumerate(library, 1)}
    for video, lines in videos.items():
        _show(index, lines, video)
    videos = {video: [*lines, _named(video)] for video, lines in videos.items()}
    for text in queries:
        assert _found(search(index, "anna", text, limit=1000)) == search_oracle.look(videos, parse(text)), text


def _named(video: str) -> Observation:
    """The name of a video is there from its beginning to its end."""
    return Observation("name", Span(0, 9_000_000, Fraction(1, 1_000_000)), f"{video}.mp4", 1.0)


def _film(parts: list[tuple[str, str, float]]) -> list[Observation]:
    """What is said follows itself after a pause; what is seen comes at its own pace."""
    clocks: dict[str, float] = {}
    lines: list[Observation] = []
    for text, kind, pause in parts:
        at = clocks.get(kind, 0.0) + pause
        lines.append(_said(text, at, kind))
        clocks[kind] = at + len(text.split())
    return lines


def _found(answer: SearchResult) -> set[search_oracle.Seen]:
    seen = [(h.video, h.kind, h.line.start_us, h.text, h.start_us, h.end_us) for h in answer.hits]
    assert answer.total == len(seen) == len(set(seen))
    assert answer.videos == len({h.video for h in answer.hits})
    assert answer.facets.get("kind", {}) == {
        k: sum(h.kind == k for h in answer.hits) for k in {h.kind for h in answer.hits}
    }
    return set(seen)
