"""One of each place in which open-compass/VLMEvalKit#1549 counts a hard-coded CUDA, for audits on other devices."""

import sys

import torch
import torch.distributed as dist
from torch.cuda.amp import GradScaler


def from_pretrained(device_map):
    return torch.nn.Linear(4, 4).to(device_map)  # NAMED


def main(store):
    model = from_pretrained(device_map="cuda")
    inputs = torch.ones(2, 4).cuda()  # NAMED
    offsets = torch.zeros(2, 4, device="cuda:0")  # NAMED
    torch.cuda.synchronize()  # NAMED
    torch.cuda.empty_cache()
    with torch.autocast("cuda", dtype=torch.bfloat16):  # NAMED
        out = model(inputs + offsets)
    GradScaler()  # NAMED
    torch.Generator("cuda")  # NAMED
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=0, world_size=1)  # NAMED
    total = torch.ones(3, device="cuda")  # NAMED
    dist.all_reduce(total)
    print(out.sum().item())


if __name__ == "__main__":
    main(sys.argv[1])
