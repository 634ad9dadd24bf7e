"""Tallies of points: of clusters, and of features."""
