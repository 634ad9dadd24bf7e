"""Metrics: frozen descriptions of the tally that each needs, and of how its value is computed from it.

One folder a family, one module a kind of metric in it; metrics of metrics, and what all have in common, are beside the
folders. The public names are those in the `__all__` of the modules; each is imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.metrics.aggregation.geometric_mean import *
    from assay.metrics.aggregation.quantile import *
    from assay.metrics.aggregation.values import *
    from assay.metrics.arithmetic import *
    from assay.metrics.audio.distortion import *
    from assay.metrics.audio.permutations import *
    from assay.metrics.audio.ratios import *
    from assay.metrics.base import *
    from assay.metrics.classification.agreement import *
    from assay.metrics.classification.confusion import *
    from assay.metrics.classification.detection_curves import *
    from assay.metrics.classification.divergence import *
    from assay.metrics.classification.label_ranking import *
    from assay.metrics.classification.likelihood_ratios import *
    from assay.metrics.classification.normalized_entropy import *
    from assay.metrics.classification.operating_points import *
    from assay.metrics.classification.probabilities import *
    from assay.metrics.classification.ranking import *
    from assay.metrics.classification.rates import *
    from assay.metrics.classwise import *
    from assay.metrics.clustering.information import *
    from assay.metrics.clustering.pairs import *
    from assay.metrics.clustering.points import *
    from assay.metrics.detection.average_precision import *
    from assay.metrics.detection.iou import *
    from assay.metrics.detection.panoptic import *
    from assay.metrics.fairness.by_group import *
    from assay.metrics.fairness.rates import *
    from assay.metrics.generative.frechet import *
    from assay.metrics.generative.inception_score import *
    from assay.metrics.generative.kernels import *
    from assay.metrics.generative.perceptual_path_length import *
    from assay.metrics.image.errors import *
    from assay.metrics.image.pansharpening import *
    from assay.metrics.image.similarity import *
    from assay.metrics.networks.function import *
    from assay.metrics.nominal.association import *
    from assay.metrics.nominal.fleiss_kappa import *
    from assay.metrics.nominal.rater_agreement import *
    from assay.metrics.per_output import *
    from assay.metrics.regression.correlation import *
    from assay.metrics.regression.errors import *
    from assay.metrics.regression.explained_variance import *
    from assay.metrics.regression.rank_correlation import *
    from assay.metrics.regression.relative_errors import *
    from assay.metrics.regression.row_errors import *
    from assay.metrics.regression.sample_errors import *
    from assay.metrics.retrieval.binary import *
    from assay.metrics.retrieval.curves import *
    from assay.metrics.retrieval.graded import *
    from assay.metrics.segmentation.distances import *
    from assay.metrics.segmentation.overlap import *
    from assay.metrics.shape.lip_vertex_error import *
    from assay.metrics.shape.procrustes import *
    from assay.metrics.text.answers import *
    from assay.metrics.text.entities import *
    from assay.metrics.text.error_rates import *
    from assay.metrics.text.generation import *
    from assay.metrics.text.perplexity import *
    from assay.metrics.text.summaries import *
    from assay.metrics.text.translation import *

__all__, __getattr__, __dir__ = attach(__name__, hints="assay.migrate.suggestions")
