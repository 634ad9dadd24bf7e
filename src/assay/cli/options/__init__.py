"""Every option of every command, once: a dataclass a command, whose docstring is its help. Needs no torch."""

from importlib import import_module
from typing import NamedTuple

__all__ = ["COMMANDS", "GROUPS", "Command"]


class Command(NamedTuple):
    """One command: its options (a class of a module here), the module whose `run` takes them, heading, and example."""

    options_name: str
    module: str
    group: str
    example: str

    @property
    def options(self) -> type:
        """The class, whose module is imported only then."""
        module, _, name = self.options_name.partition(".")
        options: type = getattr(import_module(f"{__name__}.{module}"), name)
        return options


MEASURE, DECIDE, LANGUAGE = "Measure", "Compare and decide", "Language models and quantization"
DEVICES, LOOK_UP = "Devices and code", "Look up"
GROUPS = (MEASURE, DECIDE, LANGUAGE, DEVICES, LOOK_UP)
"""Headings of the list of commands, in their order."""

COMMANDS: dict[str, Command] = {
    "score": Command(
        "measurement.ScoreCommand",
        "score",
        MEASURE,
        "preds.parquet --preds p --target y --metrics accuracy,f1:average=macro --slice sex --out runs/a",
    ),
    "evaluate": Command(
        "measurement.EvaluateCommand",
        "evaluate",
        MEASURE,
        "nets:resnet --data held.npz --num-classes 10 --metrics accuracy,auroc --out runs/a",
    ),
    "merge": Command("measurement.MergeCommand", "merge", MEASURE, "parts/*.safetensors --out runs/a"),
    "demo": Command("tools.DemoCommand", "demo", MEASURE, ""),
    "compare": Command("reports.CompareCommand", "compare", DECIDE, "runs/main/report.json runs/new/report.json"),
    "gate": Command(
        "reports.GateCommand",
        "gate",
        DECIDE,
        "runs/new/report.json --min accuracy=0.9 --max-drop f1=0.01 --baseline runs/main/report.json",
    ),
    "history": Command("reports.HistoryCommand", "history", DECIDE, "runs/*/report.json"),
    "view": Command("reports.ViewCommand", "view", DECIDE, "runs --html runs.html"),
    "rank": Command("reports.RankCommand", "rank", DECIDE, "runs/*.json --metric accuracy --html ranking.html"),
    "power": Command("reports.PowerCommand", "power", DECIDE, "runs/main/report.json --effect accuracy=0.01"),
    "verify": Command("reports.VerifyCommand", "verify", DECIDE, "runs/a/report.json --data preds.parquet"),
    "stable": Command(
        "reports.StableCommand", "stable", DECIDE, "nets:resnet --data held.npz --inputs x --against resnet.pt2"
    ),
    "import": Command("reports.ImportCommand", "foreign_results", DECIDE, "lm-eval results/model --out runs/a"),
    "perplexity": Command(
        "language_models.PerplexityCommand", "perplexity", LANGUAGE, "models/llama --data text.txt --out runs/a"
    ),
    "generate": Command(
        "language_models.GenerateCommand", "generate", LANGUAGE, "models/llama --prompt 'Once upon a time'"
    ),
    "chat": Command("language_models.ChatCommand", "chat", LANGUAGE, "models/llama"),
    "lm-eval": Command(
        "language_models.LmEvalCommand", "lm_eval", LANGUAGE, "models/llama --tasks arc_easy --out runs/a"
    ),
    "quantize": Command(
        "quantization.QuantizeCommand", "quantize", LANGUAGE, "models/llama --scheme int4 --out models/llama-int4"
    ),
    "devices": Command("tools.DevicesCommand", "devices", DEVICES, "--check mps --out mps.json"),
    "audit": Command("tools.AuditCommand", "audit", DEVICES, "train.py --device mps --notes"),
    "migrate": Command("tools.MigrateCommand", "migrate", DEVICES, "src --num-classes 10"),
    "metrics": Command("tools.MetricsCommand", "metrics", LOOK_UP, "wer"),
    "catalogue": Command("tools.CatalogueCommand", "catalogue", LOOK_UP, "--library ignite"),
}
