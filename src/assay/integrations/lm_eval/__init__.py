"""lm-eval: what it logged becomes a report, and a model here answers what its tasks ask."""
