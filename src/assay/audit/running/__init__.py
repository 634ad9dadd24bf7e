"""Targets of an audit, and the processes that run them."""
