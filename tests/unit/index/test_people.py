"""People: told apart alike in whatever order films came, named and told apart by what somebody said at a place."""

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.engines.models.vision import pack_embeddings
from rushes.index.changes import Track
from rushes.index.people import FaceLabel, Person
from rushes.index.people.face_clustering import _covers, _overlap, is_clear, persons, tracks_of, with_embeddings

BOX = (0.4, 0.2, 0.1, 0.2)


def _embedding(who: int, wobble: float) -> np.ndarray:
    found = np.zeros(8, np.float32)
    found[who], found[7] = 1.0, wobble
    return np.asarray(found / np.linalg.norm(found), np.float32)


def _faces(*seen: tuple[int, int], x: float = 0.4) -> list[tuple[Observation, np.ndarray]]:
    """(second, who)."""
    return [
        (
            Observation("face", Span(at, at + 1, Fraction(1)), "", 0.9, box=(x, 0.2, 0.1, 0.2)),
            _embedding(who, at % 3 / 9),
        )
        for at, who in seen
    ]


def _library() -> list[Track]:
    films = {"a": [(0, 1), (1, 1), (9, 2)], "b": [(3, 1), (4, 2)], "c": [(0, 3)]}
    return [track for video, seen in films.items() for track in tracks_of(video, _faces(*seen))]


def _who(found: list[Person]) -> dict[str, list[tuple[str, int]]]:
    return {p.name: [(t.video, t.detections[0][0].start) for t in p.tracks] for p in found if p.name}


def test_a_face_is_followed_until_it_is_gone() -> None:
    tracks = tracks_of("v", [*_faces((0, 1), (1, 1), (5, 1)), *_faces((0, 2), (1, 2), x=0.7)])
    assert sorted([span.start for span, _, _ in t.detections] for t in tracks) == [[0, 1], [0, 1], [5]]


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_in_which_films_came_changes_nothing(chance: random.Random) -> None:
    tracks = _library()
    mixed = list(tracks)
    chance.shuffle(mixed)
    assert persons(mixed, []) == persons(tracks, [])
    assert len(persons(tracks, [])) == 3


def test_nobody_is_nobody() -> None:
    assert persons([], []) == []
    assert tracks_of("v", []) == []


def test_a_name_holds_for_every_face_that_is_alike() -> None:
    assert _who(persons(_library(), [FaceLabel("b", 3_000_000, 4_000_000, BOX, "Anna")])) == {
        "Anna": [("a", 0), ("b", 3)]
    }


def test_a_mark_that_stands_on_nothing_names_nobody() -> None:
    assert _who(persons(_library(), [FaceLabel("b", 90_000_000, 91_000_000, BOX, "Anna")])) == {}
    assert _who(persons(_library(), [FaceLabel("b", 3_000_000, 4_000_000, (0.9, 0.9, 0.1, 0.1), "Anna")])) == {}


def test_two_with_one_name_are_one_and_one_with_two_names_is_two() -> None:
    anna, also = FaceLabel("a", 0, 1_000_000, BOX, "Anna"), FaceLabel("a", 9_000_000, 10_000_000, BOX, "Anna")
    assert _who(persons(_library(), [anna, also])) == {"Anna": [("a", 0), ("a", 9), ("b", 3), ("b", 4)]}
    bert = FaceLabel("b", 3_000_000, 4_000_000, BOX, "Bert")
    assert _who(persons(_library(), [anna, bert])) == {"Anna": [("a", 0)], "Bert": [("b", 3)]}


def test_another_models_faces_are_nobodys() -> None:
    other = Track("d", Span(0, 1, Fraction(1)), BOX, ((Span(0, 1, Fraction(1)), BOX, 0.9),), np.ones(4, "f4").tobytes())
    assert len(persons([*_library(), other], [])) == 4


def test_names_that_differ_in_capitals_or_spaces_are_one_person() -> None:
    anna, also = (
        FaceLabel("a", 0, 1_000_000, BOX, "Anna Karenina"),
        FaceLabel("c", 0, 1_000_000, BOX, "anna  KARENINA "),
    )
    assert _who(persons(_library(), [anna, also])) == {"Anna Karenina": [("a", 0), ("b", 3), ("c", 0)]}
    assert persons(_library(), [also, anna]) == persons(_library(), [anna, also])


def test_a_named_person_keeps_the_id_that_it_had() -> None:
    before = {p.tracks: p.id for p in persons(_library(), [])}
    (named,) = [
        p for p in persons(_library(), [FaceLabel("b", 3_000_000, 4_000_000, BOX, "Anna", "per_had")]) if p.name
    ]
    assert named.id == "per_had"
    others = [p for p in persons(_library(), []) if p.tracks != named.tracks]
    assert all(before[p.tracks] == p.id for p in others)


def test_two_that_become_one_by_name_are_found_by_both_ids() -> None:
    one, other = FaceLabel("a", 0, 1_000_000, BOX, "Anna", "per_b"), FaceLabel("c", 0, 1_000_000, BOX, "Anna", "per_a")
    (anna,) = [p for p in persons(_library(), [one, other]) if p.name]
    assert {anna.id, *anna.aliases} == {"per_a", "per_b"}


def test_no_two_people_have_one_id() -> None:
    """A face that gave a person its id may belong to another group later."""
    taken = {p.id for p in persons(_library(), []) if p.tracks[0].video == "c"}.pop()
    found = persons(_library(), [FaceLabel("a", 0, 1_000_000, BOX, "Anna", taken)])
    assert len({p.id for p in found}) == len(found) == 3


def _quality(confidence: float = 0.9, eyes: float = 40, apart: float = 0.4, sharpness: float = 200) -> Observation:
    box = (0.4, 0.2, 0.1, 0.2)
    points = [[0.42, 0.25], [0.42 + apart * box[2], 0.25]]
    extra = {"row": 0, "points": points, "eyes": eyes, "sharpness": sharpness}
    return Observation("face", Span(0, 1, Fraction(1)), "", confidence, box=box, extra=extra)


@pytest.mark.parametrize(
    "bad", [{"confidence": 0.84}, {"eyes": 12.0}, {"apart": 0.2}, {"sharpness": 5.0}], ids=lambda bad: next(iter(bad))
)
def test_what_cannot_be_recognised_joins_no_group(bad: dict[str, float]) -> None:
    data = pack_embeddings(np.array([_embedding(1, 0)]))
    assert len(with_embeddings([_quality()], data, 8)) == 1
    assert with_embeddings([_quality(**bad)], data, 8) == []


def test_a_face_without_measures_of_its_quality_joins_no_group() -> None:
    assert not is_clear(Observation("face", Span(0, 1, Fraction(1)), "", 0.9, box=BOX, extra={"row": 0}))


@pytest.mark.parametrize(
    ("start_us", "end_us", "covers"), [(5, 5, 1.0), (5, 9, 1.0), (6, 9, 0.0), (0, 5, 0.0), (0, 6, 1.0)]
)
def test_a_label_of_one_moment_is_for_who_is_seen_then(start_us: int, end_us: int, covers: float) -> None:
    assert _covers(FaceLabel("v", 5, 5, None), start_us, end_us, BOX) == covers


@pytest.mark.parametrize(
    ("other", "share"),
    [((0, 0, 2, 2), 1.0), ((1, 0, 2, 2), 1 / 3), ((1, 1, 2, 2), 1 / 7), ((3, 0, 2, 2), 0.0), ((0, 3, 2, 2), 0.0)],
)
def test_boxes_are_alike_by_what_they_share_of_what_they_cover(
    other: tuple[float, float, float, float], share: float
) -> None:
    assert _overlap((0, 0, 2, 2), other) == pytest.approx(share)
