"""F1 of the entities in tagged sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from torch import Tensor

from assay.encode.entities import EntityCounts, Scheme
from assay.encode.strings import StringEncoder
from assay.errors import ConfigError, describe
from assay.metrics.base import SHARE, number
from assay.metrics.exact_arithmetic import quotient, rounded
from assay.metrics.per_sample import SampleTerms
from assay.metrics.text.base import TextMetric
from assay.tally.base import Batch
from assay.tally.sums.exact import Number
from assay.tally.sums.row_sums import RowTotals

Average = Literal["micro", "macro", "weighted", "none"]


@dataclass(frozen=True)
class EntityF1Score(TextMetric):
    """F1 of entities: which spans of tokens were found, with their type, by the rules of seqeval.

    `2 c / (p + t)` of `c` entities that prediction and target have in common, `p` of the prediction and `t` of the
    target. With a scheme, what it does not allow is no entity (seqeval's `mode="strict"`); without, tags are read as
    conlleval does, where an `I-` without a `B-` before it begins one.

    Shapes: `preds` and `target` are lists with a list of tags, such as `B-PER` and `O`, for each sentence. Weights are
    one number a sentence.

    Returns:
        float64, shape `()`, between 0 and 1; for `average="none"` a dictionary of them by type. The averages leave out
        types without an entity on either side. NaN without any entity, where seqeval has 0.

    Raises:
        ConfigError: an unknown scheme or average; no `types` for an average that needs them.
        InputError: lists of tags of different lengths, a tag that the scheme does not have, or a type that is not among
            `types`; the message has its position.

    Example:
        >>> preds = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG"]]
        >>> target = [["B-PER", "I-PER", "O", "O"], ["O", "B-LOC"]]
        >>> EntityF1Score()(preds, target)
        tensor(0.4000, dtype=torch.float64)
        >>> EntityF1Score("IOB2", average="none", types=("LOC", "PER"))(preds[:1], target[:1])
        {'LOC': tensor(0., dtype=torch.float64), 'PER': tensor(1., dtype=torch.float64)}

    Source: Nakayama, seqeval (2018); Tjong Kim Sang and Buchholz, CoNLL 2000, 127-132.
    """

    value_range = SHARE

    scheme: Annotated[
        Scheme | None, "'IOB1', 'IOB2', 'IOE1', 'IOE2', 'IOBES' or 'BILOU'; None reads tags leniently."
    ] = None
    average: Annotated[Average, "over all entities, over types, over types by entities of the target, or none."] = (
        "micro"
    )
    types: Annotated[tuple[str, ...] | None, "the types of entities; needed unless average='micro'."] = None

    higher_is_better = True
    inputs: ClassVar[str] = "tags"
    unchanged_by = frozenset({"swap"})
    examples = (
        {},
        {"scheme": "IOB2", "average": "macro", "types": ("A", "B", "C")},
        {"average": "weighted", "types": ("A", "B", "C")},
        {"average": "none", "types": ("A", "B", "C")},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        types: Any = self.types
        if isinstance(types, str):
            do = f"Pass types=({types!r},)"
            raise ConfigError(describe("types", repr(self.types), "a tuple of names", do))
        if self.types is not None:
            object.__setattr__(self, "types", tuple(self.types))
        if self.types is not None and (self.average == "micro" or len(set(self.types)) < len(self.types)):
            expected = "None with average='micro', which counts entities of any type; otherwise each type once"
            raise ConfigError(describe("types", self.types, expected, "Leave types out, or pass average='macro'"))
        if self.average != "micro" and not self.types:
            expected = f"the types of entities for average={self.average!r}"
            raise ConfigError(describe("types", self.types, expected, "Pass, for example, types=('PER', 'LOC')"))

    @property
    def encoder(self) -> StringEncoder:
        return EntityCounts(self.scheme, None if self.average == "micro" else self.types)

    def compute(self, counts: RowTotals) -> Tensor | Mapping[str, Tensor]:
        totals = counts.sums[0]
        values: Sequence[Number] = list(map(quotient, totals[::3], totals[1::3]))
        if self.average == "micro":
            return number(rounded(values[0]))
        assert self.types is not None, "it was checked"
        if self.average == "none":
            return {name: number(rounded(value)) for name, value in zip(self.types, values, strict=True)}
        weights = totals[2::3] if self.average == "weighted" else [1] * len(self.types)
        present = [(w, value) for w, value, entities in zip(weights, values, totals[1::3], strict=True) if entities]
        return number(rounded(quotient(sum(w * value for w, value in present), sum(w for w, _ in present))))

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if self.average != "micro":
            return None
        (twice, both, _), names = batch.preds.unbind(1), self.encoder.names
        return SampleTerms.of(names[0], twice, names[1], both)
