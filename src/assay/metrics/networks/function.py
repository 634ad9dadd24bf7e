"""The mean of what a function or a network of the caller gives for each sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Annotated, Any, ClassVar

from torch import Tensor

from assay.encode.base import TENSORS
from assay.encode.function import FunctionEncoder, check_names
from assay.errors import ConfigError, describe
from assay.metrics.base import Examples, Metric, number
from assay.metrics.exact_arithmetic import means, rounded
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.inputs import type_name
from assay.tally.rows.row_terms import FunctionNumbers
from assay.tally.sums.row_sums import RowSums, RowTotals


def _shortfall(preds: Tensor, target: Tensor) -> Tensor:
    """A function for the examples: how far predictions are below the target."""
    return (target - preds).clamp_(min=0)


def _size(preds: Tensor) -> Tensor:
    return preds.abs()


def _two_sides(preds: Tensor, target: Tensor) -> dict[str, Tensor]:
    return {"below": _shortfall(preds, target), "above": _shortfall(target, preds)}


@dataclass(frozen=True)
class PerSample(Metric):
    """Mean of what a function or a network of yours gives for each sample, such as LPIPS, CLIPScore or BERTScore.

    `sum(w f(preds, target)) / sum(w)`. The function is called once for each batch, at the update, and what it gives is
    counted like the terms of any other metric: exactly, in any order, with weights, intervals, slices, worst samples
    and comparisons. Nothing of the batch is kept.

    The function runs in `torch.inference_mode`, without autocast. A module (or the module whose method it is) is in
    evaluation mode during the call, and each of its parts afterwards in the mode that it had. Tensors on another device
    than its weights are moved there, with a `PlacementWarning`; floats narrower than its weights are widened. The
    module itself is never moved, and nothing is downloaded.

    Two metrics with equal arguments are equal, whichever functions they hold: the name stands for the function in
    equality, `repr`, state dictionaries and files. Name other weights otherwise. A file has the name and not the
    function: `Meter.from_file(path, known=[metric])` takes the metric again. Pickling pickles the function.

    Rounding: the numbers are those that the function gives, and may depend on the size of the batch if those do; their
    sum is exact.

    Shapes: `preds`, and `target` unless `uses_target=False`, are what the function takes: tensors `(N, ...)`, or with
    `takes` lists of N samples. It gives real numbers of shape `(N,)`, also `(N, 1, 1, 1)`, as a tensor, an array or a
    list; with `numbers` a dictionary or a tuple of these, or one table `(N, k)`. Weights are one number a sample.

    Returns:
        float64, shape `()`; with `numbers` and no `number`, a dictionary of these by name. Infinite where the function
        gives infinity. NaN without data.

    Raises:
        ConfigError: a function without a name of its own and no `name`; an object that is not callable; a `number`
            that is not among `numbers`. By a meter: two functions of one name.
        ShapeError: the function does not give one number for each sample. Its own errors are passed on.
        InvalidValuesError: by `compute`, if the function gave NaN; says for how many samples.

    Example:
        >>> import torch
        >>> def worst_pixel(preds, target):
        ...     return (preds - target).abs().flatten(1).amax(1)
        >>> PerSample(worst_pixel)(torch.zeros(2, 3, 4, 4), torch.ones(2, 3, 4, 4))
        tensor(1., dtype=torch.float64)
        >>> PerSample(torch.nn.Flatten(0), "flat", uses_target=False)(torch.tensor([1.0, 2.0, 6.0]))
        tensor(3., dtype=torch.float64)

    Source: Neal, Fast exact summation using small and large superaccumulators, arXiv:1505.05571.
    """

    function: Annotated[
        Callable[..., Any],
        "called as `function(preds, target, **columns)`: a function, a `torch.nn.Module`, or anything else.",
    ] = field(compare=False, repr=False)
    name: Annotated[
        str, "its name in reports and files; by default the name of a function that is defined in a module."
    ] = ""
    number: Annotated[str, "which of several numbers is the value; all of them by default."] = ""
    numbers: Annotated[tuple[str, ...], "the names of the numbers that the function gives; empty for one."] = ()
    takes: Annotated[
        str,
        'what samples are: "tensors", or "strings" or any other word for lists that are given to the function as they '
        "are. The metrics of a meter take the same.",
    ] = TENSORS
    uses_target: Annotated[bool, "False calls `function(preds)`; a target for other metrics is left out."] = True
    columns: Annotated[tuple[str, ...], "the named columns of an update that the function takes by keyword."] = ()
    higher_is_better: Annotated[bool | None, "whether higher values are better; None where neither is."] = None  # type: ignore[misc]

    family: ClassVar[str] = "networks"
    exact_terms: ClassVar[bool] = False
    inputs: ClassVar[str] = "pairs"
    examples: ClassVar[Examples] = (
        {"function": _shortfall},
        {"function": _two_sides, "numbers": ("below", "above"), "number": "above"},
        {"function": _two_sides, "numbers": ("below", "above")},
        {"function": _size, "uses_target": False},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        function: object = self.function
        if not callable(function):
            got, do = type_name(function), "Pass a function or a module"
            raise ConfigError(describe("function", got, "something that can be called", do))
        if not self.name:
            object.__setattr__(self, "name", _own_name(self.function))
        for argument in ("numbers", "columns"):
            object.__setattr__(self, argument, check_names(argument, getattr(self, argument)))
        if self.number and self.number not in self.numbers:
            expected = f"one of {', '.join(self.numbers)}" if self.numbers else "nothing, as numbers is empty"
            do = f"Pass numbers=({self.number!r}, ...), all that the function gives"
            raise ConfigError(describe("number", repr(self.number), expected, do))

    @classmethod
    def each(
        cls, function: Callable[..., Any], name: str = "", *, numbers: Sequence[str], **options: Any
    ) -> dict[str, PerSample]:
        """A metric for each number that a function gives, for a meter that calls it once a batch.

        Example:
            >>> import torch
            >>> from assay import Meter
            >>> metrics = PerSample.each(_two_sides, "sides", numbers=("below", "above"))
            >>> meter = Meter(**metrics)
            >>> meter.update(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 4.0]))
            >>> meter.compute()
            {'below': tensor(1., dtype=torch.float64), 'above': tensor(0.5000, dtype=torch.float64)}
        """
        return {each: cls(function, name, each, tuple(numbers), **options) for each in numbers}

    @property
    def encoder(self) -> FunctionEncoder:
        """What calls the function."""
        columns = frozenset(self.columns)
        return FunctionEncoder(self.function, self.name, self.numbers, self.takes, self.uses_target, columns)

    def tally(self, weighted: bool) -> Tally:
        return RowSums(FunctionNumbers(max(len(self.numbers), 1)), weighted)

    def compute(self, counts: RowTotals) -> Tensor | dict[str, Tensor]:
        values = [number(rounded(mean)) for mean in means(counts)]
        if self.numbers and not self.number:
            return dict(zip(self.numbers, values, strict=True))
        return values[self._place]

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if self.numbers and not self.number:
            return None
        return SampleTerms.of(f"{self.name} {self.number}".strip(), batch.preds[:, self._place])

    @property
    def _place(self) -> int:
        return self.numbers.index(self.number) if self.number else 0


def _own_name(function: Callable[..., Any]) -> str:
    """The name of a function that is defined in a module."""
    name = function.__qualname__ if isinstance(function, FunctionType) else ""
    if not name or "<" in name:
        got = f"none for {name or type_name(function)}"
        do = 'Pass name="...", which tells its weights and options from others'
        raise ConfigError(describe("name", got, "a name for the function", do))
    return name
