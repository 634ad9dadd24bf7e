"""``assay power``: how many samples comparisons with a stored report need."""

from __future__ import annotations

from assay.cli.declaration import same_named
from assay.cli.gate import metric_and_number
from assay.cli.options.reports import PowerCommand
from assay.cli.output import print_as
from assay.errors import ConfigError, describe
from assay.report import power


def run(options: PowerCommand) -> None:
    """Say how many samples find the effects, and what some numbers of samples find."""
    do = "Write --effect accuracy=0.01"
    if not options.effect:
        raise ConfigError(describe("--effect", "none", "one or more, metric=number", do))
    effects = dict(metric_and_number("--effect", written, do) for written in options.effect)
    counts = [_count(each) for each in options.n]
    print_as(power(options.baseline, effects, **same_named(power, options, counts=counts)), options)


def _count(number: float) -> int:
    if number < 2 or not number.is_integer():
        raise ConfigError(describe("--n", f"{number:g}", "a number of samples, 2 or more", "Write --n 1000"))
    return int(number)
