"""Compiled forms, for tensors in host memory, of what torch does elsewhere: the same bits, several times as fast.

The library is built from the C files of this folder when assay is installed where there is a C compiler. Without it, or
with `ASSAY_NATIVE=0` in the environment, everything runs in torch.
"""
