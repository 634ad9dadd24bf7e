"""A small language model in a folder of Hugging Face's format, trained on the standard library's sources.

The folder has no tokenizer, so its tokens are bytes. Below, two seconds make a poor model, and show that all works.

python examples/language_model_folder.py /tmp/assay-byte-model --seconds 2
"""

from __future__ import annotations

import argparse
import sysconfig
import time
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

CONTEXT = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0, help="How long to train.")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=256,
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=CONTEXT,
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    data = torch.frombuffer(bytearray(b"".join(path.read_bytes() for path in files)), dtype=torch.uint8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    begin, steps = time.monotonic(), 0
    while time.monotonic() - begin < arguments.seconds:
        starts = torch.randint(len(data) - CONTEXT, (16,)).tolist()
        ids = torch.stack([data[k : k + CONTEXT] for k in starts]).long()
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    model.save_pretrained(arguments.folder)
    print(f"{arguments.folder}: {steps} steps on {16 * steps} samples, {loss.item():.2f} nats a byte")


if __name__ == "__main__":
    main()
