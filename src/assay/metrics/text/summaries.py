"""ROUGE: words that a summary and its references have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from assay.encode.strings import StringEncoder
from assay.encode.summaries import RougeScores
from assay.errors import ConfigError, describe
from assay.metrics.base import SHARE
from assay.metrics.text.base import TextQuotient

KINDS = (*(f"rouge{n}" for n in range(1, 10)), "rougeL", "rougeLsum")
MEASURES = ("precision", "recall", "fmeasure")


@dataclass(frozen=True)
class ROUGEScore(TextQuotient):
    """ROUGE, one of its kinds and measures: the mean over the samples.

    `sum(w score) / sum(w)`. Of n-grams, or of the longest common subsequence of words: what prediction and reference
    have in common as a fraction of the prediction (precision), of the reference (recall), and the harmonic mean of
    both. Words are runs of the letters a to z and digits, in lower case, as in the package rouge-score: other scripts
    have no words. Of several references, the one with the highest F-score counts.

    Rounding: the score of each sample is computed in float64 from integers; their sum is exact.

    Shapes: `preds` is a list of strings; `target` a list with a string, or a list of references, for each of them.
    Weights are one number a prediction.

    Returns:
        float64, shape `()`; between 0 and 1. A sample without words on one side counts as 0. NaN without data.

    Raises:
        ConfigError: an unknown kind or measure.
        InputError: something that is no string, such as None or bytes, or an empty list of references; the message has
            its position. A reference may be the empty string.
        MissingDependencyError: a package of the extra `text` is not installed: rapidfuzz for rougeL, nltk for stems.

    Example:
        >>> ROUGEScore("rouge1")(["My name is John"], ["Is your name John"])
        tensor(0.7500, dtype=torch.float64)
        >>> ROUGEScore("rougeL", "recall")(["My name is John"], ["Is your name John"])
        tensor(0.5000, dtype=torch.float64)

    Source: Lin, ROUGE, Text Summarization Branches Out (2004), 74-81; the package rouge-score.
    """

    value_range = SHARE

    rouge: Annotated[str, "'rouge1' to 'rouge9' for n-grams, 'rougeL', or 'rougeLsum', whose sentences are lines."] = (
        "rougeL"
    )
    measure: Annotated[Literal["precision", "recall", "fmeasure"], "which of the three."] = "fmeasure"
    use_stemmer: Annotated[bool, "True compares the stems of words (Porter's, by nltk)."] = False

    higher_is_better = True
    exact_terms = False
    inputs: ClassVar[str] = "references"
    examples = (
        {},
        {"rouge": "rouge1", "measure": "precision"},
        {"rouge": "rouge2", "measure": "recall"},
        {"rouge": "rougeLsum"},
        {"rouge": "rouge1", "use_stemmer": True},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rouge not in KINDS:
            raise ConfigError(describe("rouge", repr(self.rouge), f"one of {', '.join(KINDS)}", "Pass rouge='rougeL'"))

    @property
    def encoder(self) -> StringEncoder:
        return RougeScores(self.rouge, self.use_stemmer)

    @property
    def columns(self) -> tuple[str, str]:
        return self.encoder.names[MEASURES.index(self.measure)], ""
