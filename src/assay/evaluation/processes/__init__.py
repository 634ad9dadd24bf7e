"""Processes that evaluate together, and models whose parts lie on several of them."""
