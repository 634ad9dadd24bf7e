"""assay inside other libraries: one small module a library, which is imported when a name of it is first used.

The core knows none of them; they import the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay import _lazy

if TYPE_CHECKING:
    from assay.integrations.composer import as_composer as as_composer
    from assay.integrations.composer import as_evaluator as as_evaluator
    from assay.integrations.foreign_metrics import Foreign as Foreign
    from assay.integrations.foreign_metrics import from_torchmetrics as from_torchmetrics
    from assay.integrations.ignite import IgniteMetric as IgniteMetric
    from assay.integrations.ignite import as_ignite as as_ignite
    from assay.integrations.ignite import attach as attach
    from assay.integrations.image_networks import clip_image_quality as clip_image_quality
    from assay.integrations.image_networks import clip_score as clip_score
    from assay.integrations.image_networks import lpips as lpips
    from assay.integrations.inspect_logs import read_inspect as read_inspect
    from assay.integrations.keras import KerasMetric as KerasMetric
    from assay.integrations.keras import as_keras as as_keras
    from assay.integrations.lighteval import read_lighteval as read_lighteval
    from assay.integrations.lightning import CountOnce as CountOnce
    from assay.integrations.lm_eval.logged_results import read_lm_eval as read_lm_eval
    from assay.integrations.lm_eval.model import LmEvalModel as LmEvalModel
    from assay.integrations.lm_eval.run import run_lm_eval as run_lm_eval
    from assay.integrations.mlflow import log_to_mlflow as log_to_mlflow
    from assay.integrations.ray import ray_aggregate as ray_aggregate
    from assay.integrations.ray import score_on_ray as score_on_ray
    from assay.integrations.scikit_learn import Scorer as Scorer
    from assay.integrations.scikit_learn import scorer as scorer
    from assay.integrations.tensorboard import log_to_tensorboard as log_to_tensorboard
    from assay.integrations.text_networks import bert_score as bert_score
    from assay.integrations.text_networks import infolm as infolm
    from assay.integrations.torchmetrics import AssayCollection as AssayCollection
    from assay.integrations.torchmetrics import AssayMetric as AssayMetric
    from assay.integrations.torchmetrics import as_torchmetric as as_torchmetric
    from assay.integrations.torchmetrics import as_torchmetrics as as_torchmetrics
    from assay.integrations.transformers import ComputeMetrics as ComputeMetrics
    from assay.integrations.transformers import compute_metrics as compute_metrics
    from assay.integrations.wandb import log_to_wandb as log_to_wandb

__all__, __getattr__, __dir__ = _lazy.attach(__name__)
