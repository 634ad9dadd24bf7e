"""How a run is saved, and what must be the same when it resumes."""
