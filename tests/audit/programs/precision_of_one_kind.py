"""Mixed precision is asked for on one kind of device and turned off; modelled on mlfoundations/open_clip#654."""

import torch

device = torch.accelerator.current_accelerator()
model = torch.nn.Linear(4, 4).to(device)
scaler = torch.amp.GradScaler("cuda")  # BUG hard-coded-device
with torch.autocast("cuda", dtype=torch.float16):  # BUG hard-coded-device
    loss = model(torch.ones(2, 4, device=device)).sum()
scaler.scale(loss).backward()
