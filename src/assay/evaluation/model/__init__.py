"""How a model is called: one step, its memory, estimators, exported and distributed models."""
