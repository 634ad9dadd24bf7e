"""How far pretend devices are right: against PyTorch's operator database and lists, and a real device.

`python -m benchmarks.calibration` runs what needs no device and writes the numbers of docs/calibration.md. `probe` and
`compare` are for a machine with a real one. PyTorch's operator database needs the package expecttest.
"""
