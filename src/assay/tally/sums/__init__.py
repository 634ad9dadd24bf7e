"""Tallies that are exact sums, and what they have in common: terms, totals, arithmetic in int64."""
