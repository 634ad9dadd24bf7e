"""Lightning: `self.log("acc", as_torchmetric(...))` needs nothing of this; this counts repeated samples once."""

from __future__ import annotations

from typing import Any

from assay.integrations.optional_packages import import_package
from assay.integrations.padding import real_rows
from assay.integrations.torchmetrics import AssayMetric

lightning: Any = import_package("lightning.pytorch", "callbacks of its Trainer")


class CountOnce(lightning.Callback):  # type: ignore[misc]
    """Metrics of assay count every sample once, although Lightning's sampler repeats some in validation and test.

    On several processes Lightning gives each as many samples, and repeats the first ones for that, so that its own
    results are off (`trainer.test` on 5 samples and 3 processes: 0.8333 instead of 0.8). With this callback, metrics
    that `as_torchmetric` made leave the repeated rows out. A batch must be counted whole, or from its first row on.

    Example:
        >>> from lightning.pytorch import Trainer
        >>> trainer = Trainer(callbacks=[CountOnce()], logger=False, accelerator="cpu", enable_checkpointing=False,
        ...                   enable_progress_bar=False, enable_model_summary=False)
    """

    def on_validation_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """See how many rows of a batch are real."""
        _expect(pl_module, trainer.val_dataloaders, batch_idx, dataloader_idx)

    def on_test_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """See how many rows of a batch are real."""
        _expect(pl_module, trainer.test_dataloaders, batch_idx, dataloader_idx)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Count whole batches again."""
        _count_only(pl_module, None)

    def on_test_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Count whole batches again."""
        _count_only(pl_module, None)


def _expect(module: Any, loaders: Any, batch: int, which: int) -> None:
    if isinstance(loaders, dict):
        loaders = list(loaders.values())
    loader = loaders[which] if isinstance(loaders, list | tuple) else loaders
    rows, size = real_rows(loader), getattr(loader, "batch_size", None)
    _count_only(module, None if rows is None or size is None else max(0, rows - batch * size))


def _count_only(module: Any, rows: int | None) -> None:
    for each in module.modules():
        if isinstance(each, AssayMetric):
            each.count_only(rows)
