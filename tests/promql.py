"""The part of PromQL that our alert rules use, over texts as /metrics gives them; anything else is an error.

Selectors with =, !=, =~, !~; increase(..[range]); sum, sum by (..); division; comparison with a number; and, or,
unless on (..); brackets.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_TOKEN = re.compile(r'\s*(?:(>=|<=|==|!=|=~|!~|[><=(){},/\[\]])|"([^"]*)"|([0-9.]+[smh]?|[A-Za-z_]\w*))')
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b, "<": lambda a, b: a < b, ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b, "==": lambda a, b: a == b,
}  # fmt: skip


def scraped(*texts: str) -> dict[str, Vector]:
    """Samples of several targets, by name; each target has its own label `instance`."""
    found: dict[str, Vector] = {}
    for number, text in enumerate(texts):
        for line in text.splitlines():
            if not line.startswith("#"):
                name, labels, value = _SAMPLE.match(line).groups()  # type: ignore[union-attr]  # a line that is none fails
                key = frozenset([*_LABEL.findall(labels or ""), ("instance", str(number))])
                assert key not in found.setdefault(name, {}), f"twice: {line}"
                found[name][key] = float(value)
    return found


@dataclass
class Rule:
    """An expression that is read once and asked of any two scrapes."""

    text: str
    _tokens: list[str] = field(default_factory=list)

    def fires(self, before: dict[str, Vector], now: dict[str, Vector]) -> Vector:
        """What it answers: an alert for each; `before` is the scrape at the beginning of every range."""
        self._tokens, end = [], 0
        while end < len(self.text.rstrip()):
            found = _TOKEN.match(self.text, end)
            assert found, f"not understood: {self.text[end:]}"
            sign, string, word = found.groups()
            self._tokens.append(sign or word or f'"{string}')
            end = found.end()
        answer = self._combined(before, now)
        assert not self._tokens, f"not understood: {self._tokens}"
        return answer

    @staticmethod
    def names(text: str) -> set[str]:
        """The metrics that a text names."""
        return set(re.findall(r"\brushes_[a-z_]+", text))

    def _take(self, *expected: str) -> str:
        token = self._tokens.pop(0)
        assert not expected or token in expected, f"{token} instead of {expected}"
        return token

    def _next(self, *tokens: str) -> bool:
        return bool(self._tokens) and self._tokens[0] in tokens

    def _combined(self, before: dict[str, Vector], now: dict[str, Vector]) -> Vector:
        left = self._compared(before, now)
        while self._next("and", "or", "unless"):
            word = self._take()
            on = self._labels() if self._next("on") and self._take() else None
            right = self._compared(before, now)
            same = {_only(labels, on) for labels in right}
            if word == "or":
                left = right | left
            else:
                left = {k: v for k, v in left.items() if (_only(k, on) in same) == (word == "and")}
        return left

    def _compared(self, before: dict[str, Vector], now: dict[str, Vector]) -> Vector:
        left = self._value(before, now)
        while self._next("/"):
            self._take()
            right = self._value(before, now)
            left = {labels: value / right[labels] for labels, value in left.items() if right.get(labels)}
        if self._next(*_COMPARE):
            compare, number = _COMPARE[self._take()], float(self._take())
            left = {labels: value for labels, value in left.items() if compare(value, number)}
        return left

    def _value(self, before: dict[str, Vector], now: dict[str, Vector]) -> Vector:
        if self._next("("):
            return self._bracketed(before, now)
        word = self._take()
        if word == "sum":
            by = self._labels() if self._next("by") and self._take() else ()
            inner = self._bracketed(before, now)
            sums: Vector = {}
            for labels, value in inner.items():
                sums[_only(labels, by)] = sums.get(_only(labels, by), 0.0) + value
            return sums
        if word == "increase":
            self._take("(")
            name, fits = self._selector(self._take())
            self._take("[")
            assert re.fullmatch(r"\d+[smh]", self._take())
            self._take("]")
            self._take(")")
            old = before.get(name, {})  # a series that begins within the range has not increased, as Prometheus sees it
            return {k: max(0.0, v - old[k]) for k, v in now.get(name, {}).items() if k in old and fits(dict(k))}
        name, fits = self._selector(word)
        return {k: v for k, v in now.get(name, {}).items() if fits(dict(k))}

    def _bracketed(self, before: dict[str, Vector], now: dict[str, Vector]) -> Vector:
        self._take("(")
        inner = self._combined(before, now)
        self._take(")")
        return inner

    def _labels(self) -> tuple[str, ...]:
        self._take("(")
        names = []
        while not self._next(")"):
            names.append(self._take())
            if self._next(","):
                self._take()
        self._take(")")
        return tuple(names)

    def _selector(self, name: str) -> tuple[str, Callable[[dict[str, str]], bool]]:
        assert name.startswith("rushes_"), name
        matchers: list[tuple[str, str, str]] = []
        if self._next("{"):
            self._take()
            while not self._next("}"):
                matchers.append((self._take(), self._take("=", "!=", "=~", "!~"), self._take()[1:]))
                if self._next(","):
                    self._take()
            self._take("}")
        return name, lambda labels: all(_fits(labels.get(label, ""), *test) for label, *test in matchers)


def _fits(value: str, sign: str, wanted: str) -> bool:
    same = bool(re.fullmatch(wanted, value)) if "~" in sign else value == wanted
    return same != sign.startswith("!")


def _only(labels: Labels, names: Sequence[str] | None) -> Labels:
    """The labels of these names; None: all but the target's own."""
    wanted = None if names is None else set(names)
    return frozenset((k, v) for k, v in labels if (k in wanted if wanted is not None else k != "instance"))
