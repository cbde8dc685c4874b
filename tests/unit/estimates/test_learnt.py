"""What was learnt is asked for once in a while."""

from typing import Any, cast

from rushes.estimates import learnt
from rushes.estimates.learnt import LearntModels


def test_an_answer_is_believed_for_a_while_and_few_are_kept() -> None:
    asked: list[tuple[str, ...]] = []
    now = [0.0]

    def learn(stages: tuple[str, ...], _profile: str) -> Any:
        asked.append(stages)
        return object()

    models = LearntModels(cast("Any", learn), lambda: now[0])
    first = models.of(("a",), "fast")
    assert models.of(("a",), "fast") is first
    assert models.of(("a",), "balanced") is not first
    now[0] = learnt.SECONDS
    assert models.of(("a",), "fast") is not first
    assert len(asked) == 3
    for n in range(2 * learnt.MOST):
        models.of((str(n),), "fast")
    assert len(models._known) <= learnt.MOST
