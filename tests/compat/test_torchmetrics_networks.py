"""Networks, programs and functions that no class has, under TorchMetrics' names: its numbers, with assay's counts."""

from __future__ import annotations

import inspect
import itertools
import pickle
import sys
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from assay import Meter
from assay.compat import torchmetrics
from assay.compat.for_torchmetrics.families import CompatibleFamily
from assay.compat.for_torchmetrics.functions import compatible_function_alone
from assay.errors import AssayWarning, InvalidValuesError, ShapeError
from assay.metrics import FrechetDistance, MeanAveragePrecision
from assay.pretend import pretend

pytestmark = pytest.mark.filterwarnings(
    "ignore:Metric `:UserWarning",  # of buffers
    "ignore:std\\(\\):UserWarning",  # of one part, in TorchMetrics, too
)


def rand(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(sum(shape)))


def both(module: str, name: str):
    path = f"torchmetrics.{module}"
    return getattr(import_module(path), name), getattr(import_module(f"assay.compat.{path}"), name)


class Features(nn.Module):
    """A network whose features have a mean far from 0."""

    num_features = 5

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(12, 5)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.linspace(-1, 40, parameter.numel()).view_as(parameter))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layer(images.float().flatten(1) / 255)


def pictures(rows: int, largest: int) -> torch.Tensor:
    return torch.randint(largest, (rows, 3, 2, 2), generator=torch.Generator().manual_seed(rows), dtype=torch.uint8)


def groups(metric) -> None:
    for real, rows in itertools.product((True, False), (12, 9)):
        metric.update(pictures(rows, 256 if real else 170), real=real)


def fused(rows: int, channels: int, low: bool = True) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    target = {"ms": rand(rows, channels, 16, 15), "pan": rand(rows, channels, 32, 30)}
    return rand(rows, channels, 32, 30, 1)[..., 0], target | ({"pan_lr": rand(rows, channels, 16, 15)} if low else {})


@pytest.mark.parametrize("name", ["SpatialDistortionIndex", "QualityWithNoReference"])
@pytest.mark.parametrize("options", [{}, {"norm_order": 2, "reduction": "sum"}, {"reduction": "none"}])
@pytest.mark.parametrize("channels", [1, 3])
def test_fused_images_have_the_quality_of_torchmetrics(name, options, channels):
    original, kind = both("image", name)
    there, here = original(**options), kind(**options)
    assert isinstance(here, CompatibleFamily)
    for rows in (3, 2):
        batch = fused(rows, channels)
        torch.testing.assert_close(here(*batch), there(*batch), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(here.compute(), there.compute(), rtol=1e-4, atol=1e-5)
    here.persistent(True)
    loaded = kind(**options)
    loaded.load_state_dict(here.state_dict())
    assert torch.equal(loaded.compute(), here.compute())
    function = "spatial_distortion_index" if name.startswith("Spatial") else "quality_with_no_reference"
    theirs, ours = both("functional.image", function)
    preds, target = fused(3, channels)
    expected = theirs(preds, **target, **options).squeeze()  # of one channel, `compute` of the class is squeezed, too
    torch.testing.assert_close(ours(preds, **target, **options), expected, rtol=1e-4, atol=1e-5)


def test_a_panchromatic_image_of_low_resolution_needs_no_torchvision():
    preds, target = fused(2, 3, low=False)
    metric = torchmetrics.image.SpatialDistortionIndex(window_size=5)
    metric.update(preds, target)
    assert 0 < float(metric.compute()) < 1


def test_fused_images_that_do_not_fit_are_refused_as_there():
    metric = torchmetrics.image.QualityWithNoReference()
    preds, target = fused(2, 3)
    with pytest.raises(ValueError, match="Expected `target` to have key `pan`"):
        metric.update(preds, {"ms": target["ms"]})
    metric.update(preds, target)
    with pytest.raises(ShapeError, match="channels or scores"):
        metric.update(*fused(2, 2))
    preds[0, 0, 0, 0] = torch.nan
    metric.update(preds, target)
    with pytest.raises(InvalidValuesError, match="not defined"):
        metric.compute()


def test_a_frechet_distance_keeps_digits_where_means_are_large():
    original, kind = both("image.fid", "FrechetInceptionDistance")
    there, here = (each(Features(), input_img_size=(3, 2, 2)) for each in (original, kind))
    for metric in (there, here):
        groups(metric)
    assert isinstance(here, CompatibleFamily)
    torch.testing.assert_close(here.compute(), there.compute(), rtol=1e-4, atol=0)
    assert torch.equal(pickle.loads(pickle.dumps(here)).compute(), here.compute())
    parts = [kind(here.inception) for _ in range(2)]
    parts[0].update(pictures(12, 256), real=True)
    parts[0].update(pictures(12, 170), real=False)
    for real, largest in ((True, 256), (False, 170)):
        parts[1].update(pictures(9, largest), real=real)
    parts[0].merge_state(parts[1])
    assert torch.equal(parts[0].compute(), here.compute())


def test_a_kernel_distance_of_subsets_of_all_images_is_that_of_torchmetrics():
    original, kind = both("image.kid", "KernelInceptionDistance")
    there, here = (each(Features(), subsets=3, subset_size=21) for each in (original, kind))
    for metric in (there, here):
        groups(metric)
    torch.testing.assert_close(here.compute()[0], there.compute()[0], rtol=1e-4, atol=0)
    assert float(here.compute()[1]) == pytest.approx(0, abs=1e-9 * float(here.compute()[0]))
    few = kind(Features(), subsets=20, subset_size=5)
    groups(few)
    mean, deviation = few.compute()
    assert float(deviation) > 0
    assert abs(float(mean - here.compute()[0])) < 3 * float(deviation)


def test_the_penalty_of_copies_is_of_generated_images():
    original, kind = both("image.mifid", "MemorizationInformedFrechetInceptionDistance")
    there, here = (each(Features(), cosine_distance_eps=1.0) for each in (original, kind))
    for metric, exchanged in ((there, True), (here, False)):  # TorchMetrics asks it of the real ones
        for real, rows in itertools.product((True, False), (12, 9)):
            metric.update(pictures(rows, 256 if real else 170), real=real != exchanged)
    torch.testing.assert_close(here.compute(), there.compute(), rtol=1e-3, atol=0)


def test_an_inception_score_of_one_part_is_that_of_torchmetrics():
    original, kind = both("image.inception", "InceptionScore")
    network = Features()
    with torch.no_grad():
        network.layer.weight.mul_(0.05)  # with probabilities of 0, TorchMetrics has NaN
    there, here = (each(network, splits=1) for each in (original, kind))
    for rows in (7, 20):
        there.update(pictures(rows, 256))
        here.update(pictures(rows, 256))
    torch.testing.assert_close(here.compute()[0], there.compute()[0], rtol=1e-5, atol=0)
    mean, deviation = kind(Features(), splits=4)(pictures(30, 256))
    assert 1 <= float(mean) <= 5
    assert float(deviation) >= 0


@pytest.mark.parametrize(
    ("module", "name"),
    [("kid", "KernelInceptionDistance"), ("mifid", "MemorizationInformedFrechetInceptionDistance")],
)
def test_features_that_are_read_are_those_of_torchmetrics_in_the_order_of_their_values(module, name):
    there, here = (each(Features()) for each in both(f"image.{module}", name))
    assert here.real_features == here.fake_features == []
    batches = [(pictures(rows, 256 if real else 170), real) for real, rows in ((True, 4), (False, 6), (True, 3))]
    for metric in (there, here):
        for images, real in batches:
            metric.update(images, real=real)
    for state in ("real_features", "fake_features"):
        rows = torch.cat(getattr(there, state))
        expected = rows[torch.from_numpy(np.lexsort(rows.numpy().T[::-1]))]
        assert torch.equal(torch.cat(getattr(here, state)), expected)
    with pytest.raises(AttributeError, match="nothing"):
        _ = here.nothing


@pytest.mark.parametrize("is_bounded", [False, True])
def test_moments_that_are_read_are_those_of_torchmetrics(is_bounded):
    there, here = (each(Features()) for each in both("image.fid", "FrechetInceptionDistance"))
    if is_bounded:  # as with Inception, whose features have a known range
        here.meter = here._meter_of(FrechetDistance(num_features=1, feature_range=1000))
    assert not hasattr(here, "real_features_sum")
    for metric in (there, here):
        for real, rows in ((True, 4), (False, 6), (True, 3)):
            metric.update(pictures(rows, 6), real=real)
    for group in ("real", "fake"):
        for state in ("sum", "cov_sum", "num_samples"):
            name = f"{group}_features_{state}"
            tolerance = 1e-4 if is_bounded else 1e-6  # features of a known range are rounded to a fixed point
            torch.testing.assert_close(getattr(here, name), getattr(there, name), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["FrechetInceptionDistance", "KernelInceptionDistance"])
def test_too_few_images_are_refused_as_there(name):
    _, kind = both("image.fid" if name.startswith("F") else "image.kid", name)
    metric = kind(Features())
    metric.update(pictures(1, 256), real=True)
    with pytest.raises((RuntimeError, ValueError), match="sample"):
        metric.compute()


def test_real_images_that_are_kept_are_those_of_torchmetrics():
    original, kind = both("image.fid", "FrechetInceptionDistance")
    with pytest.warns(AssayWarning, match="^FrechetInceptionDistance: TorchMetrics itself"):
        assert type(kind(Features(), reset_real_features=False)) is original


class Distance(nn.Module):
    def forward(self, first: torch.Tensor, second: torch.Tensor, normalize: bool) -> torch.Tensor:
        return (first - second).square().mean((1, 2, 3), keepdim=True)


class Quality(nn.Module):
    def forward(self, images: torch.Tensor, normalize: bool) -> torch.Tensor:
        return images.mean((1, 2, 3))


def opinions(size: int):
    return lambda preds, *settings, **named: torch.stack([preds.mean(-1) + k for k in range(size)], -1)


def difference(preds, target, *settings):
    return (preds - target).mean(-1)


AUDIO = [
    ("pesq", "PerceptualEvaluationSpeechQuality", "perceptual_evaluation_speech_quality", (8000, "nb"), difference),
    ("stoi", "ShortTimeObjectiveIntelligibility", "short_time_objective_intelligibility", (8000,), difference),
    (
        "srmr",
        "SpeechReverberationModulationEnergyRatio",
        "speech_reverberation_modulation_energy_ratio",
        (8000,),
        lambda preds, *settings: preds.mean(-1),
    ),
    (
        "dnsmos",
        "DeepNoiseSuppressionMeanOpinionScore",
        "deep_noise_suppression_mean_opinion_score",
        (8000, False),
        opinions(4),
    ),
    ("nisqa", "NonIntrusiveSpeechQualityAssessment", "non_intrusive_speech_quality_assessment", (8000,), opinions(5)),
]


@pytest.mark.parametrize(("module", "name", "program", "options", "double"), AUDIO, ids=[each[0] for each in AUDIO])
def test_scores_of_a_program_are_averaged_without_rounding(monkeypatch, module, name, program, options, double):
    """With another program in the place of one that needs a package or weights."""
    home = import_module(f"torchmetrics.audio.{module}")
    for flag in [each for each in dir(home) if each.endswith("_AVAILABLE")]:
        monkeypatch.setattr(home, flag, True)
    monkeypatch.setattr(home, program, double)
    original, kind = both(f"audio.{module}", name)
    there, here = original(*options), kind(*options)
    assert isinstance(here, CompatibleFamily)
    inputs = 2 if double is difference else 1
    for shape in ((40,), (3, 40), (2, 3, 40)):
        signals = [rand(*shape) * (1 + k) for k in range(inputs)]
        torch.testing.assert_close(here(*signals), there(*signals).to(here.dtype), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(here.compute(), there.compute().to(here.dtype), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("module", "name", "program", "options", "double"), AUDIO, ids=[each[0] for each in AUDIO])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_number_of_a_signal_is_that_of_the_program_where_the_signals_are(
    monkeypatch, module, name, program, options, double, dtype
):
    """Programs run on the CPU and some give float64, which some devices do not have."""
    seen = []

    def run(preds, target=None, **settings):
        seen.append(preds.device.type)
        return double(preds, *([] if target is None else [target])).to(dtype)

    path = f"torchmetrics.functional.audio.{module}"
    here = compatible_function_alone.__wrapped__(_like(getattr(import_module(path), program), run))
    preds, target = rand(3, 40), rand(3, 40) * 2
    signals = [preds, target] if double is difference else [preds]
    expected = run(**dict(zip(("preds", "target"), signals, strict=False)))
    found = here(*signals, *options)
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected)
    with pretend("mps"):
        there = here(*(each.to("mps") for each in signals), *options)
        assert (there.device.type, there.dtype) == ("cpu" if double is difference else "mps", there.dtype)
        if double is difference:
            there = here(*(each.to("mps") for each in signals), *options, keep_same_device=True)
        assert (there.device.type, there.dtype) == ("mps", torch.float32)
        torch.testing.assert_close(there.cpu(), expected.float())
    assert set(seen) == {"cpu"}


def _like(original, function):
    """A function with the name and the arguments of another one."""
    function.__name__, function.__module__ = original.__name__, original.__module__
    function.__signature__ = inspect.signature(original)
    return function


class Generator(nn.Module):
    """Images of latents, by a fixed layer."""

    num_classes = 3

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", rand(4, 12))

    def forward(self, latents, labels=None):
        shift = 0 if labels is None else labels[:, None]
        return 255 * torch.sigmoid(latents @ self.weight + shift).reshape(-1, 3, 2, 2)

    def sample(self, rows: int) -> torch.Tensor:
        return torch.randn(rows, 4)


class Distances(nn.Module):
    def forward(self, first, second):
        return (first - second).double().square().sum((1, 2, 3)).float()


@pytest.mark.parametrize("options", [{}, {"lower_discard": None}, {"upper_discard": 0.5}, {"conditional": True}])
def test_a_perceptual_path_length_is_that_of_torchmetrics(monkeypatch, options):
    for module in ("image", "functional.image"):
        monkeypatch.setattr(
            import_module(f"torchmetrics.{module}.perceptual_path_length"), "_TORCHVISION_AVAILABLE", True
        )
    options = {"num_samples": 50, "epsilon": 0.1, "sim_net": Distances(), **options}
    found = []
    for side in (0, 1):
        function = both("functional.image.perceptual_path_length", "perceptual_path_length")[side]
        kind = both("image.perceptual_path_length", "PerceptualPathLength")[side]
        torch.manual_seed(5)
        metric = kind(**options)
        metric.update(Generator())
        found.append((function(Generator(), **options), metric.compute()))
    torch.testing.assert_close(found[1], found[0])
    assert [len(each[0][2]) for each in found] == [len(each[1][2]) for each in found]


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_network_that_compares_images_has_the_value_and_the_gradient_of_torchmetrics(monkeypatch, reduction):
    home = import_module("torchmetrics.image.lpip")
    monkeypatch.setattr(home, "_TORCHVISION_AVAILABLE", True)
    monkeypatch.setattr(home, "_NoTrainLpips", lambda net: Distance())
    monkeypatch.setattr(import_module("torchmetrics.functional.image.lpips"), "_NoTrainLpips", lambda net: Distance())
    original, kind = both("image.lpip", "LearnedPerceptualImagePatchSimilarity")
    there, here = original(reduction=reduction), kind(reduction=reduction)
    for rows in (4, 1):
        first, second = rand(rows, 3, 8, 8), rand(rows, 3, 8, 9)[..., :8]
        gradients = []
        for metric in (there, here):
            needs = first.clone().requires_grad_()
            metric(needs, second).backward()
            gradients.append(needs.grad)
        assert torch.equal(*gradients)
        torch.testing.assert_close(here(first, second), there(first, second))
    torch.testing.assert_close(here.compute(), there.compute())
    theirs, ours = both("functional.image.lpips", "learned_perceptual_image_patch_similarity")
    for each in (reduction, "none"):
        torch.testing.assert_close(ours(first, second, reduction=each), theirs(first, second, reduction=each))


def test_a_network_that_rates_images_has_the_mean_of_torchmetrics(monkeypatch):
    home = import_module("torchmetrics.image.arniqa")
    monkeypatch.setattr(home, "_TORCHVISION_AVAILABLE", True)
    monkeypatch.setattr(home, "_NoTrainArniqa", lambda regressor_dataset: Quality())
    original, kind = both("image.arniqa", "ARNIQA")
    there, here = original(), kind()
    for rows in (1, 5):
        there.update(rand(rows, 3, 8, 8))
        here.update(rand(rows, 3, 8, 8))
    torch.testing.assert_close(here.compute(), there.compute())
    dists = import_module("torchmetrics.image.dists")
    monkeypatch.setattr(dists, "_dists_update", lambda preds, target: Distance()(preds, target, False).flatten())
    original, kind = both("image.dists", "DeepImageStructureAndTextureSimilarity")
    there, here = original(reduction="sum"), kind(reduction="sum")
    for metric in (there, here):
        metric.update(rand(3, 3, 8, 8), rand(3, 3, 8, 9)[..., :8])
    torch.testing.assert_close(here.compute(), there.compute())


def test_a_score_of_captions_is_that_of_torchmetrics(monkeypatch):
    home = import_module("torchmetrics.multimodal.clip_score")
    scores = {"a": -30.0, "b": 20.0, "c": 25.5}

    def update(source, target, model, processor):
        return torch.tensor([scores[each] for each in target]), len(target)

    monkeypatch.setattr(home, "_clip_score_update", update)
    monkeypatch.setattr(import_module("torchmetrics.functional.multimodal.clip_score"), "_clip_score_update", update)
    original, kind = both("multimodal.clip_score", "CLIPScore")
    network = lambda: (nn.Identity(), SimpleNamespace())  # noqa: E731
    there, here = original(network), kind(network)
    for captions in (["a"], ["b", "c"]):
        pictures = [rand(3, 4, 4)] * len(captions)
        torch.testing.assert_close(here(pictures, captions), there(pictures, captions))
    torch.testing.assert_close(here.compute(), there.compute())
    theirs, ours = both("functional.multimodal.clip_score", "clip_score")
    for captions in (["a"], ["a", "b", "c"]):
        torch.testing.assert_close(ours(pictures, captions, network), theirs(pictures, captions, network))


def test_two_networks_in_a_collection_share_no_meter():
    kinds = {"small": Features(), "large": Features()}
    with torch.no_grad():
        kinds["large"].layer.weight.mul_(2)
    _, kind = both("image.fid", "FrechetInceptionDistance")
    metrics = torchmetrics.MetricCollection({name: kind(network) for name, network in kinds.items()})
    groups(metrics)
    values = metrics.compute()
    assert float(values["large"]) > 2 * float(values["small"])


MATRICES = [
    ("cramers_v_matrix", {}),
    ("cramers_v_matrix", {"bias_correction": False}),
    ("pearsons_contingency_coefficient_matrix", {}),
    ("theils_u_matrix", {}),
    ("tschuprows_t_matrix", {"nan_strategy": "drop"}),
]


@pytest.mark.parametrize(("name", "options"), MATRICES)
def test_a_matrix_of_associations_is_that_of_torchmetrics(name, options):
    theirs, ours = both("functional.nominal", name)
    matrix = torch.randint(4, (60, 4), generator=torch.Generator().manual_seed(3)).float()
    matrix[:, 3] = (matrix[:, 0] + matrix[:, 1]).fmod(3)
    if "nan_strategy" in options:
        matrix[5, 1] = torch.nan
    found = ours(matrix, **options)
    torch.testing.assert_close(found, theirs(matrix, **options), rtol=1e-5, atol=1e-6)
    assert ours is not theirs


@pytest.mark.parametrize("mode", ["speaker-wise", "permutation-wise"])
def test_the_best_permutation_is_that_of_torchmetrics(mode):
    theirs, ours = both("functional.audio", "permutation_invariant_training")
    ratio, _ = both("functional.audio", "scale_invariant_signal_distortion_ratio")
    preds, target = rand(4, 3, 100), rand(4, 3, 101)[..., :100]
    expected = theirs(preds, target, ratio, mode, zero_mean=True)
    here = import_module("assay.compat.torchmetrics.functional.audio").scale_invariant_signal_distortion_ratio
    for function in (ratio, here):
        found = ours(preds, target, function, mode, zero_mean=True)
        assert torch.equal(found[1], expected[1])
        torch.testing.assert_close(found[0], expected[0], rtol=1e-4, atol=1e-4)


def overlap(first: list[float], second: list[float], kind: str) -> float:
    sides = [[each[2] - each[0], each[3] - each[1]] for each in (first, second)]
    inner = [max(0.0, min(first[k + 2], second[k + 2]) - max(first[k], second[k])) for k in range(2)]
    outer = [max(first[k + 2], second[k + 2]) - min(first[k], second[k]) for k in range(2)]
    areas = [width * height for width, height in (*sides, inner, outer)]
    union = areas[0] + areas[1] - areas[2]
    if kind == "intersection":
        return areas[2] / union
    if kind == "generalized":
        return areas[2] / union - (areas[3] - union) / areas[3]
    apart = sum((first[k] + first[k + 2] - second[k] - second[k + 2]) ** 2 / 4 for k in range(2))
    return areas[2] / union - apart / sum(each**2 for each in outer)


@pytest.mark.parametrize(("module", "kind"), [("iou", "intersection"), ("giou", "generalized"), ("diou", "distance")])
def test_overlaps_of_boxes_need_no_torchvision(module, kind):
    name = "intersection_over_union" if kind == "intersection" else f"{kind}_intersection_over_union"
    theirs, ours = both(f"functional.detection.{module}", name)
    corners = [rand(4, 2), rand(3, 2)]
    preds, target = (torch.cat([each, each + rand(len(each), 3)[:, 1:] + 0.1], 1) for each in corners)
    expected = torch.tensor([[overlap(a, b, kind) for b in target.tolist()] for a in preds.tolist()])
    found = ours(preds, target, aggregate=False)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours(preds, target), expected.diag().mean(), rtol=1e-5, atol=1e-6)
    low = ours(preds, target, 0.2, -7.0, False)
    assert torch.equal(low == -7, expected < 0.2)
    assert torch.equal(ours(preds[:0], target, aggregate=False), torch.zeros(3, 3))
    assert float(ours(preds[:0], target[:0])) == 0
    with pytest.raises(ValueError, match="Expected preds to be of shape"):
        ours(preds[:, :3], target)
    assert ours is not theirs


def test_an_average_precision_of_a_batch_is_that_of_assay():
    _, ours = both("functional.detection.map", "mean_average_precision")
    boxes = torch.tensor([[0.0, 0.0, 20.0, 20.0], [30.0, 30.0, 80.0, 70.0]])
    preds = [{"boxes": boxes + 2, "scores": torch.tensor([0.9, 0.4]), "labels": torch.tensor([0, 1])}]
    target = [{"boxes": boxes, "labels": torch.tensor([0, 1])}]
    found = ours(preds, target, class_metrics=True)
    expected = Meter(map=MeanAveragePrecision())
    expected.update(preds, target)
    assert float(found["map"]) == pytest.approx(float(expected.compute()["map"]["map"]), rel=1e-6)
    assert found["map_per_class"].shape == (2,)
    assert found["classes"].tolist() == [0, 1]
    assert found["map"].dtype == torch.float32


@pytest.mark.parametrize("name", ["RunningMean", "RunningSum"])
def test_aggregates_over_the_last_updates_are_those_of_torchmetrics(name):
    original, kind = both("aggregation", name)
    there, here = original(window=3), kind(window=3)
    assert isinstance(here, original)
    for k in range(7):
        values = rand(3, k + 1)
        torch.testing.assert_close(here(values), there(values))
        torch.testing.assert_close(here.compute(), there.compute())
    assert torch.equal(pickle.loads(pickle.dumps(here)).compute(), here.compute())
    assert type(here.base_metric).__mro__[1].__name__ == "CompatibleAggregate"
    assert "assay" in sys.modules[type(here).__module__].__name__


def test_the_accuracy_of_clusters_needs_no_package():
    from scipy.optimize import linear_sum_assignment

    _, kind = both("clustering.cluster_accuracy", "ClusterAccuracy")
    _, function = both("functional.clustering.cluster_accuracy", "cluster_accuracy")
    generator = torch.Generator().manual_seed(5)
    preds, target = (torch.randint(4, (60,), generator=generator) for _ in range(2))
    table = torch.zeros(4, 4).index_put_((preds, target), torch.ones(60), accumulate=True).numpy()
    expected = table[linear_sum_assignment(-table)].sum() / 60
    metric = kind(num_classes=4)
    metric.update(preds[:20], target[:20])
    metric.update(preds[20:], target[20:])
    assert float(metric.compute()) == pytest.approx(expected, rel=1e-6)
    assert float(function(preds, target, 4)) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="positive integer"):
        kind(num_classes=0)
