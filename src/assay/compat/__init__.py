"""The names of other libraries, on assay's counts: one changed import.

`from assay.compat import torchmetrics` in the place of `import torchmetrics`, `from assay.compat import ignite` in the
place of `import ignite`. Classes have the names, arguments, defaults and definitions of the library, and are made from
the tables of `assay.migrate`.
"""
