"""Metrics of text beside TorchMetrics and the libraries that define them: one batch, counted and computed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jiwer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from torchmetrics import text as theirs

from assay import metrics as ours
from benchmarks.harness import Candidate, Table, measure, save, titled

WORDS = [f"w{k}" for k in range(2_000)]


def sentences(count: int, words: int = 20) -> tuple[list[str], list[str]]:
    """Targets, and predictions in which about a fifth of the words is changed, missing or new."""
    chance = random.Random(0)
    preds, target = [], []
    for _ in range(count):
        wanted = chance.choices(WORDS, k=words)
        found = []
        for word in wanted:
            kind = chance.random()
            found += [] if kind < 0.07 else [chance.choice(WORDS)] if kind < 0.14 else [word]
            found += [chance.choice(WORDS)] if kind > 0.93 else []
        preds.append(" ".join(found))
        target.append(" ".join(wanted))
    return preds, target


@dataclass(frozen=True)
class Row:
    """A metric with its counterparts."""

    name: str
    samples: int
    assay: Any
    torchmetrics: type
    several: bool = False
    other: Callable[[list[str], list[str]], Any] | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def candidates(self) -> dict[str, Candidate]:
        preds, target = sentences(self.samples)
        lists = [[each] for each in target] if self.several else target
        found = {
            "assay": Candidate(lambda _: self.assay(preds, lists)),
            "TorchMetrics": Candidate(lambda _: self.torchmetrics(**self.arguments)(preds, lists)),
        }
        other = self.other
        return found | ({"other": Candidate(lambda _: other(preds, target))} if other else {})


ROWS = (
    Row("WER", 1_000, ours.WordErrorRate(), theirs.WordErrorRate, other=lambda p, t: jiwer.wer(t, p)),
    Row("CER", 1_000, ours.CharErrorRate(), theirs.CharErrorRate, other=lambda p, t: jiwer.cer(t, p)),
    Row("MER", 1_000, ours.MatchErrorRate(), theirs.MatchErrorRate, other=lambda p, t: jiwer.mer(t, p)),
    Row("BLEU", 500, ours.BLEUScore(), theirs.BLEUScore, several=True),
    Row(
        "SacreBLEU",
        500,
        ours.SacreBLEUScore(),
        theirs.SacreBLEUScore,
        several=True,
        other=lambda p, t: BLEU().corpus_score(p, [t]),
    ),
    Row(
        "chrF++",
        500,
        ours.CHRFScore(),
        theirs.CHRFScore,
        several=True,
        other=lambda p, t: CHRF(word_order=2).corpus_score(p, [t]),
    ),
    Row("ROUGE-L", 150, ours.ROUGEScore(), theirs.ROUGEScore, arguments={"rouge_keys": "rougeL"}),
    Row("TER", 50, ours.TranslationEditRate(), theirs.TranslationEditRate, several=True),
)


def main() -> None:
    header = ["metric", "sentences", "assay, ms", "TorchMetrics, ms", "jiwer or sacrebleu, ms", "times as fast"]
    table, raw = Table(titled("Metrics of text: one batch, counted and computed"), header), {}
    for row in ROWS:
        costs = measure(row.candidates(), rounds=3)
        raw[row.name] = {name: cost.rounds for name, cost in costs.items()}
        times = [
            f"{1e3 * costs[name].median:.2f}" if name in costs else "" for name in ("assay", "TorchMetrics", "other")
        ]
        ratio = 1 / costs["assay"].over(costs["TorchMetrics"])
        table.rows.append([row.name, f"{row.samples:,}", *times, f"{ratio:,.1f}"])
        print(*table.rows[-1], flush=True)
    save("text", [table], raw)


if __name__ == "__main__":
    main()
