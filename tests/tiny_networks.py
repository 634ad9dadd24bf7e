"""Tiny random models of transformers, with tokenizers of a few words, made where they are used."""

from __future__ import annotations

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    CLIPConfig,
    CLIPImageProcessor,
    CLIPModel,
    CLIPProcessor,
    PreTrainedTokenizerFast,
)

SPECIAL = {
    name: f"[{name[:-6].upper()}]" for name in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
}
WORDS = ("the", "a", "cat", "dog", "sat", "on", "mat", "red", "photo", "of", ".", "Good", "Bad")


def tokenizer(max_length: int = 16) -> PreTrainedTokenizerFast:
    """Words as tokens between [CLS] and [SEP]."""
    vocabulary = {word: k for k, word in enumerate((*SPECIAL.values(), *WORDS))}
    words = Tokenizer(WordLevel(vocabulary, unk_token=SPECIAL["unk_token"]))
    words.pre_tokenizer = Whitespace()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    words.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=max_length, **SPECIAL)


def bert(masked: bool = False) -> BertModel | BertForMaskedLM:
    """A model of two small layers, whose weights are large enough for words to differ."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    return BertForMaskedLM(config) if masked else BertModel(config)


def clip() -> tuple[CLIPModel, CLIPProcessor]:
    """A model of one small layer for images and one for text, with its processor."""
    torch.manual_seed(0)
    text = {
        "vocab_size": len(SPECIAL) + len(WORDS),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 12,
        "eos_token_id": 3,
        "initializer_range": 0.5,
    }
    vision = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "image_size": 16,
        "patch_size": 8,
    }
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8))
    images = CLIPImageProcessor(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
    return model, CLIPProcessor(image_processor=images, tokenizer=tokenizer())
