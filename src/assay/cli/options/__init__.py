"""Every option of every command, once: a dataclass a command, whose docstring is its help. Needs no torch."""

from typing import NamedTuple

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
    StableCommand,
    VerifyCommand,
    ViewCommand,
)
from assay.cli.options.tools import (
    AuditCommand,
    CatalogueCommand,
    DemoCommand,
    DevicesCommand,
    MetricsCommand,
    MigrateCommand,
)

__all__ = [
    "COMMANDS",
    "GROUPS",
    "AuditCommand",
    "CatalogueCommand",
    "ChatCommand",
    "Command",
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
    "MetricsCommand",
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
    "StableCommand",
    "VerifyCommand",
    "ViewCommand",
]


class Command(NamedTuple):
    """One command: its options, the module whose `run` takes them, where the help lists it, and an example."""

    options: type
    module: str
    group: str
    example: str


MEASURE, DECIDE, LANGUAGE = "Measure", "Compare and decide", "Language models and quantization"
DEVICES, LOOK_UP = "Devices and code", "Look up"
GROUPS = (MEASURE, DECIDE, LANGUAGE, DEVICES, LOOK_UP)
"""Headings of the list of commands, in their order."""

COMMANDS: dict[str, Command] = {
    "score": Command(
        ScoreCommand,
        "assay.cli.score",
        MEASURE,
        "assay score preds.parquet --preds p --target y --metrics accuracy,f1:average=macro --slice sex --out runs/a",
    ),
    "evaluate": Command(
        EvaluateCommand,
        "assay.cli.evaluate",
        MEASURE,
        "assay evaluate nets:resnet --data held.npz --num-classes 10 --metrics accuracy,auroc --out runs/a",
    ),
    "merge": Command(MergeCommand, "assay.cli.merge", MEASURE, "assay merge parts/*.safetensors --out runs/a"),
    "demo": Command(DemoCommand, "assay.cli.demo", MEASURE, "assay demo"),
    "compare": Command(
        CompareCommand, "assay.cli.compare", DECIDE, "assay compare runs/main/report.json runs/new/report.json"
    ),
    "gate": Command(
        GateCommand,
        "assay.cli.gate",
        DECIDE,
        "assay gate runs/new/report.json --min accuracy=0.9 --max-drop f1=0.01 --baseline runs/main/report.json",
    ),
    "history": Command(HistoryCommand, "assay.cli.history", DECIDE, "assay history runs/*/report.json"),
    "view": Command(ViewCommand, "assay.cli.view", DECIDE, "assay view runs --html runs.html"),
    "rank": Command(
        RankCommand, "assay.cli.rank", DECIDE, "assay rank runs/*.json --metric accuracy --html ranking.html"
    ),
    "power": Command(
        PowerCommand, "assay.cli.power", DECIDE, "assay power runs/main/report.json --effect accuracy=0.01"
    ),
    "verify": Command(
        VerifyCommand,
        "assay.cli.verify",
        DECIDE,
        "assay verify runs/a/report.json --data preds.parquet",
    ),
    "stable": Command(
        StableCommand,
        "assay.cli.stable",
        DECIDE,
        "assay stable nets:resnet --data held.npz --inputs x --against resnet.pt2",
    ),
    "import": Command(
        ImportCommand, "assay.cli.foreign_results", DECIDE, "assay import lm-eval results/model --out runs/a"
    ),
    "perplexity": Command(
        PerplexityCommand,
        "assay.cli.perplexity",
        LANGUAGE,
        "assay perplexity models/llama --data text.txt --out runs/a",
    ),
    "generate": Command(
        GenerateCommand, "assay.cli.generate", LANGUAGE, "assay generate models/llama --prompt 'Once upon a time'"
    ),
    "chat": Command(ChatCommand, "assay.cli.chat", LANGUAGE, "assay chat models/llama"),
    "lm-eval": Command(
        LmEvalCommand, "assay.cli.lm_eval", LANGUAGE, "assay lm-eval models/llama --tasks arc_easy --out runs/a"
    ),
    "quantize": Command(
        QuantizeCommand,
        "assay.cli.quantize",
        LANGUAGE,
        "assay quantize models/llama --scheme int4 --out models/llama-int4",
    ),
    "devices": Command(DevicesCommand, "assay.cli.devices", DEVICES, "assay devices --check mps --out mps.json"),
    "audit": Command(AuditCommand, "assay.cli.audit", DEVICES, "assay audit train.py --device mps --notes"),
    "migrate": Command(MigrateCommand, "assay.cli.migrate", DEVICES, "assay migrate src --num-classes 10"),
    "metrics": Command(MetricsCommand, "assay.cli.metrics", LOOK_UP, "assay metrics wer"),
    "catalogue": Command(CatalogueCommand, "assay.cli.catalogue", LOOK_UP, "assay catalogue --library ignite"),
}
