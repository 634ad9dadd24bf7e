"""Language models: perplexity by sliding windows, and how a model continues a text."""

from __future__ import annotations

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
