"""Language models: perplexity by sliding windows, and how a model continues a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.language.causal import CausalModel
    from assay.language.generation import Generation, generate
    from assay.language.scoring import perplexity
    from assay.language.tokens import ByteTokenizer, Tokenizer, Tokens, tokens_of
    from assay.language.windows import Windows

__all__ = [
    "ByteTokenizer",
    "CausalModel",
    "Generation",
    "Tokenizer",
    "Tokens",
    "Windows",
    "generate",
    "perplexity",
    "tokens_of",
]

_HOMES = {
    "causal": ("CausalModel",),
    "generation": ("Generation", "generate"),
    "scoring": ("perplexity",),
    "tokens": ("ByteTokenizer", "Tokenizer", "Tokens", "tokens_of"),
    "windows": ("Windows",),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
