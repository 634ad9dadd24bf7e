"""One number under every parallelism: configurations of processes that share a model, and what each library returns."""
