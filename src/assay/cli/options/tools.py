"""Commands that measure nothing. Needs no torch."""

from __future__ import annotations

from pathlib import Path

from assay.cli.declaration import CommandOptions, argument, flag, option, several, string
from assay.cli.options.base import JsonOptions
from assay.devices.kinds import AUDITED


class DevicesCommand(JsonOptions):
    """Show the devices of this machine, what each kind of device supports, and why not; or check one of them.

    With --check, exit code 0: all holds. 1: something differs. 2: not enough evidence, as without the device.
    """

    check: str = string("Check whether this device does what is expected of it: cpu, mps, cuda:1.")
    pretend: bool = flag("Check a pretended device, computed by the CPU by the facts about it.")
    out: Path | None = option("Write what the check found into this JSON file, to be sent.")
    prepare: bool = flag("Compile the engine of pretend devices now instead of at first use.")


class DemoCommand(CommandOptions):
    """Train small models on real data in a few seconds, and show their report."""

    out: Path = option("Write the report as JSON and as a page into this folder.", default=Path("assay-demo"))


class AuditCommand(JsonOptions):
    """Find device bugs without the device.

    Exit code 0: no finding. 1: findings. 2: the target could not be run.
    """

    target: str = argument("The target: a script, a module, module:Class, module:function, or a library of metrics.")
    device: tuple[str, ...] = option(
        "Audit for these devices; cuda:1 means two, of which cuda:0 is the default.",
        default=AUDITED,
        separator=",",
    )
    usage: str = option("Use metrics in this way: moved, not-moved or both.", default="both")
    rules: tuple[str, ...] = several("Report these rules only.", separator=",")
    ignore: tuple[str, ...] = several("Leave out these rules.", separator=",")
    fail_on: str = option("Exit with 1 from this severity on: error, warning or note.", default="warning")
    timeout: float = option("Stop a script or a metric after this many seconds.", default=120.0)
    args: str = string("Pass these arguments to a script; {device} stands for the device.")
    input: tuple[str, ...] = several(
        "Call a module with an input of this shape and dtype: 8x3x32x32, 8x16:int64; may be repeated."
    )
    engine: str = option("Simulate devices with this engine: auto, native or python.", default="auto")
    sarif: Path | None = option("Write the findings as SARIF, which code hosts show.")
    notes: bool = flag("Print notes, too, not only errors and warnings.")
    list_rules: bool = flag("Print all rules and exit.")
    parity: bool = flag("Compare values with those of the CPU, operator by operator, instead of auditing.")


class MigrateCommand(JsonOptions):
    """Rewrite code that uses TorchMetrics, Ignite or TorchEval for assay, as a diff; unsure places become notes.

    Exit code 0: nothing is left to do by hand. 1: something is. 2: a file could not be read or written.
    """

    path: Path = argument("A Python file, or a folder of them.", None, required="a file or a folder")
    write: bool = flag("Write the changed files, each whole or not at all.")
    num_classes: int | None = option("Write this number of classes if the code states none.", least=2)
    num_labels: int | None = option("Write this number of labels if the code states none.", least=2)
    num_outputs: int | None = option("Write this number of outputs if the code states none.", least=1)


class MetricsCommand(JsonOptions):
    """List the metrics, or show one: formula, arguments, example, interval, and its names in other libraries."""

    name: str = argument("A metric by its name or abbreviation, or a word that describes metrics; all by default.")


class CatalogueCommand(JsonOptions):
    """List every metric class of TorchMetrics, Ignite and TorchEval with the metric of assay that takes its place."""

    library: tuple[str, ...] = several("List this library only: torchmetrics, ignite or torcheval; may be repeated.")
