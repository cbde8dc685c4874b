"""Lines of an attempt: which ones belong to it."""

from collections.abc import Sequence

from rushes.domain.task import Lease
from rushes.worker.child_output import BEGIN, END, KEPT_LINES, KEY_LINES, ChildOutput


def lease(n: int) -> Lease:
    return Lease(f"job_a.toy.{n:05d}", 7, "job_a", "toy", n, "cpu", "{}", 0, 0)


def sent(lines: ChildOutput) -> list[tuple[int, int, tuple[str, ...]]]:
    """What is handed on now: chunk, first number, lines."""
    found: list[tuple[int, int, tuple[str, ...]]] = []

    def keep(of: Lease, first: int, some: Sequence[str]) -> None:
        found.append((of.chunk or 0, first, tuple(some)))

    lines.send(keep)
    return found


def test_what_is_printed_between_the_markers_belongs_to_the_attempt() -> None:
    lines = ChildOutput()
    lines.begin(lease(1))
    for raw in (b"starting up\n", BEGIN + b"\n", b"one\n", b"\n", b"two\n", END + b"\n", b"late\n"):
        lines.add(raw)
    assert lines.last() == ("one", "two")
    lines.begin(lease(2))
    for raw in (b"later\n", BEGIN + b"\n", b"three\n"):
        lines.add(raw)
    assert sent(lines) == [(2, 1, ("three",))]


def test_a_child_that_dies_before_it_begins_has_its_last_words_kept() -> None:
    lines = ChildOutput()
    lines.begin(lease(1))
    lines.add(b"ImportError: no such module\n")
    assert lines.last() == ("ImportError: no such module",)


def test_what_an_attempt_said_is_never_told_of_the_next_one() -> None:
    lines = ChildOutput()
    lines.begin(lease(1))
    lines.add(b"mine\n")
    lines.begin(lease(2))
    assert lines.last() == ()
    assert sent(lines) == []


def test_lines_are_numbered_without_gap_and_each_is_sent_once() -> None:
    lines = ChildOutput()
    lines.begin(lease(1))
    lines.add(b"a\n")
    lines.add(b"b\n")
    assert sent(lines) == [(1, 1, ("a", "b"))]
    assert sent(lines) == []
    lines.add(b"c\n")
    assert sent(lines) == [(1, 3, ("c",))]


def test_only_the_last_lines_are_kept_with_a_failure() -> None:
    lines = ChildOutput()
    lines.begin(lease(1))
    for n in range(100):
        lines.add(f"{n}\n".encode())
    assert lines.last() == tuple(map(str, range(100 - KEPT_LINES, 100)))


def test_a_private_key_is_hidden_to_its_end_and_what_follows_is_shown() -> None:
    lines = ChildOutput()
    lines.begin(lease(1))
    key = (b"-----BEGIN RSA PRIVATE KEY-----\n", b"MIIEabc\n", b"def==\n", b"-----END RSA PRIVATE KEY-----\n")
    for raw in (b"before\n", *key, b"after\n"):
        lines.add(raw)
    assert lines.last() == ("before", "***", "***", "***", "***", "after")


def test_a_private_key_without_an_end_hides_no_more_than_a_key_has() -> None:
    lines = ChildOutput()
    lines.begin(lease(1))
    lines.add(b"-----BEGIN PRIVATE KEY-----\n")
    for n in range(KEY_LINES + 1):
        lines.add(f"{n}\n".encode())
    assert lines.last()[-3:] == ("***", str(KEY_LINES - 1), str(KEY_LINES))
    lines.add(b"-----BEGIN PRIVATE KEY-----\n")
    lines.begin(lease(2))
    lines.add(b"shown\n")
    assert lines.last() == ("shown",)
