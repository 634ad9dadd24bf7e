"""The loss of each token, and their mean as a metric: logits of a large vocabulary are read once and not kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from assay.devices.policies import policy
from assay.errors import ConfigError, ShapeError, describe
from assay.language.causal import CausalModel
from assay.language.windows import IGNORED
from assay.meter.processes.distributed_tensors import first_largest, is_distributed, local_part, losses_at, whole
from assay.metrics.base import Metric, number
from assay.metrics.exact_arithmetic import means, rounded
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, BatchLayout, Tally, shown
from assay.tally.layout_checks import shown_or_nothing
from assay.tally.sums.row_sums import RowSums, RowTerm, RowTotals, RowValues


class TokenLosses(nn.Module):
    """`-log softmax(logits)[label]` of every token, `(B, T)`; 0 where the label is `IGNORED`.

    Computed in float32 (float64 for such logits), some rows of logits at a time.

    Args:
        model: gives the logits.
        largest: the largest token id that it will be given.

    Raises:
        ConfigError: when run: the model has no such token.
    """

    def __init__(self, model: CausalModel, largest: int) -> None:
        super().__init__()
        self.model, self._largest = model, largest

    def forward(self, input_ids: Tensor, labels: Tensor) -> Tensor | None:
        logits = self.model(input_ids)
        if logits is None:  # of a pipeline only the last stage has outputs
            return None
        size = logits.shape[-1]
        check_vocabulary(self._largest, size)
        if is_distributed(logits):
            return sharded_losses(logits, labels)
        flat, known = logits.reshape(-1, size), labels.reshape(-1)
        rows = max(1, policy(logits.device).chunk_elements.value // size)
        wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
        parts = []
        for k in range(0, len(flat), rows):
            logs = flat[k : k + rows].log_softmax(1, dtype=wide)
            parts.append(nn.functional.nll_loss(logs, known[k : k + rows], ignore_index=IGNORED, reduction="none"))
        return torch.cat(parts).view(labels.shape)


def sharded_losses(logits: Any, labels: Tensor) -> Tensor:
    """The losses of logits `(B, T, V)` of type `DTensor`: each process computes its own, and only losses are gathered.

    Args:
        logits: sharded over texts, tokens or words, or replicated.
        labels: of all texts.
    """
    part = local_part(logits, "logits")
    known, flat = part.block(labels, 2), part.tensor.reshape(-1, part.tensor.shape[-1])
    of_rows = known.reshape(-1)
    losses = losses_at(flat, part.start[2], of_rows, part.sharded.get(2, ()), logits.shape[-1])
    losses = torch.where(torch.eq(of_rows, IGNORED), torch.zeros_like(losses), losses)
    return _of_all_tokens(losses.view(known.shape), logits, labels)


def sharded_labels(logits: Any, labels: Tensor) -> Tensor:
    """The most probable token by logits `(B, T, V)` of type `DTensor`, of which only these tokens are gathered.

    Args:
        logits: sharded over texts, tokens or words, or replicated.
        labels: of all texts, for their shape.
    """
    part = local_part(logits, "logits")
    known, flat = part.block(labels, 2), part.tensor.reshape(-1, part.tensor.shape[-1])
    best = first_largest(flat, part.start[2], logits.shape[-1], part.sharded.get(2, ()))
    return _of_all_tokens(best.view(known.shape), logits, labels)


def _of_all_tokens(values: Tensor, logits: Any, labels: Tensor) -> Tensor:
    """One value for each token of all texts, of which this process has those whose logits it has."""
    from torch.distributed.tensor import DTensor, Replicate  # not in a torch without distributed

    placements = [Replicate() if each.is_shard() and each.dim % 3 == 2 else each for each in logits.placements]
    spread: Any = DTensor.from_local(
        values, logits.device_mesh, placements, run_check=False, shape=labels.shape, stride=(labels.shape[1], 1)
    )
    return whole(spread)


def check_vocabulary(largest: int, size: int) -> None:
    """Raise where a token is none of a model's.

    Raises:
        ConfigError: the largest token is not below the size of the vocabulary.
    """
    if largest >= size:
        do = "Pass the tokenizer that the model was trained with"
        raise ConfigError(describe("data", f"token {largest}", f"tokens below {size}, as the model has", do))


@dataclass(frozen=True)
class GivenLoss(RowTerm):
    """`preds (N, T)` themselves, where `target (N, T)` is not `IGNORED`."""

    not_finite = "tokens have a log probability that is NaN or infinite"

    def check(self, layout: BatchLayout) -> None:
        if layout.target is None or layout.target.tail != layout.preds.tail:
            got = f"shape {shown(layout.preds.tail)} with target {shown_or_nothing(layout.target)}"
            raise ShapeError(describe("preds", got, "one loss a token", "Pass what TokenLosses gives, and the labels"))

    def __call__(self, batch: Batch) -> RowValues:
        return RowValues(batch.preds.reshape(-1), counted=torch.ne(batch.needed_target.reshape(-1), IGNORED))


@dataclass(frozen=True)
class MeanLoss(Metric):
    """The mean of losses over tokens, in nats: `sum(loss) / count`, both exact.

    `preds (N, T)` are losses, `target (N, T)` the tokens, `IGNORED` for those that do not count. Each row, a window of
    a text, contributes the sum of its losses over the number of its tokens.

    Returns:
        float64, shape `()`. NaN without data.

    Example:
        >>> MeanLoss()(torch.tensor([[1.0, 2.0], [0.0, 6.0]]), torch.tensor([[5, 5], [-100, 5]]))
        tensor(3., dtype=torch.float64)

    Source: Shannon, Bell System Technical Journal 30 (1951), 50-64.
    """

    higher_is_better: ClassVar[bool | None] = False

    def tally(self, weighted: bool) -> Tally:
        return RowSums(GivenLoss(), weighted)

    def compute(self, counted: RowTotals) -> Tensor:
        (mean,) = means(counted)
        return number(rounded(mean))

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        counted = torch.ne(batch.needed_target, IGNORED)
        losses = torch.where(counted, batch.preds, 0).flatten(1).sum(1)
        return SampleTerms.of("nats", losses, "tokens", counted.flatten(1).sum(1))
