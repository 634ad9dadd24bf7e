"""The names of other libraries, on assay's counts: one changed import.

`from assay.compat import torchmetrics` in the place of `import torchmetrics`; `ignite` and `torcheval` in the same way.
Classes have the names, arguments, defaults and definitions of the library.
"""
