"""Tallies of labels: confusion and contingency tables, groups, raters."""
