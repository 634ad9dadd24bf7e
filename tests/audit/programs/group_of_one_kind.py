"""The backend of the process group is named; modelled on meta-llama/llama#722 and ogx-ai/llama-stack-apps#17."""

import tempfile

import torch
import torch.distributed

with tempfile.TemporaryDirectory() as folder:
    store = f"file://{folder}/store"
    torch.distributed.init_process_group("nccl", init_method=store, rank=0, world_size=1)  # BUG hard-coded-device
    torch.distributed.destroy_process_group()
device = torch.accelerator.current_accelerator()
print(torch.ones(2, device=device) + torch.ones(2))  # BUG mixed-devices
