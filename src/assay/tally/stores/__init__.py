"""Tallies that keep every sample."""
