"""Statistics as pure functions of numbers and NumPy arrays: quantiles, intervals, tests, effect sizes, sampling.

Needs no torch. SciPy is imported by the functions that use it, so importing this package costs nothing.
"""
