"""Language models: perplexity by sliding windows, how a model continues a text, and a conversation."""

from __future__ import annotations

from assay.language.causal import CausalModel
from assay.language.conversation import Conversation
from assay.language.generation import Generation, generate
from assay.language.scoring import perplexity
from assay.language.tokens import ByteTokenizer, Tokenizer, Tokens, tokens_of
from assay.language.windows import Windows

__all__ = [
    "ByteTokenizer",
    "CausalModel",
    "Conversation",
    "Generation",
    "Tokenizer",
    "Tokens",
    "Windows",
    "generate",
    "perplexity",
    "tokens_of",
]
