"""Kernels in Triton, for tensors on NVIDIA GPUs, of what torch's operators do elsewhere: the same integers.

One launch takes the place of dozens. They need the package `triton`, which torch's builds for CUDA on Linux bring.
Without it, with `ASSAY_TRITON=0` in the environment, in `torch.compile`, and where one does not compile or launch,
torch's operators count. `ASSAY_TRITON=interpreter` with `TRITON_INTERPRET=1` runs them on the CPU in Triton's
interpreter, which is slow and for tests.
"""
