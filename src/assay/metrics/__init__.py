"""Metrics: frozen descriptions of the tally that each needs, and of how its value is computed from it.

One folder a family, one module a kind of metric in it; metrics of metrics, and what all have in common, are beside the
folders. The public names are those below; each is imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.metrics.aggregation.geometric_mean import GeometricMean as GeometricMean
    from assay.metrics.aggregation.quantile import Quantile as Quantile
    from assay.metrics.aggregation.values import Max as Max
    from assay.metrics.aggregation.values import Mean as Mean
    from assay.metrics.aggregation.values import Min as Min
    from assay.metrics.aggregation.values import Sum as Sum
    from assay.metrics.aggregation.values import Variance as Variance
    from assay.metrics.arithmetic import Arithmetic as Arithmetic
    from assay.metrics.audio.distortion import SignalDistortionRatio as SignalDistortionRatio
    from assay.metrics.audio.permutations import PermutationInvariantTraining as PermutationInvariantTraining
    from assay.metrics.audio.ratios import (
        ComplexScaleInvariantSignalNoiseRatio as ComplexScaleInvariantSignalNoiseRatio,
    )
    from assay.metrics.audio.ratios import ScaleInvariantSignalDistortionRatio as ScaleInvariantSignalDistortionRatio
    from assay.metrics.audio.ratios import ScaleInvariantSignalNoiseRatio as ScaleInvariantSignalNoiseRatio
    from assay.metrics.audio.ratios import SignalNoiseRatio as SignalNoiseRatio
    from assay.metrics.audio.ratios import (
        SourceAggregatedSignalDistortionRatio as SourceAggregatedSignalDistortionRatio,
    )
    from assay.metrics.base import Metric as Metric
    from assay.metrics.classification.agreement import CohenKappa as CohenKappa
    from assay.metrics.classification.agreement import MatthewsCorrCoef as MatthewsCorrCoef
    from assay.metrics.classification.confusion import ClassReport as ClassReport
    from assay.metrics.classification.confusion import ConfusionMatrix as ConfusionMatrix
    from assay.metrics.classification.confusion import ExactMatch as ExactMatch
    from assay.metrics.classification.confusion import StatScores as StatScores
    from assay.metrics.classification.detection_curves import DETCurve as DETCurve
    from assay.metrics.classification.detection_curves import LogAUC as LogAUC
    from assay.metrics.classification.divergence import Entropy as Entropy
    from assay.metrics.classification.divergence import JensenShannonDivergence as JensenShannonDivergence
    from assay.metrics.classification.divergence import KLDivergence as KLDivergence
    from assay.metrics.classification.divergence import MutualInformation as MutualInformation
    from assay.metrics.classification.label_ranking import MultilabelCoverageError as MultilabelCoverageError
    from assay.metrics.classification.label_ranking import (
        MultilabelRankingAveragePrecision as MultilabelRankingAveragePrecision,
    )
    from assay.metrics.classification.label_ranking import MultilabelRankingLoss as MultilabelRankingLoss
    from assay.metrics.classification.label_ranking import TopKMultilabelAccuracy as TopKMultilabelAccuracy
    from assay.metrics.classification.likelihood_ratios import NegativeLikelihoodRatio as NegativeLikelihoodRatio
    from assay.metrics.classification.likelihood_ratios import PositiveLikelihoodRatio as PositiveLikelihoodRatio
    from assay.metrics.classification.normalized_entropy import NormalizedEntropy as NormalizedEntropy
    from assay.metrics.classification.normalized_entropy import WeightedCalibration as WeightedCalibration
    from assay.metrics.classification.operating_points import PrecisionAtFixedRecall as PrecisionAtFixedRecall
    from assay.metrics.classification.operating_points import RecallAtFixedPrecision as RecallAtFixedPrecision
    from assay.metrics.classification.operating_points import SensitivityAtSpecificity as SensitivityAtSpecificity
    from assay.metrics.classification.operating_points import SpecificityAtSensitivity as SpecificityAtSensitivity
    from assay.metrics.classification.probabilities import BrierScore as BrierScore
    from assay.metrics.classification.probabilities import CalibrationCurve as CalibrationCurve
    from assay.metrics.classification.probabilities import CalibrationError as CalibrationError
    from assay.metrics.classification.probabilities import HingeLoss as HingeLoss
    from assay.metrics.classification.probabilities import LogLoss as LogLoss
    from assay.metrics.classification.ranking import AUROC as AUROC
    from assay.metrics.classification.ranking import ROC as ROC
    from assay.metrics.classification.ranking import AveragePrecision as AveragePrecision
    from assay.metrics.classification.ranking import EqualErrorRate as EqualErrorRate
    from assay.metrics.classification.ranking import PrecisionRecallCurve as PrecisionRecallCurve
    from assay.metrics.classification.rates import Accuracy as Accuracy
    from assay.metrics.classification.rates import BalancedAccuracy as BalancedAccuracy
    from assay.metrics.classification.rates import DiceScore as DiceScore
    from assay.metrics.classification.rates import F1Score as F1Score
    from assay.metrics.classification.rates import FBetaScore as FBetaScore
    from assay.metrics.classification.rates import HammingDistance as HammingDistance
    from assay.metrics.classification.rates import JaccardIndex as JaccardIndex
    from assay.metrics.classification.rates import NegativePredictiveValue as NegativePredictiveValue
    from assay.metrics.classification.rates import Precision as Precision
    from assay.metrics.classification.rates import Recall as Recall
    from assay.metrics.classification.rates import Specificity as Specificity
    from assay.metrics.classwise import Classwise as Classwise
    from assay.metrics.clustering.information import AdjustedMutualInfoScore as AdjustedMutualInfoScore
    from assay.metrics.clustering.information import CompletenessScore as CompletenessScore
    from assay.metrics.clustering.information import HomogeneityScore as HomogeneityScore
    from assay.metrics.clustering.information import MutualInfoScore as MutualInfoScore
    from assay.metrics.clustering.information import NormalizedMutualInfoScore as NormalizedMutualInfoScore
    from assay.metrics.clustering.information import VMeasureScore as VMeasureScore
    from assay.metrics.clustering.pairs import AdjustedRandScore as AdjustedRandScore
    from assay.metrics.clustering.pairs import ClusterAccuracy as ClusterAccuracy
    from assay.metrics.clustering.pairs import FowlkesMallowsIndex as FowlkesMallowsIndex
    from assay.metrics.clustering.pairs import RandScore as RandScore
    from assay.metrics.clustering.points import CalinskiHarabaszScore as CalinskiHarabaszScore
    from assay.metrics.clustering.points import DaviesBouldinScore as DaviesBouldinScore
    from assay.metrics.clustering.points import DunnIndex as DunnIndex
    from assay.metrics.clustering.points import SilhouetteScore as SilhouetteScore
    from assay.metrics.detection.average_precision import MeanAveragePrecision as MeanAveragePrecision
    from assay.metrics.detection.iou import CompleteIntersectionOverUnion as CompleteIntersectionOverUnion
    from assay.metrics.detection.iou import DistanceIntersectionOverUnion as DistanceIntersectionOverUnion
    from assay.metrics.detection.iou import GeneralizedIntersectionOverUnion as GeneralizedIntersectionOverUnion
    from assay.metrics.detection.iou import IntersectionOverUnion as IntersectionOverUnion
    from assay.metrics.detection.panoptic import ModifiedPanopticQuality as ModifiedPanopticQuality
    from assay.metrics.detection.panoptic import PanopticQuality as PanopticQuality
    from assay.metrics.fairness.by_group import ByGroup as ByGroup
    from assay.metrics.fairness.by_group import GroupDifference as GroupDifference
    from assay.metrics.fairness.rates import DemographicParityDifference as DemographicParityDifference
    from assay.metrics.fairness.rates import DemographicParityRatio as DemographicParityRatio
    from assay.metrics.fairness.rates import EqualizedOddsDifference as EqualizedOddsDifference
    from assay.metrics.fairness.rates import EqualizedOddsRatio as EqualizedOddsRatio
    from assay.metrics.fairness.rates import EqualOpportunityDifference as EqualOpportunityDifference
    from assay.metrics.fairness.rates import EqualOpportunityRatio as EqualOpportunityRatio
    from assay.metrics.fairness.rates import GroupStatRates as GroupStatRates
    from assay.metrics.fairness.rates import SelectionRate as SelectionRate
    from assay.metrics.fairness.rates import SubgroupAccuracyDifference as SubgroupAccuracyDifference
    from assay.metrics.generative.frechet import FrechetDistance as FrechetDistance
    from assay.metrics.generative.frechet import (
        MemorizationInformedFrechetInceptionDistance as MemorizationInformedFrechetInceptionDistance,
    )
    from assay.metrics.generative.inception_score import InceptionScore as InceptionScore
    from assay.metrics.generative.kernels import HSIC as HSIC
    from assay.metrics.generative.kernels import KernelInceptionDistance as KernelInceptionDistance
    from assay.metrics.generative.kernels import MaximumMeanDiscrepancy as MaximumMeanDiscrepancy
    from assay.metrics.generative.perceptual_path_length import PerceptualPathLength as PerceptualPathLength
    from assay.metrics.image.errors import (
        ErrorRelativeGlobalDimensionlessSynthesis as ErrorRelativeGlobalDimensionlessSynthesis,
    )
    from assay.metrics.image.errors import PeakSignalNoiseRatio as PeakSignalNoiseRatio
    from assay.metrics.image.errors import (
        PeakSignalNoiseRatioWithBlockedEffect as PeakSignalNoiseRatioWithBlockedEffect,
    )
    from assay.metrics.image.errors import RelativeAverageSpectralError as RelativeAverageSpectralError
    from assay.metrics.image.errors import (
        RootMeanSquaredErrorUsingSlidingWindow as RootMeanSquaredErrorUsingSlidingWindow,
    )
    from assay.metrics.image.errors import SpectralAngleMapper as SpectralAngleMapper
    from assay.metrics.image.errors import TotalVariation as TotalVariation
    from assay.metrics.image.pansharpening import QualityWithNoReference as QualityWithNoReference
    from assay.metrics.image.pansharpening import SpatialDistortionIndex as SpatialDistortionIndex
    from assay.metrics.image.pansharpening import SpectralDistortionIndex as SpectralDistortionIndex
    from assay.metrics.image.similarity import (
        MultiScaleStructuralSimilarityIndexMeasure as MultiScaleStructuralSimilarityIndexMeasure,
    )
    from assay.metrics.image.similarity import SpatialCorrelationCoefficient as SpatialCorrelationCoefficient
    from assay.metrics.image.similarity import StructuralSimilarityIndexMeasure as StructuralSimilarityIndexMeasure
    from assay.metrics.image.similarity import UniversalImageQualityIndex as UniversalImageQualityIndex
    from assay.metrics.image.similarity import VisualInformationFidelity as VisualInformationFidelity
    from assay.metrics.networks.function import PerSample as PerSample
    from assay.metrics.nominal.association import CramersV as CramersV
    from assay.metrics.nominal.association import PearsonsContingencyCoefficient as PearsonsContingencyCoefficient
    from assay.metrics.nominal.association import TheilsU as TheilsU
    from assay.metrics.nominal.association import TschuprowsT as TschuprowsT
    from assay.metrics.nominal.fleiss_kappa import FleissKappa as FleissKappa
    from assay.metrics.nominal.rater_agreement import GwetAC1 as GwetAC1
    from assay.metrics.nominal.rater_agreement import KrippendorffAlpha as KrippendorffAlpha
    from assay.metrics.per_output import PerOutput as PerOutput
    from assay.metrics.regression.correlation import ConcordanceCorrCoef as ConcordanceCorrCoef
    from assay.metrics.regression.correlation import CosineSimilarity as CosineSimilarity
    from assay.metrics.regression.correlation import PearsonCorrCoef as PearsonCorrCoef
    from assay.metrics.regression.errors import CriticalSuccessIndex as CriticalSuccessIndex
    from assay.metrics.regression.errors import LogCoshError as LogCoshError
    from assay.metrics.regression.errors import MaximumAbsoluteError as MaximumAbsoluteError
    from assay.metrics.regression.errors import MeanAbsoluteError as MeanAbsoluteError
    from assay.metrics.regression.errors import MeanAbsolutePercentageError as MeanAbsolutePercentageError
    from assay.metrics.regression.errors import MeanSquaredError as MeanSquaredError
    from assay.metrics.regression.errors import MeanSquaredLogError as MeanSquaredLogError
    from assay.metrics.regression.errors import MinkowskiDistance as MinkowskiDistance
    from assay.metrics.regression.errors import PinballLoss as PinballLoss
    from assay.metrics.regression.errors import (
        SymmetricMeanAbsolutePercentageError as SymmetricMeanAbsolutePercentageError,
    )
    from assay.metrics.regression.errors import TweedieDevianceScore as TweedieDevianceScore
    from assay.metrics.regression.errors import (
        WeightedMeanAbsolutePercentageError as WeightedMeanAbsolutePercentageError,
    )
    from assay.metrics.regression.explained_variance import ExplainedVariance as ExplainedVariance
    from assay.metrics.regression.explained_variance import R2Score as R2Score
    from assay.metrics.regression.explained_variance import RelativeSquaredError as RelativeSquaredError
    from assay.metrics.regression.rank_correlation import KendallRankCorrCoef as KendallRankCorrCoef
    from assay.metrics.regression.rank_correlation import SpearmanCorrCoef as SpearmanCorrCoef
    from assay.metrics.regression.relative_errors import CanberraDistance as CanberraDistance
    from assay.metrics.regression.relative_errors import FractionalBias as FractionalBias
    from assay.metrics.regression.relative_errors import GeometricMeanAbsoluteError as GeometricMeanAbsoluteError
    from assay.metrics.regression.relative_errors import MeanError as MeanError
    from assay.metrics.regression.relative_errors import MeanNormalizedBias as MeanNormalizedBias
    from assay.metrics.regression.relative_errors import (
        NormalizedRootMeanSquaredError as NormalizedRootMeanSquaredError,
    )
    from assay.metrics.regression.relative_errors import WaveHedgesDistance as WaveHedgesDistance
    from assay.metrics.regression.row_errors import ContinuousRankedProbabilityScore as ContinuousRankedProbabilityScore
    from assay.metrics.regression.row_errors import MeanPairwiseDistance as MeanPairwiseDistance
    from assay.metrics.regression.sample_errors import D2AbsoluteErrorScore as D2AbsoluteErrorScore
    from assay.metrics.regression.sample_errors import D2PinballScore as D2PinballScore
    from assay.metrics.regression.sample_errors import D2TweedieScore as D2TweedieScore
    from assay.metrics.regression.sample_errors import (
        GeometricMeanRelativeAbsoluteError as GeometricMeanRelativeAbsoluteError,
    )
    from assay.metrics.regression.sample_errors import MedianAbsoluteError as MedianAbsoluteError
    from assay.metrics.regression.sample_errors import MedianAbsolutePercentageError as MedianAbsolutePercentageError
    from assay.metrics.regression.sample_errors import MedianRelativeAbsoluteError as MedianRelativeAbsoluteError
    from assay.metrics.retrieval.binary import RankBiasedPrecision as RankBiasedPrecision
    from assay.metrics.retrieval.binary import RetrievalAUROC as RetrievalAUROC
    from assay.metrics.retrieval.binary import RetrievalFallOut as RetrievalFallOut
    from assay.metrics.retrieval.binary import RetrievalHitRate as RetrievalHitRate
    from assay.metrics.retrieval.binary import RetrievalMAP as RetrievalMAP
    from assay.metrics.retrieval.binary import RetrievalMRR as RetrievalMRR
    from assay.metrics.retrieval.binary import RetrievalPrecision as RetrievalPrecision
    from assay.metrics.retrieval.binary import RetrievalRecall as RetrievalRecall
    from assay.metrics.retrieval.binary import RetrievalRPrecision as RetrievalRPrecision
    from assay.metrics.retrieval.curves import RetrievalPrecisionRecallCurve as RetrievalPrecisionRecallCurve
    from assay.metrics.retrieval.curves import RetrievalRecallAtFixedPrecision as RetrievalRecallAtFixedPrecision
    from assay.metrics.retrieval.graded import ExpectedReciprocalRank as ExpectedReciprocalRank
    from assay.metrics.retrieval.graded import RetrievalNormalizedDCG as RetrievalNormalizedDCG
    from assay.metrics.segmentation.distances import AverageSurfaceDistance as AverageSurfaceDistance
    from assay.metrics.segmentation.distances import HausdorffDistance as HausdorffDistance
    from assay.metrics.segmentation.distances import SurfaceDice as SurfaceDice
    from assay.metrics.segmentation.overlap import GeneralizedDiceScore as GeneralizedDiceScore
    from assay.metrics.segmentation.overlap import MeanDice as MeanDice
    from assay.metrics.segmentation.overlap import MeanIoU as MeanIoU
    from assay.metrics.shape.lip_vertex_error import LipVertexError as LipVertexError
    from assay.metrics.shape.procrustes import ProcrustesDisparity as ProcrustesDisparity
    from assay.metrics.text.answers import SQuAD as SQuAD
    from assay.metrics.text.answers import StringExactMatch as StringExactMatch
    from assay.metrics.text.entities import EntityF1Score as EntityF1Score
    from assay.metrics.text.error_rates import CharErrorRate as CharErrorRate
    from assay.metrics.text.error_rates import EditDistance as EditDistance
    from assay.metrics.text.error_rates import ExtendedEditDistance as ExtendedEditDistance
    from assay.metrics.text.error_rates import MatchErrorRate as MatchErrorRate
    from assay.metrics.text.error_rates import WordErrorRate as WordErrorRate
    from assay.metrics.text.error_rates import WordInfoLost as WordInfoLost
    from assay.metrics.text.error_rates import WordInfoPreserved as WordInfoPreserved
    from assay.metrics.text.generation import BitsPerByte as BitsPerByte
    from assay.metrics.text.generation import PassAtK as PassAtK
    from assay.metrics.text.perplexity import Perplexity as Perplexity
    from assay.metrics.text.summaries import ROUGEScore as ROUGEScore
    from assay.metrics.text.translation import BLEUScore as BLEUScore
    from assay.metrics.text.translation import CHRFScore as CHRFScore
    from assay.metrics.text.translation import SacreBLEUScore as SacreBLEUScore
    from assay.metrics.text.translation import TranslationEditRate as TranslationEditRate

__all__, __getattr__, __dir__ = attach(__name__, hints="assay.migrate.suggestions")
