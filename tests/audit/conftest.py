"""The programs that the audit is tried on have bugs: pytest does not import them to look for examples in docstrings."""

collect_ignore = ["programs"]
