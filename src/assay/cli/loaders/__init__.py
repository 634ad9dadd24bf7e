"""What a name on the command line stands for: models, variants, parts of a batch, and data that `assay.data` opens."""
