"""What a metric is: a frozen description of which tally it needs and how its value is read from it."""

from __future__ import annotations

import difflib
import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay._lazy import LateAttributeError
from assay.encode.base import Encoder
from assay.errors import ConfigError, describe
from assay.metrics.documentation import docstring, field_hints, fixed_fields, sections
from assay.metrics.field_values import check_size, literals_of, number_kind, plain
from assay.metrics.metric_type import MetricType, about_name, about_positions, needing_counts
from assay.metrics.operators import binary, unary
from assay.metrics.per_sample import SampleTerms
from assay.stats.intervals import Ends
from assay.tally.base import Batch, BatchLayout, State, Tally
from assay.tally.column import of_column
from assay.tally.ragged import Ragged
from assay.tally.state_quotients import state_quotient
from assay.tally.sums.polynomials import QuotientOfSums

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Change = Literal["swap", "increasing", "affine", "common affine", "shift", "scale"]
"""Changes of preds and target: exchanged; preds through an increasing function; each to `a x + b`; both to the same
`a x + b`; preds to `x + b`; preds to `a x` with `a` above 0."""
Picture = Literal["bars", "matrix", "reliability", "roc", "pr", "det"]
"""How values are drawn: numbers as bars; a table of classes; a reliability diagram; curves, whose points come first."""


NO_ESTIMATE = "a total, a count or an extreme, which says nothing of other samples"
"""Why such a value has no interval."""

ANY_NUMBER = (-math.inf, math.inf)
NOT_NEGATIVE = (0.0, math.inf)
SHARE = (0.0, 1.0)
CORRELATION = (-1.0, 1.0)
AT_MOST_1 = (-math.inf, 1.0)
"""Ranges of values."""

DIRECTIONS: Mapping[bool | None, str] = {True: "higher", False: "lower", None: ""}
"""What reports call `higher_is_better`."""
Examples: TypeAlias = tuple[Mapping[str, Any], ...]


class GroupCounts(Protocol):
    """What a tally computes of groups of samples.

    Attributes:
        whole: what it computes of all samples.
        area_sums: what groups contribute to areas under ROC curves, see `assay.tally.base.Tally.area_sums`; None where
            that follows from what is computed of each.
        by_group: what it computes of all samples where these are in the order of the groups, and the group of each;
            None where another tally is read.
    """

    @property
    def by_group(self) -> tuple[Any, NDArray[np.int64]] | None:
        """See above."""

    @property
    def whole(self) -> Any:
        """See above."""

    @property
    def area_sums(self) -> NDArray[np.int64] | None:
        """See above."""

    def pairs_of_draws(self, draws: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """The pairs of positives and negatives of draws of the groups, see `assay.tally.base.Tally.pairs_of_draws`."""

    def tables_of_draws(self, draws: NDArray[np.int64]) -> Iterator[Any] | None:
        """What a tally of integer tables computes of many draws at a time, with a dimension of the draws before others.

        None where the draws must be computed one by one.
        """

    def __iter__(self) -> Iterator[Any]:
        """What is computed of each group."""


class Metric(metaclass=MetricType):
    """A frozen description: nothing in a metric changes, so one can be shared, compared, hashed and written down.

    Subclasses are frozen dataclasses whose fields are plain values: numbers, strings, booleans, other metrics, tuples.
    Arithmetic with metrics gives metrics: operands are metrics and plain numbers. Metrics are compared as descriptions,
    so `==` says whether two are the same, and there is no `<`.

    A class is the one declaration of its metric: `help`, the tables of the documentation, the laws in the tests and the
    cases of the audit are made from it. Fields are annotated with their text, as in
    `beta: Annotated[float, "how much recall counts against precision."]`. The docstring has a summary, the formula, an
    example and the source; sections that it leaves out are those of its base class, and the arguments are added.

    Attributes:
        family: under which it is listed.
        higher_is_better: whether higher values are better; None where neither is, or where it gives no single number.
        value_range: the least and the largest number that a value can have; intervals end there.
        part_ranges: the same of parts of a value that has several, by their names, where it is another one.
        biased_upwards: few samples give higher values on average; gates then take a lower end that is further out.
        exact_terms: the value is that of exact arithmetic, rounded once. Otherwise each sample's term is rounded,
        terms_in_float64: to float64 for samples of any dtype, instead of to float32 or their own.
        inputs: what samples it takes, as `samples` draws them; empty for metrics of metrics.
        examples: arguments with which it is tested and audited.
        unchanged_by: changes of the data that change no bit of the value.
        picture: how `plot` draws the value.
        defined_for: which samples define the value, for the warning that it is NaN; empty where `compute` itself warns.
        arguments: the text of every field.
    """

    family: ClassVar[str] = "your own"
    higher_is_better: ClassVar[bool | None] = None
    value_range: ClassVar[tuple[float, float]] = ANY_NUMBER
    part_ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    biased_upwards: ClassVar[bool] = False
    exact_terms: ClassVar[bool] = True
    terms_in_float64: ClassVar[bool] = False
    inputs: ClassVar[str] = ""
    examples: ClassVar[Examples] = ({},)
    unchanged_by: ClassVar[frozenset[Change]] = frozenset()
    picture: ClassVar[Picture] = "bars"
    defined_for: ClassVar[str] = "enough samples that have weight, are not ignored and differ"
    arguments: ClassVar[Mapping[str, str]] = {}
    _numbers: ClassVar[Mapping[str, tuple[str, bool]]] = {}
    _choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    _sections: ClassVar[Mapping[str, str]] = {}

    __array_ufunc__ = None  # so that NumPy leaves `np.float64(2) * metric` to the metric
    __add__, __radd__ = binary("+")
    __sub__, __rsub__ = binary("-")
    __mul__, __rmul__ = binary("*")
    __truediv__, __rtruediv__ = binary("/")
    __pow__, __rpow__ = binary("**")
    __neg__, __abs__ = unary("neg"), unary("abs")

    def __init_subclass__(cls, **options: Any) -> None:
        """Describe the arguments in the docstring, note which of them are numbers, and leave types as annotations."""
        super().__init_subclass__(**options)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # of its own, which dataclasses do not replace
        if "compute" in cls.__dict__:
            cls.compute = needing_counts(cls.compute)  # type: ignore[method-assign]
        hints = field_hints(cls)
        cls.__annotations__ = inspect.get_annotations(cls) | {name: kind for name, (kind, _) in hints.items()}
        texts = {name: text or cls.arguments.get(name, "") for name, (_, text) in hints.items()}
        numbers = {name: number for name, (kind, _) in hints.items() if (number := number_kind(kind))}
        choices = {name: literals for name, (kind, _) in hints.items() if (literals := literals_of(kind))}
        fixed = fixed_fields(cls)
        cls.arguments = _without(fixed, {**cls.arguments, **texts})
        cls._numbers, cls._choices = (
            _without(fixed, {**cls._numbers, **numbers}),
            _without(fixed, {**cls._choices, **choices}),
        )
        if "__doc__" in cls.__dict__ and cls.__doc__:
            written = sections(cls.__doc__)
            rounding = "exact" if cls.exact_terms else "float64" if cls.terms_in_float64 else "terms"
            cls.__doc__ = docstring(written, cls.arguments, cls._sections, rounding)
            cls._sections = {**cls._sections, **written}

    def __post_init__(self) -> None:
        """Make numbers of NumPy and torch plain ones; raise for values that are not of the types of their fields."""
        for name, (kind, optional) in self._numbers.items():
            value = getattr(self, name)
            if not (optional and value is None):
                object.__setattr__(self, name, plain(name, value, kind))
                check_size(name, getattr(self, name))
        for name, choices in self._choices.items():
            value = getattr(self, name)
            if not any(type(value) is type(choice) and value == choice for choice in choices):
                *others, last = map(repr, choices)
                expected = f"{', '.join(others)} or {last}" if others else last
                words = [choice for choice in choices if isinstance(choice, str)]
                close = difflib.get_close_matches(str(value).lower(), words, 1)
                default = close[0] if close else getattr(type(self), name, choices[0])
                do = f"Pass {name}={default!r}" if default is not None else f"Leave {name} out"
                raise ConfigError(describe(name, repr(value), expected, do))

    def _refuse_without_effect(self, name: str, why: str, do: str) -> None:
        """Raise for an argument that is not its default where it would have no effect.

        Args:
            name: the argument.
            why: for what it has none, such as "multiclass data".
            do: what the caller can do.

        Raises:
            ConfigError: it is not its default.
        """
        value, default = getattr(self, name), next(field.default for field in fields(self) if field.name == name)  # type: ignore[arg-type]
        if value != default:
            raise ConfigError(describe(name, repr(value), f"{default!r} for {why}, on which it has no effect", do))

    if not TYPE_CHECKING:  # for type checkers, a metric has what its class says

        def __getattr__(self, name: str) -> Any:
            """Raise for what the metric does not have; what to write instead is named."""
            raise LateAttributeError(lambda: about_name(self, name))

    @property
    def encoder(self) -> Encoder | None:
        """What turns raw samples into the rows that are counted; None where an update is given tensors."""
        return None

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Make numbers plain after unpickling, too: a NaN is then the one object that equals itself."""
        self.__dict__.update(state)
        Metric.__post_init__(self)

    @abstractmethod
    def tally(self, weighted: bool) -> Tally:
        """The tally that this metric is computed from, with or without sample weights.

        With an encoder, its rows are the `preds` of the tally, and there is no target.
        """

    def check(self, layout: BatchLayout) -> None:
        """Raise an `InputError` for a batch whose metadata contradict the arguments; its tally can count it."""

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        """The encoder of this metric, or those of the metrics that it is made of."""
        return () if self.encoder is None else (self.encoder,)

    def batch_tally(self, weighted: bool) -> Tally:
        """The tally as batches are counted: with an encoder, that of the column with its rows."""
        tally = self.tally(weighted)
        return tally if self.encoder is None else of_column(tally, self.encoder.column)

    @abstractmethod
    def compute(self, counts: Any) -> Any:
        """The value, from what the tally's `compute` gives: a tensor, or a tuple or dictionary of them; on the CPU."""

    @property
    def quotient_of_sums(self) -> QuotientOfSums | None:
        """What `compute` divides where it does nothing else: it is then read from what was counted in one step.

        Where the divisor is 0, or something is not finite or to be reported, `compute` is asked. None for other values;
        a class with a `compute` of its own says it for itself.
        """
        return None

    def reading(self, tally: Tally) -> Callable[[State], Any] | None:
        """What gives the value from a state as it was counted, in one step; None where nothing is faster.

        It gives None where `compute` must be asked: no data, data of which there is something to report, and NaN. A
        class with a `compute` of its own has that of `quotient_of_sums` only where it says it for itself.

        Args:
            tally: that of the metric, or a union of it with others.
        """
        formula = self.quotient_of_sums
        return None if formula is None else state_quotient(tally, formula)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        """The values of each row, where the metric is a mean over rows or the quotient of two; see `per_sample_values`.

        No value may be read on the CPU. Weights are multiplied in afterwards.
        """
        return None

    def sample_scores(self, columns: Mapping[str, Ragged]) -> tuple[str, np.ndarray] | None:
        """How good each sample is, where the metric is no mean over samples: it finds the worst, and is no value.

        Args:
            columns: the columns of the metric's encoder. They are copied to the CPU.

        Returns:
            What the numbers are, and one number a sample, NaN where it is undefined; None where a metric has none.
        """
        return None

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.arguments})

    def __repr__(self) -> str:
        """The class with the arguments that are not its defaults."""
        given = {field.name: repr(getattr(self, field.name)) for field in fields(self) if field.repr}  # type: ignore[arg-type]
        defaults = {field.name: repr(field.default) for field in fields(self)}  # type: ignore[arg-type]
        shown = ", ".join(f"{name}={text}" for name, text in given.items() if text != defaults[name])
        return f"{type(self).__qualname__}({shown})"

    @property
    def estimates(self) -> bool:
        """Whether the value estimates one of all that the samples stand for, as a mean does.

        Totals, counts and extremes do not: they change with the number of samples. They have no interval.
        """
        return True

    @property
    def without_estimate(self) -> str:
        """Why there is no interval of any samples; empty where the value estimates something."""
        return "" if self.estimates else NO_ESTIMATE

    @property
    def scale(self) -> str:
        """The function of a mean that the value is, of `assay.stats.scales.SCALES`: its interval is that of the mean.

        Empty where the value is no such function. Where it is one, `per_sample` gives what the mean is of, or nothing.
        """
        return ""

    @property
    def closed_form(self) -> str:
        """What the interval is called that `interval` gives; empty where it gives none."""
        return ""

    @property
    def needs_many(self) -> bool:
        """Whether `interval` gives one where there are many samples alone, so that few of them are resampled."""
        return False

    def interval(self, counts: Any, confidence_level: float, rows: int) -> Ends | None:
        """The interval of the value in closed form, for samples without weights.

        Args:
            counts: what the tally's `compute` gives.
            confidence_level: between 0 and 1.
            rows: how many rows were given; where more than that was counted, samples of a row depend on each other, and
                there is no interval.

        Returns:
            Both ends; None where the formula says nothing, as for few samples.
        """
        return None

    def safe_interval(self, counts: Any, confidence_level: float, rows: int) -> Ends | None:
        """The interval by which a gate decides, where an end of `interval` may miss more often than its level says.

        Args:
            counts: what the tally's `compute` gives.
            confidence_level: between 0 and 1.
            rows: how many rows were given.

        Returns:
            Both ends, infinite where no number is known; None where those of `interval` hold.
        """
        return None

    def intervals(self, counts: Any, confidence_level: float, rows: int) -> tuple[Ends | None, Ends | None]:
        """What `interval` and `safe_interval` give, for metrics that find both at once."""
        return self.interval(counts, confidence_level, rows), self.safe_interval(counts, confidence_level, rows)

    def caution(self, counts: Any) -> str:
        """Why `interval` may hold the true value less often than its level says, of these counts; empty where not."""
        return ""

    @property
    def is_smooth(self) -> bool:
        """Whether `replicates` may give values of resampled samples at once."""
        return False

    def replicates(
        self, groups: GroupCounts, draws: NDArray[np.int64], *, to_first_order: bool
    ) -> NDArray[np.float64] | None:
        """Values of resampled samples, all at once.

        Args:
            groups: the groups of the samples, which have no weights; what they have is computed when it is read.
            draws: how often each group counts in each replicate, `(replicates, groups)`; the first is all samples once.
            to_first_order: there are `FROM_ROWS` samples, so that what groups move a smooth value by may be added up.

        Returns:
            The value of all samples and that of each replicate; None where they must be computed one by one, as where
            a class has few samples.
        """
        return None

    def values_of_draws(self, groups: GroupCounts, draws: NDArray[np.int64]) -> Iterator[Any] | None:
        """What `compute` gives of resampled samples, without what is computed once for all of them.

        Args:
            groups: as of `replicates`.
            draws: likewise.

        Returns:
            For each draw the value, to the bit; parts that are no single numbers may be left out. None where each draw
            must be counted.
        """
        return None

    def classes_without_targets(self, counts: Any) -> frozenset[int]:
        """The classes that no sample has, where the value is a mean over classes in which such a class can count as 0.

        No classes for all other values.
        """
        return frozenset()

    def without_interval(self, counts: Any) -> str:
        """Why `interval` gives none of these counts."""
        return f"{self.closed_form} is undefined for these samples"

    def predicted(self, batch: Batch) -> Tensor | None:
        """What is predicted for each row, of shape `(N,)`; None where that is not one thing."""
        return None

    def __call__(
        self,
        preds: Any,
        target: Any = None,
        *others: Any,
        weights: Any = None,
        labels: Sequence[str] | None = None,
        **columns: Any,
    ) -> Any:
        """The value of this metric on one batch.

        Args:
            preds: predictions: a tensor on any device, an array, a Series, or a list of numbers; raw samples where the
                metric takes those.
            target: what they are compared with, of the shape that the metric's description states.
            weights: one weight per sample, shape `(N,)`, or one per target.
            labels: what strings stand for, in the order of their numbers; by default the sorted ones of both arguments.
            **columns: the named columns that the metric takes.

        Returns:
            The value on the CPU; float64 where it is a number.

        Raises:
            InputError: invalid shapes, dtypes or values.

        Example:
            >>> from assay.metrics import Accuracy
            >>> Accuracy(num_classes=3)(["b", "c", "b"], ["a", "c", "a"])
            tensor(0.3333, dtype=torch.float64)
        """
        from assay.meter.batch_values import value_of_batch  # the meter knows metrics; they meet it only when called

        if others:
            raise TypeError(about_positions(self, len(others)))
        return value_of_batch(self, preds, target, weights, columns, labels)

    def plot(
        self,
        preds: Any,
        target: Any = None,
        *,
        weights: Tensor | None = None,
        axes: Axes | None = None,
        classes: Sequence[str] = (),
        **columns: Tensor | None,
    ) -> Axes:
        """Draw the value of this metric on one batch with Matplotlib; `Meter.plot` draws that of many.

        Args:
            preds: predictions: a tensor on any device, an array, a Series, or a list of numbers; raw samples where the
                metric takes those.
            target: what they are compared with, of the shape that the metric's description states.
            weights: one weight per sample, shape `(N,)`, or one per target.
            axes: where to draw; by default on axes of a new figure of pyplot.
            classes: the names of the classes.
            **columns: the named columns that the metric takes.

        Returns:
            The axes.

        Raises:
            ConfigError: there is nothing to draw of the value.
            InputError: invalid shapes, dtypes or values.
        """
        from assay.meter.batch_values import meter_of_batch  # the same

        meter = meter_of_batch(self, weights)
        meter.update(preds, target, weights=weights, **columns)
        return meter.plot(axes=axes, classes=classes)


def _without(names: frozenset[str], mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name not in names}


def number(value: float) -> Tensor:
    """A result: a 0-dimensional float64 tensor on the CPU."""
    # in a third of the time of `torch.tensor`, which takes fractions, too
    return torch.scalar_tensor(float(value), dtype=torch.float64, device="cpu")


def vector(values: Any) -> Tensor:
    """A result per class or output: a float64 tensor on the CPU."""
    return torch.tensor([float(v) for v in values], dtype=torch.float64, device="cpu")


def named_numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """The single numbers of a value, with their names; none of curves, tables and values per class without names.

    A dictionary may also have values per class; a tuple with such parts, as a curve, has no single numbers.

    Example:
        >>> list(named_numbers("recall", {"cat": number(0.5), "dog": number(1), "per_class": torch.ones(2)}))
        [('recall cat', 0.5), ('recall dog', 1.0)]
    """
    if isinstance(value, Tensor):
        if not value.ndim:
            yield name, float(value)
        return
    if isinstance(value, Mapping):
        parts = {part: each for part, each in value.items() if _is_number(each)}
    else:
        whole = value if isinstance(value, tuple) else (value,)
        names = getattr(value, "_fields", range(len(whole)))
        parts = dict(zip(names, whole, strict=True)) if all(map(_is_number, whole)) else {}
    for part, each in parts.items():
        yield f"{name} {part}", float(each)


def _is_number(value: Any) -> bool:
    return isinstance(value, Tensor) and not value.ndim
