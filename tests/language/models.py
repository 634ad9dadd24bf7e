"""Small language models for tests: made on the spot, never downloaded."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

TEXT = "".join(f"The {k}th sentence says that {k * k} is the square of {k}, naïvely. " for k in range(40))


def llama(seed=0, layers=2, positions=128, vocab=256):
    """An untrained model of Hugging Face; weights large enough that its outputs differ from uniform ones."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocab,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        initializer_range=0.15,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()


class Recurrent(nn.Module):
    """A plain causal model of bytes: embedding, GRU, head."""

    def __init__(self, seed=0, vocab=256):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embed = nn.Embedding(vocab, 32)
            self.gru = nn.GRU(32, 32, batch_first=True)
            self.head = nn.Linear(32, vocab)

    def forward(self, ids):
        return self.head(self.gru(self.embed(ids))[0]) * 3


def folder(path: Path, start=True, model=None) -> Path:
    """A model and a tokenizer (BPE over bytes, 300 tokens) as Hugging Face writes them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet)
    inner.train_from_iterator([TEXT], trainer)
    if start:
        inner.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>").save_pretrained(path)
    (model or llama(vocab=inner.get_vocab_size())).save_pretrained(path)
    return path
