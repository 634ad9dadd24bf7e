"""Random calls and random data: what `migrate` writes gives the number that TorchMetrics gave, or NaN, or a documented
difference. The cases are rows of the page (`test_differences.py`) and notes of the rewriting."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor

from assay.migrate import rewrite
from migrate.test_table import ENTRIES, theirs
from migrate.test_values import kind_of, ran_with

VALUES = {
    "average": ["'micro'", "'macro'", "'weighted'", "None", "'none'"],
    "threshold": ["0.3", "0.5", "0.7"],
    "top_k": ["1", "2"],
    "ignore_index": ["None", "-1", "0", "1", "-100", "255"],
    "normalize": ["None", "'true'", "'pred'", "'all'", "'none'"],
    "weights": ["None", "'linear'", "'quadratic'"],
    "n_bins": ["3", "15"],
    "norm": ["'l1'", "'l2'", "'max'"],
    "beta": ["0.5", "2.0"],
    "squared": ["True", "False"],
    "multioutput": ["'uniform_average'", "'raw_values'", "'variance_weighted'"],
    "adjusted": ["0", "1", "2"],
    "power": ["0", "1.0", "2.0", "3.0", "1.5"],
    "variant": ["'b'", "'c'"],
    "reduction": ["'mean'", "'sum'"],
    "p": ["1", "2", "1.5"],
    "num_outputs": ["1"],
    "zero_division": ["0", "0.0", "1"],
    "thresholds": ["None", "7", "[0.0, 0.5, 1.0]"],
    "max_fpr": ["None", "0.5"],
    "multidim_average": ["'global'"],
    "normalization": ["'mean'", "'range'", "'std'", "'l2'"],
    "fpr_range": ["(0.001, 0.1)", "(0.25, 1.0)"],
} | {f"min_{each}": ["0.5"] for each in ("precision", "recall", "sensitivity", "specificity")}
DRAWS = 16

LABEL_ORDERS = ("MultilabelCoverageError", "MultilabelRankingAveragePrecision", "MultilabelRankingLoss")


class Drawn:
    """One call with random arguments, and a batch for it."""

    def __init__(self, entry, seed: int) -> None:
        made = random.Random(f"{entry.name} {seed}")
        self.entry, self.kind = entry, kind_of("torchmetrics", entry)
        self.classes = made.choice([2, 3, 4, 6])
        self.given = {each.name: value for each in entry.takes if (value := self._value(each, made)) is not None}
        self.average = self.given.get("average", entry.defaults().get("average"))
        ignored = self.given.get("ignore_index", "None")
        self.ignored = None if ignored == "None" else int(ignored)
        self.batch = self._batch(made)

    def _value(self, parameter, made: random.Random) -> str | None:
        if parameter.name in ("num_classes", "num_labels"):
            return str(self.classes)
        if parameter.name not in VALUES or (parameter.default is not None and made.random() < 0.5):
            return None
        if parameter.name == "weights" and self.kind == "references":
            return None  # of n-grams
        rule = self.entry.rules.get(parameter.name, "")
        only = [rule.removeprefix("only ")] if rule.startswith("only ") else VALUES[parameter.name]
        return None if rule == "data" else made.choice(only)

    def _batch(self, made: random.Random) -> tuple[Any, ...]:
        g, n, k = torch.Generator().manual_seed(made.randrange(10**9)), made.choice([1, 3, 8, 20, 40]), self.classes
        self.ties = ties = made.random() < 0.3

        def scores(*shape: int) -> Tensor:
            values = torch.rand(shape, generator=g)
            return (values * 4).round().clamp(max=3) / 4 if ties else values  # 1 has a bin of its own there

        def labels(high: int, *shape: int) -> Tensor:
            drawn = torch.randint(high, shape, generator=g)
            left_out = torch.rand(shape, generator=g) < 0.2
            return drawn if self.ignored is None else torch.where(left_out, self.ignored, drawn)

        def sentences() -> list[str]:
            return [" ".join(made.choices("abcd", k=made.randrange(4, 9))) for _ in range(n)]

        def with_other_words(texts: list[str]) -> list[str]:
            """Nothing is left out or added: alignments of other words are a documented difference."""
            return [" ".join(made.choice([word, word, "x"]) for word in text.split()) for text in texts]

        if self.kind in ("strings", "references"):
            target = sentences()
            several = [[text, other] for text, other in zip(target, sentences(), strict=True)]
            return with_other_words(target), target if self.kind == "strings" else several

        occur = k if made.random() < 0.7 else max(1, k - 2)
        return {
            "binary": lambda: (scores(n), labels(2, n)),
            "multiclass": lambda: ((4 * scores(n, k)).softmax(1), labels(occur, n)),
            "multilabel": lambda: (scores(n, k), labels(2, n, k)),
            "numbers": lambda: (scores(n) + 0.1, scores(n) + 0.1),
            "rows": lambda: (scores(n, k).add(0.1).softmax(1), scores(n, k).add(0.1).softmax(1)),
            "tokens": lambda: (scores(n, 5, 7), labels(7, n, 5)),
            "classes": lambda: (labels(k, n), labels(k, n)),
            "alone": lambda: (scores(n),),
            "queries": lambda: (torch.rand(n, generator=g), labels(2, n), torch.arange(n) // 5),
            "ensembles": lambda: (scores(n, k), scores(n)),
        }[self.kind]()

    @property
    def code(self) -> str:
        name, names = self.entry.name, ", ".join(["preds", "target"][: len(self.batch)])
        given = ", ".join(f"{each}={value}" for each, value in self.given.items())
        head = f"from {theirs('torchmetrics', name).__module__} import {name}\n"
        extra = ", indexes=indexes" if self.kind == "queries" else ""
        if self.entry.function:
            return f"{head}value = {name}({names}, {given})\n"
        return f"{head}metric = {name}({given})\nmetric.update({names}{extra})\nvalue = metric.compute()\n"

    @property
    def documented(self) -> bool:
        """Whether the page has a row, or the rewriting a note, for this call or this batch."""
        target = self.batch[-1]
        if self.kind == "queries" or isinstance(target, list):
            return False
        of_label = list(target.unbind(1)) if self.kind == "multilabel" else [target]
        counted = [each[each != self.ignored] if self.ignored is not None else each for each in of_label]
        classes = range(self.classes if self.kind == "multiclass" else 2)
        occurring = [[bool((each == k).any()) for k in classes] for each in counted]
        of_scores = self.entry.assay in (
            "AUROC",
            "AveragePrecision",
            "LogAUC",
            "PrecisionRecallCurve",
            "PrecisionAtFixedRecall",
            "SensitivityAtSpecificity",
        )
        return (
            (of_scores and not (all(map(all, occurring)) and all(len(each) > 1 for each in counted)))
            or (self.kind in ("binary", "multiclass", "multilabel") and any(not len(each) for each in counted))
            or (self.given.get("top_k", "1") != "1")
            or (self.entry.assay.startswith("MultilabelRanking") and self.ties)
            or (self.entry.assay == "LogAUC" and self._first_step_beyond(counted))
            or (self.ignores_class and self.average == "'macro'" and self.entry.assay != "JaccardIndex")
            or (self.entry.assay == "ExactMatch" and self.ignored is not None)
            or (self.entry.name == "multilabel_jaccard_index" and self.ignored in (0, 1))
            or (self.entry.assay == "JaccardIndex" and self.kind == "multilabel" and not (target == 1).any())
            or (self.given.get("zero_division") == "1" and self.average == "'weighted'" and not (target == 1).any())
            or (self.entry.assay == "MatthewsCorrCoef" and self._constant(counted))
            or (self.kind == "numbers" and len(target) < 8)
            or (self.entry.assay in ("CramersV", "TschuprowsT") and self._two_by_two)
            or (self.entry.assay in LABEL_ORDERS and self.ignored is not None)  # ignored labels leave their row
            or (self.entry.assay in ("AdjustedMutualInfoScore", "NormalizedMutualInfoScore") and self._trivial)
        )

    @property
    def ignores_class(self) -> bool:
        """Whether one of the classes is ignored."""
        return self.kind == "multiclass" and self.ignored is not None and 0 <= self.ignored < self.classes

    def _first_step_beyond(self, counted: list[Tensor]) -> bool:
        """Whether all false positive rates above 0 lie beyond the range of a LogAUC."""
        end = 1.0 if "1.0" in self.given.get("fpr_range", "") else 0.1
        return any((each != 1).sum() * end < 1 for each in counted)

    @property
    def _two_by_two(self) -> bool:
        return all(len(each.unique()) == 2 for each in self.batch)

    @property
    def _trivial(self) -> bool:
        """Whether all labels of preds or of target are equal, or all differ."""
        return any(len(each.unique()) in (1, len(each)) for each in self.batch)

    def _constant(self, counted: list[Tensor]) -> bool:
        target = torch.cat(counted)
        preds = self.batch[0]
        decided = preds.argmax(1) if self.kind == "multiclass" else preds > float(self.given.get("threshold", "0.5"))
        if self.ignored is not None:
            decided = decided[self.batch[1] != self.ignored]
        return len(target.unique()) < 2 or len(decided.unique()) < 2


def same(ours, other) -> bool:
    """Whether a value is that of the other, or NaN; an infinite threshold is 1 in TorchMetrics."""
    if isinstance(other, tuple | list):
        return len(ours) == len(other) and all(map(same, ours, other))
    one, two = torch.as_tensor(ours, dtype=torch.float64), torch.as_tensor(other, dtype=torch.float64)
    if one.shape == two.shape:
        two = torch.where(one.isnan() | (one.isinf() & (two == 1)), one, two)  # a threshold above all scores
    return one.shape == two.shape and torch.allclose(one, two, rtol=1e-3, atol=1e-4, equal_nan=True)


SURE = [entry for library, entry in ENTRIES if library == "torchmetrics" and not entry.unsure and not entry.tasks]


@pytest.mark.parametrize("entry", SURE, ids=lambda entry: entry.name)
@pytest.mark.exhaustive  # the table of values has a call of each
def test_random_calls_give_the_same_number(entry):
    compared = 0
    for seed in range(DRAWS):
        drawn = Drawn(entry, seed)
        known = {"num_classes": drawn.classes, "num_labels": drawn.classes, "num_outputs": 1}
        found = rewrite(drawn.code, known)
        left = [note for note in found.notes if note.kind == "todo"]
        of_each = drawn.average in ("None", "'none'") and entry.rules["average"] == "same"
        if of_each and drawn.ignores_class:
            assert "NaN in assay" in left[0].reason, drawn.code
            continue
        assert left == [], drawn.code
        if drawn.documented:
            continue
        try:
            expected = ran_with(drawn.code, drawn.batch)
        except (ValueError, RuntimeError):  # they refuse some targets that are ignored
            continue
        assert same(ran_with(found.after, drawn.batch), expected), (drawn.code, drawn.batch)
        compared += 1
    assert compared
