"""The rules of a gate, and what became of them."""

from __future__ import annotations

import math
from dataclasses import field

from assay._records import OPTIONAL, Record
from assay.errors import ConfigError, describe
from assay.render import Document, Viewable
from assay.report.gating.gate_view import gate_document

RATIOS = {"min-ratio": "max-drop", "max-ratio": "max-rise"}
"""The rules of ratios, and those that bound the change instead."""
KINDS = ("min", "max", "max-drop", "max-rise", "min-ratio", "max-ratio", "worst-slice", "worst-slice-max")
EXIT_CODES = {"pass": 0, "fail": 1, "not enough evidence": 2}


class GateRule(Record):
    """One condition.

    Args:
        kind: ``"min"`` and ``"max"`` bound a value; ``"max-drop"`` and ``"max-rise"`` its change against the baseline;
            ``"min-ratio"`` and ``"max-ratio"`` its ratio to the value of the baseline; ``"worst-slice"`` bounds it in
            every slice from below, ``"worst-slice-max"`` from above.
        metric: its name, or ``section/metric`` where several sections have one of that name. ``metric[slice]`` is that
            of one slice, ``metric[language = *]`` that of every slice whose name fits; the worst of them is reported.
        bound: the bound, finite; it is itself allowed.

    Raises:
        ConfigError: another kind, no name of a metric, or a bound that is not finite.
    """

    kind: str
    metric: str
    bound: float

    def _check(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(
                describe(
                    "GateRule.kind", repr(self.kind), f"one of {', '.join(KINDS)}", "Pass kind='min' for a lower bound"
                )
            )
        if not self.metric.strip():
            raise ConfigError(describe(f"GateRule.metric of {self.kind}", repr(self.metric), "a name", "Name a metric"))
        if self.kind in RATIOS and self.bound <= 0:
            got, do = f"{self.bound:g}", f"Pass a ratio such as 0.99, or bound the change with {RATIOS[self.kind]}"
            raise ConfigError(
                describe(f"{self.kind} {self.metric}", got, "a number above 0, as ratios of positive values are", do)
            )
        if not math.isfinite(self.bound):
            raise ConfigError(
                describe(f"{self.kind} {self.metric}", self.bound, "a finite number", "Correct the bound")
            )


class GateCheck(Record):
    """What became of a rule.

    Args:
        rule: the rule.
        outcome: ``"pass"``, ``"fail"`` or ``"not enough evidence"``.
        where: what was looked at: ``section/metric``, with the slice where there is one; empty where nothing was found.
        value: the number that was judged: a value, or a change against the baseline; or None.
        lower: the lower end of its interval, or None.
        upper: the upper end.
        method: how the interval was found.
        reason: why this is the outcome, where the numbers do not say it.
    """

    rule: GateRule
    outcome: str
    where: str = ""
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    method: str = ""
    reason: str = ""


class Gate(Record, Viewable, schema="assay.gate/2"):
    """What a gate said.

    Args:
        outcome: ``"pass"`` where every check passed, ``"fail"`` where one failed, else ``"not enough evidence"``.
        checks: what became of each rule.
        confidence_level: the confidence level of the intervals.
        point: whether the numbers were judged without their intervals.
        report: the title of the report.
        baseline: the title of the baseline; empty where there was none.
        sequential: whether the intervals hold at any number of looks.
        rules_sha256: the digest of the file that fixed the rules before the run; empty where there was none.
    """

    outcome: str
    checks: tuple[GateCheck, ...]
    confidence_level: float
    point: bool
    report: str
    baseline: str = ""
    sequential: bool = field(default=False, metadata=OPTIONAL)
    rules_sha256: str = field(default="", metadata=OPTIONAL)

    def __repr__(self) -> str:
        """One line: the outcome, and of how many rules."""
        passed = sum(check.outcome == "pass" for check in self.checks)
        return f"<Gate {self.report!r}: {self.outcome}; {passed} of {len(self.checks)} rule(s) pass>"

    @property
    def exit_code(self) -> int:
        """0 for a pass, 1 for a failure, 2 for not enough evidence."""
        return EXIT_CODES[self.outcome]

    def to_document(self) -> Document:
        """What is shown: a row a rule, then the outcome."""
        return gate_document(self)
