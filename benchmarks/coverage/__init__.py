"""How often intervals cover, gate rules pass wrongly and tests err, simulated: docs/coverage.md."""
