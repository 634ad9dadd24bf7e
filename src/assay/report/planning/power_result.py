"""How many samples comparisons need, and what they can show, as a plain value."""

from __future__ import annotations

from assay._records import Record
from assay.render import Document, Viewable
from assay.report.planning.power_view import power_document


class PowerEstimate(Record):
    """What one way to compare a metric needs to show a difference.

    Args:
        section: where the metric stands in the report.
        metric: its name.
        value: its value in the report.
        effect: the difference that a comparison should find.
        design: how two models are compared: the same samples in pairs, or other samples.
        assumption: how much the difference varies, as a part of a sentence.
        samples: how many samples each model needs.
        clusters: in how many clusters; None where samples are independent.
        counts: numbers of samples: that of the report, then those that were asked for.
        smallest: for each of them the smallest difference that a comparison finds; infinite where none is found.
    """

    section: str
    metric: str
    value: float
    effect: float
    design: str
    assumption: str
    samples: int
    clusters: int | None
    counts: tuple[int, ...]
    smallest: tuple[float, ...]


class Power(Record, Viewable, schema="assay.power/1"):
    """How many samples comparisons with a report need, and what they can show.

    Args:
        estimates: for each effect the ways to compare, paired ones first.
        power: the probability to find a difference of the size that was asked for.
        confidence_level: of the comparisons; there is a difference where p is below 1 - confidence_level.
        report: the title of the report.
        run: the title of the report that says how much two models differ; empty where there was none.
        notes: what is assumed of the samples, in sentences.
    """

    estimates: tuple[PowerEstimate, ...]
    power: float
    confidence_level: float
    report: str
    run: str = ""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line: the report, and how many estimates there are."""
        return f"<Power {self.report!r}: {len(self.estimates)} estimate(s)>"

    def to_document(self) -> Document:
        """What is shown: a grid for each effect, with a row for each way to compare."""
        return power_document(self)
