"""People: told apart alike in whatever order films came, named and told apart by what somebody said at a place."""

import random
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.index.changes import Track
from rushes.index.people import FaceLabel, Person
from rushes.index.people.face_clustering import persons, tracks_of

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
