"""Tallies of queries with their documents."""
