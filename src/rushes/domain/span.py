"""Time in media: integers in a named time base, end exclusive; never frame / fps."""

from dataclasses import dataclass
from fractions import Fraction

from rushes.domain.keys import JSON


@dataclass(frozen=True, slots=True)
class Span:
    """Two integers in a named time base, end exclusive."""

    start: int
    end: int
    base: Fraction

    @property
    def seconds(self) -> Fraction:
        """Its length."""
        return (self.end - self.start) * self.base

    @property
    def start_us(self) -> int:
        """Start in microseconds, rounded down; the index orders by it."""
        return to_us(self.start, self.base)

    @property
    def end_us(self) -> int:
        """End in microseconds, rounded down like every start, so that neighbours stay neighbours."""
        return to_us(self.end, self.base)

    def moved(self, seconds: Fraction) -> "Span":
        """The same span, earlier or later: exact, in a finer base where needed."""
        ticks = seconds / self.base
        finer, by = ticks.denominator, ticks.numerator
        return Span(self.start * finer + by, self.end * finer + by, self.base / finer)

    def to_json(self) -> JSON:
        """[start, end, base numerator, base denominator]."""
        return [self.start, self.end, self.base.numerator, self.base.denominator]

    @staticmethod
    def from_json(value: JSON) -> "Span":
        """The inverse of to_json."""
        start, end, over, under = value
        return Span(int(start), int(end), Fraction(int(over), int(under)))


def to_us(ticks: int, base: Fraction) -> int:
    """Ticks of a time base as whole microseconds, rounded down."""
    return (ticks * base.numerator * 1_000_000) // base.denominator


def rescale_up(seconds: Fraction, base: Fraction) -> int:
    """The first tick of a base at or after a time."""
    return -((-seconds.numerator * base.denominator) // (seconds.denominator * base.numerator))


def clock(us: int, digits: int = 3) -> str:
    """Microseconds as people read them: 1:02:03.456, or 2:03 with no digits."""
    sign, us = ("-", -us) if us < 0 else ("", us)
    whole, rest = divmod(us, 1_000_000)
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
    return f"{sign}{head}" + (f".{rest // 10 ** (6 - digits):0{digits}d}" if digits else "")
