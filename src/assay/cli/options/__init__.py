"""Every option of every command, once: a dataclass a command, whose docstring is its help. Needs no torch."""

from typing import NamedTuple

from assay.cli.options.language_models import (
    ChatCommand,
    GenerateCommand,
    LmEvalCommand,
    PerplexityCommand,
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

__all__ = ["COMMANDS", "GROUPS", "Command"]


class Command(NamedTuple):
    """One command: its options, the module here whose `run` takes them, its heading in the help, and an example."""

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
        "score",
        MEASURE,
        "preds.parquet --preds p --target y --metrics accuracy,f1:average=macro --slice sex --out runs/a",
    ),
    "evaluate": Command(
        EvaluateCommand,
        "evaluate",
        MEASURE,
        "nets:resnet --data held.npz --num-classes 10 --metrics accuracy,auroc --out runs/a",
    ),
    "merge": Command(MergeCommand, "merge", MEASURE, "parts/*.safetensors --out runs/a"),
    "demo": Command(DemoCommand, "demo", MEASURE, ""),
    "compare": Command(CompareCommand, "compare", DECIDE, "runs/main/report.json runs/new/report.json"),
    "gate": Command(
        GateCommand,
        "gate",
        DECIDE,
        "runs/new/report.json --min accuracy=0.9 --max-drop f1=0.01 --baseline runs/main/report.json",
    ),
    "history": Command(HistoryCommand, "history", DECIDE, "runs/*/report.json"),
    "view": Command(ViewCommand, "view", DECIDE, "runs --html runs.html"),
    "rank": Command(RankCommand, "rank", DECIDE, "runs/*.json --metric accuracy --html ranking.html"),
    "power": Command(PowerCommand, "power", DECIDE, "runs/main/report.json --effect accuracy=0.01"),
    "verify": Command(VerifyCommand, "verify", DECIDE, "runs/a/report.json --data preds.parquet"),
    "stable": Command(StableCommand, "stable", DECIDE, "nets:resnet --data held.npz --inputs x --against resnet.pt2"),
    "import": Command(ImportCommand, "foreign_results", DECIDE, "lm-eval results/model --out runs/a"),
    "perplexity": Command(PerplexityCommand, "perplexity", LANGUAGE, "models/llama --data text.txt --out runs/a"),
    "generate": Command(GenerateCommand, "generate", LANGUAGE, "models/llama --prompt 'Once upon a time'"),
    "chat": Command(ChatCommand, "chat", LANGUAGE, "models/llama"),
    "lm-eval": Command(LmEvalCommand, "lm_eval", LANGUAGE, "models/llama --tasks arc_easy --out runs/a"),
    "quantize": Command(QuantizeCommand, "quantize", LANGUAGE, "models/llama --scheme int4 --out models/llama-int4"),
    "devices": Command(DevicesCommand, "devices", DEVICES, "--check mps --out mps.json"),
    "audit": Command(AuditCommand, "audit", DEVICES, "train.py --device mps --notes"),
    "migrate": Command(MigrateCommand, "migrate", DEVICES, "src --num-classes 10"),
    "metrics": Command(MetricsCommand, "metrics", LOOK_UP, "wer"),
    "catalogue": Command(CatalogueCommand, "catalogue", LOOK_UP, "--library ignite"),
}
