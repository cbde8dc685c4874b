"""Forty queries over a library whose contents are known: each finds exactly what was planted, to the sample."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from rushes.domain.errors import NotFound, Refused
from rushes.domain.keys import JSON
from rushes.index.port import Hit
from rushes.library import Library
from rushes.surfaces.cli.main import main
from tests.acceptance.synthetic_library import Film, films, plant, planted
from tests.api.kit import serving

Spot = tuple[int, float, float]  # film, start and end in seconds

FILLERS = [(n, 5.0, 5.25) for n in range(11, 31)]
GERMAN = [(n, 20.0, 20.25) for n in (15, 20, 25, 30)]
QUERIES: list[tuple[str, list[Spot]]] = [
    ("budget", [(1, 10.25, 10.5), (2, 10.25, 10.5), (3, 10, 10.25)]),
    ("BUDGET tight", [(1, 10.25, 11.75)]),
    ('"budget for next"', [(1, 10.25, 11.0)]),
    ('"for budget"', []),
    ("budg*", [(1, 10.25, 10.5), (2, 10.25, 10.5), (3, 10, 10.25)]),
    ("budget -tight", [(2, 10.25, 10.5), (3, 10, 10.25)]),
    ("tight OR surfboard", [(1, 11.5, 11.75), (7, 6, 9)]),
    ("say:q3", []),
    ("text:q3", [(1, 9, 15), (2, 20, 25)]),
    ("say:budget text:q3", [(1, 10.25, 10.5)]),
    ("say:budget near:5s text:q3", [(1, 10.25, 10.5)]),
    ("say:budget near:10s text:q3", [(1, 10.25, 10.5), (2, 10.25, 25)]),
    ("say:budget before text:q3", [(2, 10.25, 25)]),
    ("say:budget before:5s text:q3", []),
    ("say:budget during text:q3", [(1, 10.25, 10.5)]),
    ("text:q3 during say:budget", []),
    ("say:budget near:5s object:laptop", [(1, 10.25, 10.5), (3, 10, 15)]),
    ("say:budget object:laptop person:anna text:q3", [(1, 10.25, 10.5)]),
    ("budget -object:laptop", [(2, 10.25, 10.5), (3, 10, 10.25)]),
    ("object:laptop", [(1, 8, 14), (3, 13, 15), (3, 40, 42)]),
    ('"your country can"', [(4, 11.25, 12.25)]),
    ("ask country", [(4, 10.75, 12.0)]),
    ("you tomorrow", []),
    ('"you tomorrow"', []),
    ("ete", [(5, 3.5, 3.75)]),
    ("lang:fr ou", [(5, 3, 3.25)]),
    ("-lang:fr l", []),
    ("year", [(1, 11, 11.25), (5, 21, 21.25)]),
    ("sale", [(6, 2, 8), (6, 30, 34)]),
    ("entity:50", [(6, 2, 8)]),
    ("object:dog place:beach", [(7, 5, 8)]),
    ("object:dog before place:beach", [(8, 5, 40)]),
    ("object:dog object:surfboard", [(7, 6, 8)]),
    ("person:bert", [(2, 9, 12), (9, 5, 9), (10, 7, 12)]),
    ("person:anna person:bert", [(10, 7, 9)]),
    ("person:bert say:hello text:studio", [(9, 6, 6.25)]),
    ("hello in:clip_10", [(10, 15.25, 15.5)]),
    ("filler date:2011..2012 in:office", [s for s in FILLERS if s[0] % 3 and s[0] > 11]),
    ("kind:text lang:de tagesordnung", [(n, 19, 23) for n in (15, 20, 25, 30)]),
    ("1000 reasons", [(17, 30.75, 31.25)]),
    ("say:guten OR person:carl", [*GERMAN, (17, 3, 6)]),
    ("NEAR( \"'; DROP budget", []),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """The films, and names for those who are seen in them."""
    with Library(tmp_path_factory.mktemp("planted") / ".rushes") as library:
        planted(library, films())
        _name_everybody(library)
        yield library


def _name_everybody(library: Library) -> None:
    for name, film in (("Anna", 1), ("Bert", 9), ("Carl", 17)):
        (who,) = (p.id for p in library.people.all() if f"vid_film{film:02d}" in p.videos and not p.name)
        library.people.name(who, name)


def _spots(hits: tuple[Hit, ...]) -> list[Spot]:
    return sorted((int(h.video[-2:]), h.start_us / 1e6, h.end_us / 1e6) for h in hits)


def _answers(library: Library) -> list[tuple[Hit, ...]]:
    return [library.search(query, 1000).hits for query, _ in QUERIES]


@pytest.mark.parametrize(("query", "spots"), QUERIES, ids=[q for q, _ in QUERIES])
def test_a_query_finds_exactly_what_was_planted(library: Library, query: str, spots: list[Spot]) -> None:
    found = library.search(query, 1000)
    assert _spots(found.hits) == sorted(spots)
    assert found.total == len(spots)
    assert sum(found.facets.get("video", {}).values()) == len(spots)


def test_there_are_at_least_forty() -> None:
    assert len(QUERIES) >= 40


def test_a_hit_says_everything_that_makes_it_one(library: Library) -> None:
    (hit,) = library.search('say:budget object:laptop person:anna text:"q3 results"').hits
    assert sorted({(m.kind, m.text) for m in hit.matched}) == [
        ("object", "laptop"),
        ("person", "Anna"),
        ("speech", "the budget for next year is tight"),
        ("text", "Q3 Results"),
    ]
    assert (hit.span.start_us, hit.span.end_us) == (10_250_000, 10_500_000)
    assert hit.pieces == (("the ", False), ("budget", True), (" for next year is tight", False))


def test_an_empty_query_says_what_there_is_to_find(library: Library) -> None:
    there = library.summary()
    assert there.videos == 30
    assert there.labels["person"] == {"Bert": 3, "Anna": 2, "Carl": 1}
    assert there.labels["place"] == {"beach": 2}
    assert there.labels["object"]["chair"] == 10


def test_hits_are_walked_across_the_library_as_they_were_shot(library: Library) -> None:
    walked, at = [], ("vid_film01", -1)
    while hit := library.next_hit("budget OR person:carl", *at):
        walked.append(hit.video)
        at = hit.video, hit.start_us
    assert walked == ["vid_film01", "vid_film02", "vid_film03", "vid_film17"]
    before = library.next_hit("budget OR person:carl", *at, back=True)
    assert before is not None
    assert before.video == "vid_film03"


def test_another_index_gives_the_same_answers(library: Library) -> None:
    answers, people = _answers(library), library.people.all()
    library.maintenance.reindex()
    assert _answers(library) == answers
    assert library.people.all() == people


def _small(tmp_path: Path) -> Library:
    library = Library(tmp_path / ".rushes")
    planted(library, films()[:10])
    return library


def test_names_and_corrections_outlive_another_model_and_another_index(tmp_path: Path) -> None:
    with _small(tmp_path) as library:
        (anna,) = (p.id for p in library.people.all() if "vid_film01" in p.videos)
        library.people.name(anna, "Anna")
        film = library.videos.find("vid_film01")
        library.videos.correct(film, 10_000_000, 11_750_000, "The gadget for next year is light.")
        assert _spots(library.search("gadget").hits) == [(1, 10, 11.75)]
        again = Film(1).say(9.75, "well the").say(10.25, "budget for next year it's").say(11.75, "tight indeed")
        plant(library, again.face(8, 15, "anna", 0.41), take="b", profile="high_quality")
        for _ in range(2):
            assert library.search("budget", video="vid_film01").total == 0
            assert [h.text for h in library.search("gadget").hits] == ["The gadget for next year is light."]
            assert [h.text for h in library.search("indeed OR well").hits] == ["tight indeed", "well"]
            assert _spots(library.search("person:anna").hits) == [(1, 8, 15), (10, 5, 9)]
            assert b"gadget" in library.videos.export(library.videos.find("vid_film01"), "srt")
            library.maintenance.reindex()
        (said,) = (r.id for r in library.home.records.list("correction", library.home.settings.owner)[0])
        library.videos.undo_correction(said)
        assert library.search("gadget").total == 0
        assert library.search("budget", video="vid_film01").total == 1


def test_people_are_merged_split_and_hidden(tmp_path: Path) -> None:
    with _small(tmp_path) as library:
        ids = {tuple(p.videos): p.id for p in library.people.all()}
        anna, bert = ids["vid_film01", "vid_film10"], ids["vid_film02", "vid_film09", "vid_film10"]
        library.people.merge(bert, anna)
        assert len(library.people.all()) == 1
        library.people.split(library.people.all()[0].id, "vid_film09", 6_500_000, "Bert")
        seen = {p.name: p.videos for p in library.people.all()}
        assert seen == {
            "Bert": ("vid_film02", "vid_film09"),
            "": ("vid_film01", "vid_film10"),
        }  # merged by film 10's face
        library.people.hide("Bert")
        assert library.search("person:bert").total == 0
        assert [p.name for p in library.people.all()] == [""]
        library.maintenance.reindex()
        assert library.search("person:bert").total == 0
        library.people.hide("Bert", hidden=False)
        assert library.search("person:bert").total == 2


def test_a_name_keeps_the_id_and_capitals_make_no_other_person(tmp_path: Path) -> None:
    with _small(tmp_path) as library:
        ids = {tuple(p.videos): p.id for p in library.people.all()}
        anna, bert = ids["vid_film01", "vid_film10"], ids["vid_film02", "vid_film09", "vid_film10"]
        library.people.name(anna, "Anna")
        assert {p.name: p.id for p in library.people.all()} == {"Anna": anna, "": bert}
        library.people.name(anna, "Anna K")  # the id that the first command was given
        library.people.name(bert, "anna k")
        (both,) = library.people.all()
        assert both.name == "Anna K"
        for id in (anna, bert):
            library.people.hide(id)
            assert library.people.all() == []
            library.people.hide(id, hidden=False)
        library.people.undo()
        library.maintenance.reindex()
        assert [p.id for p in library.people.all(hidden=True)] == [both.id]


def test_what_was_said_about_people_is_taken_back_step_by_step(tmp_path: Path) -> None:
    with _small(tmp_path) as library:
        states = [library.people.all(hidden=True)]
        bert, anna = (p.id for p in library.people.all())
        acts = (
            lambda: library.people.name(bert, "Bert"),
            lambda: library.people.merge(anna, "Bert"),
            lambda: library.people.split("Bert", "vid_film01", 8_500_000),
            lambda: library.people.hide("Bert"),
        )
        for act in acts:
            act()
            states.append(library.people.all(hidden=True))
        assert [states[n] == states[n + 1] for n in range(4)] == [False] * 4
        told = []
        for before in states[-2::-1]:
            told.append(library.people.undo())
            assert library.people.all(hidden=True) == before
        assert told[-1] == f"{bert} was named Bert"
        with pytest.raises(NotFound):
            library.people.undo()


def test_a_thing_seen_in_look_after_look_is_one_row_of_a_table(library: Library) -> None:
    rows = list(csv.DictReader(io.StringIO(library.videos.export(library.videos.find("vid_film03"), "csv").decode())))
    seen = [(r["text"], r["start_us"], r["end_us"]) for r in rows if r["kind"] == "object"]
    assert seen == [("laptop", "13000000", "15000000"), ("laptop", "40000000", "42000000")]
    assert library.videos.export(library.videos.find("vid_film03"), "jsonl").count(b'"laptop"') == 4


def test_runs_are_compared_and_one_is_chosen(tmp_path: Path) -> None:
    with _small(tmp_path) as library:
        first = library.videos.find("vid_film02").job
        second = plant(library, Film(2).say(10, "the gadget").face(9, 12, "bert"), take="b", profile="fast")
        found = library.videos.compare(library.videos.find("vid_film02"), first, second)
        assert [(r.left, r.right, r.same) for r in found.rows] == [("the budget", "the gadget", False)]
        assert library.search("gadget").total == 1
        library.videos.select_run(library.videos.find("vid_film02"), "speech", first)
        assert (library.search("gadget").total, library.search("budget", video="vid_film02").total) == (0, 1)
        library.videos.select_run(library.videos.find("vid_film02"), "speech", "")
        assert library.search("gadget").total == 1


def test_pages_and_downloads_show_the_run_that_was_chosen(tmp_path: Path) -> None:
    with _small(tmp_path) as library:
        plant(library, Film(2).say(10, "the gadget"), take="b", profile="fast")
    with serving(tmp_path / ".rushes") as server:
        places = ("/videos/vid_film02", "/api/v1/videos/vid_film02/exports/jsonl", "/search?q=the&video=vid_film02")

        def shown() -> list[str]:
            texts = [server.http.get(place, headers={"Accept": "text/html"}).text for place in places]
            return [" ".join(word for word in ("budget", "gadget") if word in text) for text in texts]

        assert shown() == ["gadget"] * 3
        server.library.videos.select_run(server.library.videos.find("vid_film02"), "speech", profile="balanced")
        assert shown() == ["budget"] * 3


def test_a_profile_is_chosen_for_a_video_or_for_all_by_command_and_read_by_search_and_exports(tmp_path: Path) -> None:
    with _small(tmp_path) as library:
        plant(library, Film(2).say(10, "the gadget"), take="b", profile="fast")

    def rushes(*words: str) -> dict[str, JSON]:
        ran = CliRunner().invoke(main, ["--home", str(tmp_path / ".rushes"), *words, "--json"])
        assert ran.exit_code == 0, ran.output
        return dict(json.loads(ran.stdout))

    def read() -> tuple[int, bool]:
        with Library(tmp_path / ".rushes") as library:
            text = library.videos.export(library.videos.find("vid_film02"), "jsonl")
            return library.search("gadget").total, b"gadget" in text

    assert read() == (1, True), "the newest"
    rushes("select", "all", "speech", "--profile", "balanced")
    assert read() == (0, False)
    rushes("select", "vid_film02", "speech", "--profile", "fast")
    assert read() == (1, True), "what is said of one video goes first"
    rushes("select", "vid_film02", "speech", "--run", "job_film02")
    assert read() == (0, False)
    assert rushes("select", "vid_film02", "speech", "--latest")["run"] == ""
    assert read() == (1, True)


def _told(library: Library) -> list[object]:
    return [
        (h.video, h.name, h.span, h.matched) for h in library.search("say:budget near:5s text:q3 object:laptop").hits
    ]


def test_the_commands_name_compare_and_index(tmp_path: Path) -> None:
    with _small(tmp_path):
        pass

    def rushes(*words: str) -> dict[str, JSON]:
        ran = CliRunner().invoke(main, ["--home", str(tmp_path / ".rushes"), *words, "--json"])
        assert ran.exit_code == 0, ran.output
        return dict(json.loads(ran.stdout))

    first = rushes("people", "ls")["people"][0]["id"]
    rushes("people", "name", first, "Bert")
    assert rushes("search", "person:bert")["total"] == 3
    assert rushes("people", "undo")["undone"] == f"{first} was named Bert"
    assert rushes("search", "person:bert")["total"] == 0
    rushes("people", "name", first, "Bert")
    rushes("people", "hide", "Bert")
    assert rushes("search", "person:bert")["total"] == 0
    assert rushes("people", "ls", "--hidden")["people"][0]["hidden"]
    job = rushes("show", "vid_film01")["video"]["job"]
    assert rushes("compare", "vid_film01", job, job)["alike"] == 1.0
    assert rushes("index")["summary"]["videos"] == 10


def test_a_lost_home_is_searchable_again_by_what_lies_beside_the_films(tmp_path: Path) -> None:
    film = tmp_path / "office" / "clip_01.mp4"
    film.parent.mkdir()
    film.write_bytes(b"")
    with _small(tmp_path) as library:
        written = library.videos.write_sidecars(library.videos.find("vid_film01"))
        assert not [f.kept for f in written if f.kept]
        answer = _told(library)
    names = {p.name for p in film.parent.iterdir()}
    assert names >= {"clip_01.rushes.jsonl", "clip_01.words.json", "clip_01.csv"}
    with Library(tmp_path / "new" / ".rushes") as other:
        (read,) = other.maintenance.read_sidecars([tmp_path / "office"])
        assert (read.video, read.kept) == ("vid_film01", "")
        assert _told(other) == answer
        other.maintenance.reindex()
        assert _told(other) == answer
        other.maintenance.gc()
        assert other.search("budget").total == 1


def test_people_are_known_again_by_what_lies_beside_one_film(tmp_path: Path) -> None:
    """The name was given in another film, which is lost."""
    with _small(tmp_path) as library:
        (anna,) = (p.id for p in library.people.all() if "vid_film01" in p.videos)
        library.people.name(anna, "Anna")
        film = tmp_path / library.videos.find("vid_film10").path
        film.parent.mkdir(exist_ok=True)
        film.write_bytes(b"")
        library.videos.write_sidecars(library.videos.find("vid_film10"))
    with Library(tmp_path / "new" / ".rushes") as other:
        other.maintenance.read_sidecars([film.parent])
        for _ in range(2):
            assert _spots(other.search("person:anna").hits) == [(10, 5, 9)]
            assert [(p.name, p.faces) for p in other.people.all()] == [("Anna", 4), ("", 5)]
            other.maintenance.reindex()
        (bert,) = (p.id for p in other.people.all() if not p.name)
        other.people.name(bert, "Bert")
        other.maintenance.read_sidecars([film.parent])
        assert _spots(other.search("person:anna person:bert").hits) == [(10, 7, 9)]
        other.people.hide("Anna")
        other.maintenance.read_sidecars([film.parent])
        assert other.search("person:anna").total == 0


def test_all_hits_go_to_other_tools(library: Library) -> None:
    rows = library.export_hits("budget OR person:bert", "csv").decode().splitlines()
    assert len(rows) == 1 + library.search("budget OR person:bert").total
    lines = [json.loads(line) for line in library.export_hits("person:bert", "jsonl").splitlines()]
    assert [(row["video"], row["start_us"]) for row in lines] == [
        (hit.video, hit.start_us) for hit in library.search("person:bert", order="time").hits
    ]
    with pytest.raises(NotFound):
        library.export_hits("nothing like it anywhere", "csv")
    with pytest.raises(Refused):
        library.export_hits("budget", "pdf")
