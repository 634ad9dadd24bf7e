"""The catalogue of other libraries' metric classes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.errors import ConfigError
from assay.metrics.samples import public_metrics
from assay.migrate.catalogue import catalogue
from assay.migrate.table import LIBRARIES, library

ROWS = catalogue()


def test_every_class_is_in_it_once_and_each_counterpart_is_a_metric():
    for name in LIBRARIES:
        table = library(name)
        classes = [row.name for row in ROWS if row.library == name]
        assert len(classes) == len(set(classes))
        assert {each for each in table.without if each[0].isupper()} <= set(classes)
        assert {each for each, entry in table.entries.items() if not entry.function} <= set(classes)
    assert {row.assay for row in ROWS if row.assay} <= set(public_metrics())
    assert all(row.assay or row.instead for row in ROWS)


@pytest.mark.parametrize("name", LIBRARIES)
def test_no_metric_of_another_library_is_missing(name):
    """A class that a reader is told to keep measures nothing by itself, or is a base of the reader's own classes."""
    without = library(name).without
    kept = {each for each, instead in without.items() if each[0].isupper() and instead.startswith("keep it")}
    no_metric = {"AUC", "Cat", "Throughput", "Frequency", "GpuInfo", "FeatureShare", "WrapperMetric", "BaseAggregator"}
    transformers = {each for each in kept if each.endswith("InputTransformer") or each == "BinaryTargetTransformer"}
    bases = {"Metric", "RetrievalMetric", "EpochMetric", "VariableAccumulation"}
    assert kept <= no_metric | transformers | bases
    assert not set(without) & {row.name for row in ROWS if row.library == name and row.assay}


def test_the_command_prints_it():
    result = CliRunner().invoke(app, ["catalogue", "--library", "torcheval"])
    assert result.exit_code == 0
    assert "BinaryAccuracy" in result.output
    assert "TorchMetrics" not in result.output
    result = CliRunner().invoke(app, ["catalogue", "--json"])
    assert len(json.loads(result.output)) == len(ROWS)
    result = CliRunner().invoke(app, ["catalogue", "--library", "torchmetric"])
    assert isinstance(result.exception, ConfigError)
    assert "got torchmetric" in str(result.exception)
