"""The libraries that assay can work inside of: how they are imported, and what is said where one is missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from assay.errors import MissingDependencyError

PACKAGES = {
    "torchmetrics": "torchmetrics",
    "ignite": "pytorch-ignite",
    "composer": "mosaicml",
    "lightning": "lightning",
    "accelerate": "accelerate",
    "transformers": "transformers",
    "keras": "keras",
    "lm_eval": "lm_eval",
    "mlflow": "mlflow",
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    "ray": "ray",
}
"""The package that brings each library. The extra of assay has the name of the library."""


def import_package(name: str, purpose: str) -> ModuleType:
    """Import a module of an optional package.

    Args:
        name: the module; its first part is one of `PACKAGES`.
        purpose: what it is needed for, for the message where it is missing.

    Raises:
        MissingDependencyError: the package is not installed; names the package and the extra.

    Example:
        >>> import_package("torchmetrics", "its metrics").__name__
        'torchmetrics'
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        root = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != root:
            raise  # the package is there and lacks something of its own
        raise MissingDependencyError(PACKAGES[root], extra=root, purpose=purpose) from error
