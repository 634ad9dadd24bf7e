"""Rules of gates about the groups of a column of many values: users, shops."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from assay.report.gating.gate_result import GateCheck, GateRule
from assay.report.grouped import GroupedMetric, GroupedValues
from assay.report.inference.named_values import fits
from assay.report.per_sample.packed_array import Array
from assay.stats.group_intervals import clopper_pearson_ends

SHARES_ONLY = (
    "no interval that a gate trusts: a table does not keep how skewed the samples of a group are; slices do, or judge "
    "by the numbers alone with --point"
)
DEPENDENT = "no interval of a group: samples in clusters, or judged at any number of looks"
UNDECIDED = "the bound is within the interval, or so near that one of many groups is beyond it by chance"
OUTCOMES = ("fail", "not enough evidence", "pass")


@dataclass(frozen=True, eq=False)
class GroupChecker:
    """The groups of a table, and a rule that each of them must hold.

    Attributes:
        rule: the rule: a bound of values.
        section: the name of the section.
        table: the table.
        metric: which of its metrics.
        least: how many samples a group must have, unless it is named.
        confidence_level: of the intervals; None where there are none.
        point: judge by the numbers alone.
    """

    rule: GateRule
    section: str
    table: GroupedValues
    metric: GroupedMetric
    least: int
    confidence_level: float | None
    point: bool

    def check(self, pattern: str) -> GateCheck:
        """What becomes of the rule for the groups whose name fits a pattern; the worst of them is reported.

        It passes where every group is within the bound, each by its own interval. It fails where one is beyond by an
        interval that is corrected for how many groups are judged, since of 100,000 groups that all hold the rule,
        thousands would be beyond by their own.
        """
        where = f"{self.section}/{self.metric.name}"
        names = self.table.groups.values.astype(str)
        fit = names == pattern
        is_named = bool(fit.any())
        if not is_named:
            fit = np.array([pattern == "*" or fits(name, pattern) for name in names.tolist()], bool)
        n = self.metric.sizes.values
        judged = np.flatnonzero(fit & (n >= (1 if is_named else max(1, self.least))))
        if not len(judged):
            reason = f"none of {int(fit.sum()):,} groups has {max(1, self.least)} samples"
            return GateCheck(self.rule, "fail", where, reason=reason if fit.any() else f"missing: no group {pattern!r}")
        outcomes, near, far, reason = self._outcomes(judged)
        outcome = next(each for each in OUTCOMES if (outcomes == each).any())
        same = np.flatnonzero(outcomes == outcome)
        by = far if outcome == "fail" else near
        worst = int(same[np.lexsort((self._signed(judged)[same], by[same]))[0]])
        k = int(judged[worst])
        place = f"{where} in '{self.table.name} = {names[k]}' (n = {int(n[k]):,})"
        left_out = int(fit.sum()) - len(judged)
        counted = f"{len(same):,} of {len(judged):,} groups: {outcome}, this is the worst" if not is_named else ""
        too_small = f"{left_out:,} too small" if left_out else ""
        reason = "; ".join(filter(None, (reason if outcome != "pass" else "", counted, too_small)))
        ends = sorted((self._sign * float(near[worst]), self._sign * float(far[worst])))
        lower, upper = (None, None) if any(map(math.isnan, ends)) else ends
        method = "" if lower is None else "Clopper and Pearson's interval"
        return GateCheck(self.rule, outcome, place, float(self.metric.values[k]), lower, upper, method, reason)

    @property
    def _sign(self) -> float:
        return -1.0 if self.rule.kind in ("max", "worst-slice-max") else 1.0

    def _signed(self, judged: Array) -> Array:
        """The values, so that higher ones are further within the bound."""
        return np.asarray(self._sign * self.metric.values[judged])

    def _outcomes(self, judged: Array) -> tuple[Array, Array, Array, str]:
        """What becomes of each group, the ends of its interval near the bound and far from it, and why none decides."""
        values, bound = self._signed(judged), self._sign * self.rule.bound
        nowhere = np.full(len(judged), math.nan)
        if self.point:
            return np.where(values >= bound, "pass", "fail"), nowhere, nowhere, ""
        if self.confidence_level is None or self.metric.confidence_level is None or self.metric.kind != "share":
            is_share = self.metric.kind == "share"
            return np.full(len(judged), OUTCOMES[1]), nowhere, nowhere, DEPENDENT if is_share else SHARES_ONLY
        of = self.metric.successes[judged], self.metric.sizes.values[judged]
        near, far = self._ends(of, self.confidence_level)
        is_beyond = self._ends(of, 1 - (1 - self.confidence_level) / len(judged))[1] < bound
        outcomes = np.where(is_beyond, "fail", np.where((near >= bound) & (values >= bound), "pass", OUTCOMES[1]))
        return outcomes, near, far, "" if is_beyond.any() else UNDECIDED

    def _ends(self, of: tuple[Array, Array], level: float) -> tuple[Array, Array]:
        lower, upper = clopper_pearson_ends(*of, level)
        return (lower, upper) if self._sign > 0 else (-upper, -lower)
