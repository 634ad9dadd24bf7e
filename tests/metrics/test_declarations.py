"""What the class of a metric declares is all there is to say: help, tables, laws and the audit follow from it."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import pydoc
import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import pytest
import torch

import assay.metrics
from assay._lazy import homes_of
from assay.errors import ConfigError
from assay.metrics import Metric
from assay.metrics.base import named_numbers
from assay.metrics.catalogue import PAGES, families, page
from assay.metrics.classification.label_metrics import LabelMetric
from assay.metrics.documentation import SECTIONS, sections
from assay.metrics.samples import draw_columns, draw_for, examples, public_metrics
from thinning import every_third

ROOT = Path(__file__).parents[2]
every_metric = pytest.mark.parametrize("kind", public_metrics().values(), ids=public_metrics())


def classes():
    """Every class of a metric that `assay.metrics` defines."""
    modules = pkgutil.walk_packages(assay.metrics.__path__, "assay.metrics.")
    things = (thing for module in modules for thing in vars(importlib.import_module(module.name)).values())
    return {thing for thing in things if inspect.isclass(thing) and issubclass(thing, Metric)}


def test_every_metric_is_public():
    found = {kind.__name__ for kind in classes() if not inspect.isabstract(kind)}
    found = {name for name in found if not name.endswith("Metric")}  # base classes
    assert found == set(public_metrics())


def test_a_metric_has_at_most_three_classes_above_it_and_none_of_them_is_a_metric_itself():
    chains = {kind.__name__: [base.__name__ for base in kind.__mro__[:-1]] for kind in classes()}
    assert {name: chain for name, chain in chains.items() if len(chain) > 4} == {}
    assert {name: chain for name, chain in chains.items() if {*chain[1:]} & {*public_metrics()}} == {}


def test_each_name_is_imported_from_the_module_that_defines_it():
    homes = homes_of("assay.metrics")
    metrics = {name: kind.__module__ for name, kind in public_metrics().items()}
    assert {name: homes[name] for name in metrics} == metrics


@every_metric
def test_help_has_everything(kind):
    text, parts = pydoc.render_doc(kind, renderer=pydoc.plaintext), sections(kind.__doc__)
    wanted = {"", *SECTIONS} - (set() if fields(kind) else {"Args"})
    assert {name for name, part in parts.items() if part} == wanted
    for part in parts.values():
        assert all(line.strip() in text for line in part.splitlines())
    assert ">>>" in parts["Example"]
    for field in fields(kind):
        assert kind.arguments[field.name].endswith("."), f"{field.name} lacks a text"
        assert f"    {field.name}: " in parts["Args"]
    assert "float64" in parts["Returns"] or "tensors" in parts["Returns"]


@every_third
@every_metric
def test_it_has_a_family_and_examples(kind):
    assert kind.family != Metric.family
    assert next(examples(kind), None) is not None
    for metric in examples(kind):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            generator = torch.Generator().manual_seed(0)
            metric(*draw_for(metric)(generator, 12), **draw_columns(metric, generator, 12))


def perfect(metric: Metric, target: Any) -> Any:
    """Predictions that are right, in the form in which the metric takes them."""
    if metric.inputs == "references":
        return [each if isinstance(each, str) else each[0] for each in target]
    if metric.inputs == "queries":
        return target.float()
    if metric.inputs == "ensembles":
        return target[:, None].expand(-1, 5)
    if metric.inputs == "points":  # near the number of their cluster
        return (target + torch.arange(len(target)) % 2 / 8)[:, None].expand(-1, 3)
    if metric.inputs == "features":  # all alike, generated and real
        return torch.zeros(len(target), 3)
    if metric.inputs != "labels":
        return 20.0 * torch.nn.functional.one_hot(target).float() if metric.inputs == "tokens" else target
    scale = 20.0 if getattr(metric, "logits", not isinstance(metric, LabelMetric)) else 1.0
    if getattr(metric, "num_classes", None):
        return torch.nn.functional.one_hot(target, metric.num_classes).float() * scale
    return (2.0 * target - 1) * scale if scale > 1 else target.float()


DEPEND_ON_TARGETS = ("ByGroup", "DemographicParityDifference", "DemographicParityRatio")
"""Where right predictions are as good as the shares of positive targets in the groups are alike, or of no one group."""


def single(value: object) -> float | None:
    """The first single number of a value; None where there is none."""
    return next((number for _, number in named_numbers("", value)), None)


@every_third
@pytest.mark.filterwarnings("ignore:PositiveLikelihoodRatio:assay.errors.NoDataWarning")
@every_metric
def test_right_predictions_are_better_than_random_ones_in_the_declared_direction(kind):
    compared = 0
    for metric in examples(kind):
        generator = torch.Generator().manual_seed(2)
        data, columns = draw_for(metric)(generator, 60), draw_columns(metric, generator, 60)
        if metric.higher_is_better is None or kind.family == "metrics of metrics":
            continue
        if len(data) != 2 or kind.__name__ in DEPEND_ON_TARGETS:
            continue
        if getattr(metric, "aggregation", "mean") != "mean":
            continue  # the median query may be as good by chance
        random, right = (single(metric(preds, data[1], **columns)) for preds in (data[0], perfect(metric, data[1])))
        if random is not None and right is not None and not math.isnan(right):
            assert (right > random) if metric.higher_is_better else (right < random)
            compared += 1
    no_best = kind.__name__ == "PositiveLikelihoodRatio"  # it divides by the rate of wrong predictions, which is 0
    no_best = (
        no_best
        or kind.inputs in ("ratings", "rater labels", "logits", "fused images")
        or kind.__name__ in DEPEND_ON_TARGETS
    )
    no_best = no_best or kind.__name__ == "PerceptualPathLength"  # it has no targets, as those of logits
    assert bool(compared) == (kind.higher_is_better is not None and not no_best)


@every_third
@every_metric
def test_a_direction_is_missing_only_where_no_value_is_the_best(kind):
    shows_more = all(
        single(value) is None
        for metric in examples(kind)
        for generator in [torch.Generator().manual_seed(2)]
        for value in [metric(*draw_for(metric)(generator, 60), **draw_columns(metric, generator, 60))]
    )
    summarises = not shows_more and kind.inputs in ("values", "positive values", "logits", "")
    summarises = summarises and kind.__name__ not in ("GroupDifference", "InceptionScore", "PerceptualPathLength")
    of_two_sides = ("StatScores", "SelectionRate", "MeanError", "FractionalBias", "MeanNormalizedBias")
    either = (*of_two_sides, "MeanAveragePrecision", "TotalVariation", "WeightedCalibration", "HSIC", "PerSample")
    assert (kind.higher_is_better is None) == (shows_more or summarises or kind.__name__ in either)


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_the_tables_that_the_classes_say(path):
    text = (ROOT / path).read_text("utf-8")
    assert page(text, PAGES[path]) == text, "write them anew: python -m assay.metrics.catalogue"


def test_a_page_without_a_place_for_its_table_is_refused():
    with pytest.raises(ConfigError, match="family_table"):
        page("# A page", ["family_table"])


def test_families_have_every_metric_once():
    names = [name for kinds in families().values() for name in kinds]
    assert sorted(names) == sorted(public_metrics())


def test_a_metric_of_your_own_is_documented_in_the_same_way():
    @dataclass(frozen=True)
    class Doubled(assay.metrics.MeanAbsoluteError):
        """Twice the mean absolute error.

        Source: none.
        """

        times: Annotated[int, "how often."] = 2
        loose: "NotKnown" = None  # noqa: F821, UP037

    assert Doubled.arguments.keys() == {"num_outputs", "times", "loose"}
    assert "    times: how often." in Doubled.__doc__
    assert sections(Doubled.__doc__)["Returns"] == sections(assay.metrics.MeanAbsoluteError.__doc__)["Returns"]
    with pytest.raises(ConfigError, match="times"):
        Doubled(times="many")
    assert math.isclose(float(Doubled()(torch.ones(2), torch.zeros(2))), 1)
