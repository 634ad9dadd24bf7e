"""Metrics of Ignite that are computed from sums of numbers of samples, of sentences or of batches."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from assay.compat.for_ignite.metric import CompatibleIgniteMetric, NotComputableError, check_divisor, pair
from assay.compat.for_ignite.pairs import check_regression, column
from assay.encode.edits import EditCounts
from assay.meter import Meter
from assay.metrics import Mean
from assay.metrics.base import Metric
from assay.metrics.exact_arithmetic import rounded
from assay.tally.base import Tally
from assay.tally.rows.image_terms import as_floats, row_mean
from assay.tally.rows.row_terms import RowNumbers
from assay.tally.sums.row_sums import RowSums, RowTotals


@dataclass(frozen=True)
class _Numbers(RowNumbers):
    """Numbers that may be infinite or NaN: Ignite does not warn of them."""

    not_finite = ""


@dataclass(frozen=True)
class _Sums(Metric):
    """The exact sums of the numbers of each row, rounded once."""

    width: int = 1

    def tally(self, weighted: bool) -> Tally:
        return RowSums(_Numbers(self.width), weighted)

    def compute(self, counts: RowTotals) -> Tensor:
        return torch.tensor([rounded(each) for each in counts.sums[0]], dtype=torch.float64, device="cpu")


class SumMetric(CompatibleIgniteMetric):
    """A metric of the sums of numbers that rows give; the flag says that a row is one number by itself."""

    sized = True

    def _meter_of(self, size: int, flag: int) -> Meter:
        return Meter(value=_Sums(size))

    def _count(self, output: Any) -> None:
        self._add(self._rows(output))

    def _add(self, rows: Tensor, flag: int = 0) -> None:
        if rows.ndim > 1:  # else there is no sample
            self._begin(rows.shape[1], flag)
            self.meter.update(rows)

    @abstractmethod
    def _rows(self, output: Any) -> Tensor:
        """The numbers of each row of a batch, `(N, width)`."""

    def _value(self, meter: Meter) -> Any:
        return self._of(meter.compute()["value"], meter.rows)

    def _of(self, sums: Tensor, rows: int) -> Any:
        """The value of so many rows: the mean."""
        return float(sums[0]) / rows


def _table(rows: Iterable[Any]) -> Tensor:
    """What Python computed of each sample."""
    return torch.tensor(list(rows), dtype=torch.float64, device="cpu")


class _Average(SumMetric):
    """The mean of numbers, or of each number of tensors."""

    _shape: torch.Size | None = None

    def _count(self, output: Any) -> None:
        self._check_output_type(output)
        given = output.detach() if isinstance(output, Tensor) else _table([output])[0]
        rows = given if given.ndim > 1 else given[None]
        self._shape = given.shape if given.ndim < 2 else given.shape[1:]
        rows = rows.reshape(len(rows), -1)
        self._add(self._numbers(rows if rows.is_floating_point() else rows.double()), int(given.ndim == 0))

    def _rows(self, output: Any) -> Tensor:
        raise NotImplementedError

    def _numbers(self, rows: Tensor) -> Tensor:
        return rows

    def _of(self, sums: Tensor, rows: int) -> Any:
        shape = () if self._layout is not None and self._layout[1] else self._shape or sums.shape
        return (sums / rows).reshape(shape)


class _GeometricAverage(_Average):
    def _numbers(self, rows: Tensor) -> Tensor:
        return rows.log()

    def _of(self, sums: Tensor, rows: int) -> Any:
        value = super()._of(sums, rows).exp()
        return value.item() if value.numel() == 1 else value


class _Loss(CompatibleIgniteMetric):
    """The mean of the losses of batches, each of which counts as often as it has samples."""

    def _meter_of(self, size: int, flag: int) -> Meter:
        return Meter(weighted=True, value=Mean())

    def _count(self, output: Any) -> None:
        preds, target, options = output if len(output) == 3 else (*output, {})
        loss = self._loss_fn(preds, target, **options).detach()
        if loss.ndim:
            raise ValueError("loss_fn did not return the average loss.")
        size = self._batch_size(target)
        if isinstance(size, Tensor) or size:
            weight = torch.as_tensor(size, device=loss.device, dtype=torch.float32)
            self.meter.update(loss.reshape(1), weights=weight.reshape(1))

    def _value(self, meter: Meter) -> Any:
        return float(meter.compute()["value"])


class _CosineSimilarity(SumMetric):
    def _rows(self, output: Any) -> Tensor:
        preds, target = (each.flatten(start_dim=1) for each in pair(output))
        return functional.cosine_similarity(preds, target, dim=1, eps=self._arguments["eps"])[:, None]


class _PSNR(SumMetric):
    def _rows(self, output: Any) -> Tensor:
        preds, target = pair(output)
        self._check_shape_dtype((preds, target))
        preds, target = as_floats(preds, target)
        errors = row_mean((preds - target).square_())
        return 10 * torch.log10(self._arguments["data_range"] ** 2 / (errors + 1e-10))[:, None]


class _RelativeError(SumMetric):
    """The mean of relative errors, which has no value where a target is 0."""

    def _rows(self, output: Any) -> Tensor:
        check_regression(pair(output))
        preds, target = column(*as_floats(*pair(output)))
        check_divisor(target)
        zero = target == 0
        return torch.stack([((preds - target) / target).abs().masked_fill(zero, 0), zero.to(preds.dtype)], 1)

    def _of(self, sums: Tensor, rows: int) -> Any:
        if sums[1]:
            raise NotComputableError("The ground truth has 0.")
        return super()._of(sums, rows)


class _CharacterErrors(SumMetric):
    def _rows(self, output: Any) -> Tensor:
        preds, target = pair(output)
        both = isinstance(preds, str) and isinstance(target, str)
        if not all(isinstance(each, str | list) for each in (preds, target)):
            raise TypeError(f"y_pred and y must be str or list[str], got y_pred: {type(preds)} and y: {type(target)}")
        texts = [[each] if both else list(each) for each in (preds, target)]
        if not all(isinstance(each, str) for of in texts for each in of):
            raise TypeError("All elements of y_pred and y must be strings.")
        if len(texts[0]) != len(texts[1]):
            sizes = f"Got y_pred of length {len(texts[0])} and y of length {len(texts[1])}."
            raise ValueError(f"y_pred and y must have the same length. {sizes}")
        whole = [[f"|{each}|" for each in of] for of in texts]  # as white space at the ends counts, too
        rows = EditCounts("characters").rows(*whole)[:, :2]
        return rows - torch.tensor([0, 2], device="cpu")

    def _of(self, sums: Tensor, rows: int) -> Any:
        errors, characters = sums.tolist()
        return errors / characters if characters else float(errors > 0)


class _Bleu(SumMetric):
    """The mean over sentences, or with "micro" that of all n-grams."""

    def _rows(self, output: Any) -> Tensor:
        preds, target = output
        if self.average == "macro":
            pairs = zip(target, preds, strict=False)
            return _table([self._sentence_bleu(references=refs, candidates=hyp)] for refs, hyp in pairs)
        if len(preds) != len(target):
            self._n_gram_counter(target, preds, None, None)  # which raises
        return _table(self._counts(refs, hyp) for refs, hyp in zip(target, preds, strict=True))

    def _counts(self, references: Any, candidate: Any) -> list[float]:
        """The n-grams that are right and all of them, by their size, and the lengths of both sides."""
        right, every = torch.zeros(2, self.ngrams_order + 1, device="cpu", dtype=torch.float32)
        lengths = self._n_gram_counter([references], [candidate], right, every)
        return [*right.tolist(), *every.tolist(), *lengths]

    def _of(self, sums: Tensor, rows: int) -> Any:
        if self.average == "macro":
            return sums[0] / rows
        right, every = sums[:-2].chunk(2)
        return self._brevity_penalty_smoothing(right, every, *sums[-2:].tolist())


class _Rouge(SumMetric):
    """The means over samples of precision, recall and F."""

    def _rows(self, output: Any) -> Tensor:
        return _table(self._scores(*each) for each in zip(*output, strict=False))

    def _scores(self, candidate: Any, references: Any) -> tuple[float, float, float]:
        score = self._multiref_reducer(
            [self._compute_score(candidate=candidate, reference=each) for each in references]
        )
        precision, recall = score.precision(), score.recall()
        both = precision * recall
        return precision, recall, both / ((1 - self._alpha) * precision + self._alpha * recall) if both else 0.0

    def _of(self, sums: Tensor, rows: int) -> Any:
        return {f"{self._metric_name()}-{name}": value / rows for name, value in zip("PRF", sums.tolist(), strict=True)}


class _OfBatches(SumMetric):
    """A metric of numbers that Ignite computes for each batch: those that its own update adds."""

    states: ClassVar[tuple[str, ...]]

    def _count(self, output: Any) -> None:
        place = vars(self)["_device"]
        self._device = pair(output)[0].device
        try:
            self.original.reset(self)
            self.original.update(self, output)
            numbers = torch.stack([getattr(self, name) for name in self.states])
        finally:
            self._device = place
        if self._num_batches:
            self._add(numbers[None])

    def _rows(self, output: Any) -> Tensor:
        raise NotImplementedError


class _HSIC(_OfBatches):
    states = ("_sum_of_hsic",)


class _Discrepancy(_OfBatches):
    states = ("_xx_sum", "_yy_sum", "_xy_sum")

    def _of(self, sums: Tensor, rows: int) -> Any:
        of_first, of_second, of_both = sums.tolist()
        return math.sqrt(max(of_first + of_second - 2 * of_both, 0.0) / rows)


OF_SUMS: dict[str, type[CompatibleIgniteMetric]] = {
    "Average": _Average,
    "Bleu": _Bleu,
    "CharacterErrorRate": _CharacterErrors,
    "CosineSimilarity": _CosineSimilarity,
    "GeometricAverage": _GeometricAverage,
    "HSIC": _HSIC,
    "Loss": _Loss,
    "MaximumMeanDiscrepancy": _Discrepancy,
    "MeanAbsoluteRelativeError": _RelativeError,
    "PSNR": _PSNR,
    **dict.fromkeys(("RougeL", "RougeN"), _Rouge),
}
"""The class that counts each of these metrics."""
