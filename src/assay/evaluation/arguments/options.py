"""How an evaluation is run: the options of `evaluate`, and which values they may have."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeAlias, cast

import torch

from assay._atomic import location
from assay.errors import ConfigError, describe
from assay.evaluation.data.batch import Selector, Shown, parse_shown
from assay.evaluation.model.dtypes import DTYPES
from assay.evaluation.observe.clusters import is_selector
from assay.evaluation.observe.slices import Slices, SliceSpec, parse_slices
from assay.evaluation.processes.ranks import TIMEOUT_S
from assay.evaluation.processes.said import parsed_mesh
from assay.meter import Meter
from assay.meter.meter_options import Recount, check_recount
from assay.metrics.base import Metric
from assay.report import Report
from assay.report.per_sample.samples import MOST_SAMPLES
from assay.stats.bootstrap import LEAST

P = ParamSpec("P")
Metrics: TypeAlias = "str | Metric | Meter | Mapping[str, Metric | str] | Sequence[Metric | str]"
"""What is measured: metrics, or how the command line writes them."""

ON_ERROR = ("raise", "skip")


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What a report says of samples, whoever predicted them; `evaluate` describes each.

    Raises:
        ConfigError: an invalid value.
    """

    slices: Slices = None
    by: Slices = None
    cluster: Any = None
    min_slice_size: int = 20
    confidence_level: float | None = 0.95
    n_resamples: int = 400
    keep_samples: bool = True
    max_kept_samples: int = MOST_SAMPLES
    diagnostics: bool = True
    show: Shown = None
    classes: Sequence[str] = ()
    num_classes: int | None = None
    progress: bool | None = None
    seed: int = 0
    title: str = "Evaluation"

    def __post_init__(self) -> None:
        self._check_integers(min_slice_size=1, n_resamples=LEAST, max_kept_samples=1)
        if self.confidence_level is not None and not (
            isinstance(self.confidence_level, float) and 0 < self.confidence_level < 1
        ):
            do = "Pass 0.95 for 95 %, or None for no intervals"
            raise ConfigError(describe("confidence_level", repr(self.confidence_level), "a number between 0 and 1", do))
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise ConfigError(describe("seed", repr(self.seed), "an integer from 0 to 2^63 - 1", "Pass seed=0"))
        if self.num_classes is not None:
            self._check_integers(num_classes=2)
        if isinstance(self.classes, str | int):
            do = "Pass a list of names" if isinstance(self.classes, str) else f"Pass num_classes={self.classes}"
            raise ConfigError(describe("classes", repr(self.classes), "one name for each class", do))
        parse_shown(self.show)

    @property
    def slice_spec(self) -> SliceSpec:
        """The slices and tables, and the parts that they are made of."""
        return parse_slices(self.slices).with_tables(self.by)

    def _check_integers(self, **least: int) -> None:
        for name, lowest in least.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < lowest:
                expected = f"an integer, {lowest} or more"
                raise ConfigError(describe(name, repr(value), expected, f"Pass {name}={lowest}, or leave it out"))


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(ReportOptions):
    """How an evaluation is run: the keyword arguments of `evaluate`, which describes them.

    Raises:
        ConfigError: an invalid value.
    """

    device: str | torch.device = "auto"
    inputs: Selector = None
    features: Sequence[str] = ()
    target: Selector = None
    preds: Selector = None
    weights: Selector = None
    ids: Selector = None
    columns: Mapping[str, Selector] | None = None
    precision: str | None = None
    compile: bool | Mapping[str, Any] = False
    batch_size: int | None = 64
    num_workers: int = 0
    sharded: bool | None = None
    mesh: Any = None
    data_group: Any = None
    resume: str | os.PathLike[str] | None = None
    run_id: str | None = None
    checkpoint_every: float = 30.0
    on_error: str = "raise"
    rank_timeout_s: float = TIMEOUT_S
    stop_when: Any = None
    recount: Recount | None = None
    verify: int = 0
    verify_dtype: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recount is not None:
            check_recount(self.recount)
        if self.on_error not in ON_ERROR:
            raise ConfigError(describe("on_error", repr(self.on_error), " or ".join(ON_ERROR), 'Pass on_error="raise"'))
        parsed_mesh(self.mesh)
        loaded = {} if self.batch_size is None else {"batch_size": 1}
        self._check_integers(num_workers=0, verify=0, **loaded)
        if self.verify_dtype not in DTYPES:
            do = 'Pass verify_dtype="float64"'
            raise ConfigError(describe("verify_dtype", repr(self.verify_dtype), " or ".join(DTYPES), do))
        columns: Any = self.columns
        if columns is not None and not isinstance(columns, Mapping):
            do = 'Pass columns={"indexes": "query_id"}'
            raise ConfigError(describe("columns", repr(columns), "parts of a batch by name", do))
        if isinstance(self.features, str):
            do = f"Pass features=[{self.features!r}]"
            raise ConfigError(describe("features", repr(self.features), "a list of names of columns", do))
        if self.resume is not None:
            location("resume", self.resume)
        if self.stop_when is not None:
            self._check_stop_when()
        if self.run_id is not None and not (isinstance(self.run_id, str) and self.run_id):
            do = "Pass a string, or None where everything has a digest"
            raise ConfigError(describe("run_id", repr(self.run_id), "a name", do))

    def _check_stop_when(self) -> None:
        from assay.report.gating.stopping import StopWhen  # here, as few evaluations end early

        StopWhen.of(self.stop_when)
        if is_selector(self.cluster):
            got = f"with cluster={self.cluster!r}, a part of each batch"
            do = "Pass cluster= as an array, one for each sample of the data"
            raise ConfigError(describe("stop_when", got, "clusters that are known before any is read", do))
        if self.resume is not None:
            do = "Leave one of the two out"
            raise ConfigError(describe("stop_when", "with resume", "a run that does not resume", do))
        if not self.keep_samples:
            do = "Leave keep_samples=False out"
            raise ConfigError(describe("stop_when", "with keep_samples=False", "per-sample values", do))


class Evaluate(Protocol[P]):
    """A function that evaluates a model, with options `P`."""

    def __call__(
        self,
        model: Callable[..., Any],
        data: Any,
        metrics: Metrics,
        *args: P.args,
        **options: P.kwargs,
    ) -> Report:
        """Evaluate."""


_CALLS = {
    "model": 'evaluate(model, (x, y), "accuracy,f1")',
    "source": 'score({"p": preds, "y": target}, "accuracy,f1", preds="p", target="y")',
}
"""How functions are called, by their first argument."""


def takes_options(options: Callable[P, ReportOptions]) -> Callable[[Callable[..., Report]], Evaluate[P]]:
    """Give a function that takes `**options` the fields of a dataclass as its keyword arguments, with their types."""

    def declared(function: Callable[..., Report]) -> Evaluate[P]:
        signature = inspect.signature(function)
        arguments = [each for each in signature.parameters.values() if each.kind != each.VAR_KEYWORD]
        arguments += inspect.signature(options).parameters.values()
        names = [each.name for each in arguments]
        by_place = [each.name for each in arguments if each.kind == each.POSITIONAL_OR_KEYWORD]
        required = [each.name for each in arguments if each.name in by_place and each.default is each.empty]

        @functools.wraps(function)
        def checked(*arguments: Any, **options: Any) -> Report:
            for name in options.keys() - set(names):
                near = difflib.get_close_matches(name, names, 1)
                do = f"Write {near[0]}=" if near else f"See help({function.__name__})"
                raise ConfigError(describe(function.__name__, f"an argument {name!r}", "one that it has", do))
            expected = f"{' and '.join(by_place)} by place, all others by name"
            do = f"Write {_CALLS.get(by_place[0], f'as help({function.__name__}) says')}"
            if len(arguments) > len(by_place):
                raise ConfigError(describe(function.__name__, f"{len(arguments)} arguments by place", expected, do))
            if missing := [name for name in required[len(arguments) :] if name not in options]:
                raise ConfigError(describe(function.__name__, f"no {' and no '.join(missing)}", expected, do))
            return function(*arguments, **options)

        checked.__signature__ = signature.replace(parameters=arguments)  # type: ignore[attr-defined]
        return cast("Evaluate[P]", checked)

    return declared
