"""Points: what each of several things costs and what it loses, such as size and quality."""

from __future__ import annotations

import math

from assay._records import Record


class Point(Record):
    """One thing in the plane.

    Args:
        name: what it is.
        x: how far right.
        y: how far up.
        lower: the lower end of the interval of y, if there is one.
        upper: the upper end.
    """

    name: str
    x: float
    y: float
    lower: float | None = None
    upper: float | None = None


class Points(Record, tag="points"):
    """Things by two numbers of which less is better, such as bits a weight and how far outputs moved.

    Args:
        name: the title.
        x: what the first number is.
        y: what the second number is; drawn on a logarithmic axis where all are above 0.
        points: the things.

    Example:
        >>> points = [Point("int8", 8.0, 1e-5), Point("int4", 4.25, 3e-3), Point("int4 g32 sym", 4.5, 4e-3)]
        >>> picture = Points("schemes", "bits a weight", "KL divergence", points)
        >>> [point.name for point in picture.best()]
        ['int4', 'int8']
        >>> picture.summary()
        '3 points; none is better than int4, int8 in both bits a weight and KL divergence.'
    """

    name: str
    x: str
    y: str
    points: tuple[Point, ...]

    def drawable(self) -> tuple[Point, ...]:
        """The points with two finite numbers, from left to right."""
        return tuple(
            sorted((each for each in self.points if math.isfinite(each.x + each.y)), key=lambda each: (each.x, each.y))
        )

    def best(self) -> tuple[Point, ...]:
        """The points that none has fewer of both than, from left to right."""
        front: list[Point] = []
        for each in self.drawable():
            if not front or each.y < front[-1].y:
                front.append(each)
        return tuple(front)

    def columns(self) -> tuple[str, ...]:
        """The names of what `rows` gives."""
        return ("", self.x, self.y, "lower", "upper", "nothing is better")

    def rows(self) -> tuple[tuple[str | float | None, ...], ...]:
        """The points as rows of a table, from left to right."""
        best = self.best()
        return tuple(
            (each.name, each.x, each.y, each.lower, each.upper, "yes" if each in best else "no")
            for each in self.drawable()
        )

    @property
    def is_log(self) -> bool:
        """Whether y is drawn on a logarithmic axis."""
        return all(each.y > 0 for each in self.drawable())

    def summary(self) -> str:
        if not self.drawable():
            return f"{len(self.points)} points, none of them finite."
        names = ", ".join(each.name for each in self.best())
        return f"{len(self.points)} points; none is better than {names} in both {self.x} and {self.y}."
