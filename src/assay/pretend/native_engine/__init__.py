"""The native engine: plain tensors on torch's own dispatch keys of a device, with host memory and the CPU's arithmetic.

What is C++ here is compiled once for each version of torch and kept (``build``). ``session.h`` says what its parts
share; ``devices.cpp`` answers for the device (guards, hooks, allocators, generators), ``operators.cpp`` runs operators,
``rules.cpp`` refuses what the device would, ``alias.cpp`` shows the same memory under two devices, and ``cells.cpp``
has the operators that torch gives to accelerators only.
"""
