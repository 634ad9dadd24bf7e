"""Every option of every command, once: a dataclass a command, whose docstring is its help. Needs no torch."""

from assay.cli.options.base import (
    JsonOptions,
    MeasurementOptions,
    ModelOptions,
    OutputOptions,
    ReportCommand,
    ReportOutput,
    SampleOptions,
)
from assay.cli.options.language_models import (
    ChatCommand,
    GenerateCommand,
    LmEvalCommand,
    PerplexityCommand,
    SamplingOptions,
)
from assay.cli.options.measurement import EvaluateCommand, MergeCommand, ScoreCommand
from assay.cli.options.quantization import QuantizeCommand
from assay.cli.options.reports import (
    CompareCommand,
    GateCommand,
    HistoryCommand,
    ImportCommand,
    PowerCommand,
    RankCommand,
)
from assay.cli.options.tools import AuditCommand, CatalogueCommand, DemoCommand, DevicesCommand, MigrateCommand

__all__ = [
    "COMMANDS",
    "AuditCommand",
    "CatalogueCommand",
    "ChatCommand",
    "CompareCommand",
    "DemoCommand",
    "DevicesCommand",
    "EvaluateCommand",
    "GateCommand",
    "GenerateCommand",
    "HistoryCommand",
    "ImportCommand",
    "JsonOptions",
    "LmEvalCommand",
    "MeasurementOptions",
    "MergeCommand",
    "MigrateCommand",
    "ModelOptions",
    "OutputOptions",
    "PerplexityCommand",
    "PowerCommand",
    "QuantizeCommand",
    "RankCommand",
    "ReportCommand",
    "ReportOutput",
    "SampleOptions",
    "SamplingOptions",
    "ScoreCommand",
]

COMMANDS: dict[str, tuple[type, str]] = {
    "devices": (DevicesCommand, "assay.cli.devices"),
    "demo": (DemoCommand, "assay.cli.demo"),
    "audit": (AuditCommand, "assay.cli.audit"),
    "compare": (CompareCommand, "assay.cli.compare"),
    "history": (HistoryCommand, "assay.cli.history"),
    "gate": (GateCommand, "assay.cli.gate"),
    "power": (PowerCommand, "assay.cli.power"),
    "rank": (RankCommand, "assay.cli.rank"),
    "import": (ImportCommand, "assay.cli.foreign_results"),
    "score": (ScoreCommand, "assay.cli.score"),
    "merge": (MergeCommand, "assay.cli.merge"),
    "evaluate": (EvaluateCommand, "assay.cli.evaluate"),
    "perplexity": (PerplexityCommand, "assay.cli.perplexity"),
    "generate": (GenerateCommand, "assay.cli.generate"),
    "chat": (ChatCommand, "assay.cli.chat"),
    "lm-eval": (LmEvalCommand, "assay.cli.lm_eval"),
    "quantize": (QuantizeCommand, "assay.cli.quantize"),
    "migrate": (MigrateCommand, "assay.cli.migrate"),
    "catalogue": (CatalogueCommand, "assay.cli.catalogue"),
}
