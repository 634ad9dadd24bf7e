"""Single operators on float32 or integers: those that a device has run, and those that it lacks raise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.conformance.deterministic import Question
from assay.conformance.fixed_inputs import filled, matrix, vector

OneTensor: TypeAlias = Callable[[Tensor], Any]

UNARY = (
    *("abs", "acos", "angle", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "deg2rad", "digamma", "erf"),
    *("erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "frexp", "i0", "isfinite", "isinf", "isnan"),
    *("isneginf", "isposinf", "lgamma", "logit", "nan_to_num", "neg", "rad2deg", "reciprocal", "relu", "round", "sgn"),
    *("sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "square", "tan", "tanh", "trunc", "aminmax", "argmax"),
    *("argmin", "argsort", "count_nonzero", "diff", "flip", "logsumexp", "max", "mean", "median", "min", "nanmedian"),
    *("nansum", "prod", "sort", "std", "sum", "unique", "unique_consecutive", "var", "histc", "diag", "tril", "triu"),
    *("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "kthvalue", "mode", "topk", "softmax", "log_softmax"),
    *("movedim", "roll", "quantile"),
)
"""Functions of torch with one tensor, and with the arguments of `_ARGUMENTS`."""

_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "flip": ((0,),),
    "kthvalue": (2,),
    "logsumexp": (0,),
    "movedim": (0, 0),
    "quantile": (0.5,),
    "roll": (1,),
    "topk": (2,),
} | dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "softmax", "log_softmax"), (0,))

_OF_MATRICES = ("flip", "logsumexp", "movedim", "roll", "tril", "triu")

POSITIVE = ("log", "log10", "log1p", "log2", "rsqrt", "sqrt", "acosh", "bernoulli", "cosh")
"""Functions of torch of one tensor that is positive."""

BINARY = (
    *("add", "atan2", "copysign", "div", "eq", "floor_divide", "fmax", "fmin", "fmod", "ge", "gt", "heaviside"),
    *("hypot", "igamma", "igammac", "isclose", "le", "logaddexp", "logaddexp2", "lt", "maximum", "minimum", "mul"),
    *("ne", "nextafter", "pow", "remainder", "sub", "xlogy", "dist", "equal", "dot", "outer", "vdot", "polar"),
)
"""Functions of torch of two tensors."""

OF_INTEGERS = (
    *("bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "gcd", "lcm"),
    *("add", "mul", "floor_divide", "remainder", "eq", "isin", "searchsorted", "maximum"),
)
"""Functions of torch of two tensors of int64."""

SPECIAL = (
    *("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "entr", "erfcx", "i0e", "i1", "i1e", "log_ndtr"),
    *("modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "ndtri"),
    *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0"),
)
"""Functions of ``torch.special`` of one tensor."""

LINALG = (
    *("cholesky", "cholesky_ex", "cond", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "inv_ex", "ldl_factor"),
    *("lu", "lu_factor", "matrix_exp", "matrix_norm", "matrix_rank", "norm", "pinv", "qr", "slogdet", "svd"),
    *("svdvals", "vector_norm"),
)
"""Functions of ``torch.linalg`` of one matrix, which is symmetric and positive definite."""


def _functions() -> Iterator[tuple[str, Question]]:
    for name in UNARY:
        make = matrix if name in _OF_MATRICES else vector
        yield name, _one(getattr(torch, name), make, *_ARGUMENTS.get(name, ()))
    for name in POSITIVE:
        yield name, _one(getattr(torch, name), lambda d: vector(d) / 3)
    for name in BINARY:
        yield name, _two(getattr(torch, name), vector)
    for name in OF_INTEGERS:
        yield f"{name} of integers", _two(getattr(torch, name), lambda d: vector(d).long())
    for name in SPECIAL:
        yield f"special.{name}", _one(getattr(torch.special, name), lambda d: vector(d) / 4)
    for name in LINALG:
        yield f"linalg.{name}", _one(getattr(torch.linalg, name), _positive_definite)


def _one(run: Callable[..., Any], make: Question, *arguments: Any) -> Question:
    return lambda d: run(make(d), *arguments)


def _two(run: Callable[..., Any], make: Question) -> Question:
    return lambda d: run(make(d), make(d))


def _positive_definite(d: str) -> Tensor:
    return matrix(d) @ matrix(d).T


def _of(run: OneTensor, *shape: int) -> Question:
    return lambda d: run(filled(d, *shape))


def _integers(d: str) -> Tensor:
    return vector(d).long()


OPERATORS: dict[str, Question] = {
    **dict(_functions()),
    "all": lambda d: (vector(d) > 1).all(),
    "any": lambda d: (vector(d) > 1).any(),
    "logical_not": lambda d: (vector(d) > 1).logical_not(),
    "bitwise_not of integers": lambda d: ~_integers(d),
    "sum of integers": lambda d: _integers(d).sum(),
    "cumsum of integers": lambda d: _integers(d).cumsum(0),
    "sort of integers": lambda d: _integers(d).sort(),
    "bincount": lambda d: _integers(d).bincount(),
    "one_hot": lambda d: F.one_hot(_integers(d), 4),
    "histogram": lambda d: torch.histogram(vector(d), 4, range=(0.0, 4.0)),
    "histogramdd": lambda d: torch.histogramdd(matrix(d), [2, 2, 2]),
    "bucketize": lambda d: torch.bucketize(vector(d), torch.arange(3.0, device=d)),
    "segment_reduce": lambda d: torch.segment_reduce(vector(d), "sum", lengths=torch.tensor([1, 2], device=d)),
    "repeat_interleave": lambda d: vector(d).repeat_interleave(2),
    "renorm": lambda d: torch.renorm(matrix(d), 2, 0, 1.0),
    "cdist": lambda d: torch.cdist(matrix(d), matrix(d)),
    "pdist": lambda d: F.pdist(matrix(d)),
    "cross": lambda d: torch.linalg.cross(matrix(d), matrix(d)),
    "trace": lambda d: torch.trace(matrix(d)),
    "addmm": lambda d: torch.addmm(matrix(d), matrix(d), matrix(d)),
    "baddbmm": lambda d: torch.baddbmm(matrix(d)[None], matrix(d)[None], matrix(d)[None]),
    "mm of integers": lambda d: matrix(d).long() @ matrix(d).long(),
    "einsum": lambda d: torch.einsum("ij,kj->ik", matrix(d), matrix(d)),
    "kron": lambda d: torch.kron(matrix(d), matrix(d)),
    "cholesky_inverse": lambda d: torch.cholesky_inverse(matrix(d)),
    "cholesky_solve": lambda d: torch.cholesky_solve(matrix(d), matrix(d)),
    "geqrf": lambda d: torch.geqrf(matrix(d)),
    "ormqr": lambda d: torch.ormqr(matrix(d), vector(d), matrix(d)),
    "lu_unpack": lambda d: torch.lu_unpack(matrix(d), torch.tensor([1, 2, 3], dtype=torch.int32, device=d)),
    "linalg.solve": lambda d: torch.linalg.solve(matrix(d), matrix(d)),
    "linalg.solve_triangular": lambda d: torch.linalg.solve_triangular(matrix(d).triu(), matrix(d), upper=True),
    "linalg.lstsq": lambda d: torch.linalg.lstsq(matrix(d), matrix(d)),
    "linalg.householder_product": lambda d: torch.linalg.householder_product(matrix(d), vector(d)),
    "fft.fft": lambda d: torch.fft.fft(vector(d)),
    "fft.rfft": lambda d: torch.fft.rfft(vector(d)),
    "fft.irfft": lambda d: torch.fft.irfft(torch.fft.rfft(vector(d))),
    "product of complex numbers": lambda d: torch.complex(vector(d), vector(d)) * 1j,
    "abs of complex numbers": lambda d: torch.complex(vector(d), vector(d)).abs(),
    "multinomial": lambda d: torch.multinomial(vector(d), 2),
    "poisson": lambda d: torch.poisson(vector(d)),
    "binomial": lambda d: torch.binomial(vector(d), vector(d) / 4),
    "randperm": lambda d: torch.randperm(9, device=d),
    "cauchy_": lambda d: vector(d).cauchy_(),
    "exponential_": lambda d: vector(d).exponential_(),
    "geometric_": lambda d: vector(d).geometric_(0.5),
    "log_normal_": lambda d: vector(d).log_normal_(),
    "normal_": lambda d: vector(d).normal_(),
    "uniform_": lambda d: vector(d).uniform_(),
    "random_ of integers": lambda d: _integers(d).random_(),
    "gelu": _of(F.gelu, 3),
    "elu": _of(F.elu, 3),
    "glu": _of(F.glu, 4),
    "hardswish": _of(F.hardswish, 3),
    "huber_loss": lambda d: F.huber_loss(vector(d), -vector(d)),
    "leaky_relu": _of(F.leaky_relu, 3),
    "logsigmoid": _of(F.logsigmoid, 3),
    "mish": _of(F.mish, 3),
    "prelu": lambda d: F.prelu(vector(d), vector(d)[:1]),
    "rrelu in training": _of(lambda x: F.rrelu(x, training=True), 3),
    "selu": _of(F.selu, 3),
    "silu": _of(F.silu, 3),
    "softplus": _of(F.softplus, 3),
    "smooth_l1_loss": lambda d: F.smooth_l1_loss(vector(d), -vector(d)),
    "cross_entropy": lambda d: F.cross_entropy(matrix(d), _integers(d) - 1),
    "multi_margin_loss": lambda d: F.multi_margin_loss(matrix(d), _integers(d) - 1),
    "multilabel_margin_loss": lambda d: F.multilabel_margin_loss(matrix(d), torch.zeros_like(matrix(d)).long()),
    "ctc_loss": lambda d: F.ctc_loss(
        matrix(d)[:, None].log_softmax(-1),
        torch.ones(1, 2, dtype=torch.int64, device=d),
        torch.tensor([3], device="cpu"),
        torch.tensor([2], device="cpu"),
    ),
    "batch_norm": lambda d: F.batch_norm(matrix(d), vector(d), vector(d)),
    "group_norm": _of(lambda x: F.group_norm(x, 2), 2, 4, 3),
    "layer_norm": _of(lambda x: F.layer_norm(x, (3,)), 2, 3),
    "local_response_norm": _of(lambda x: F.local_response_norm(x, 2), 1, 4, 3),
    "conv1d": _of(lambda x: F.conv1d(x, x), 1, 1, 4),
    "conv2d": _of(lambda x: F.conv2d(x, x), 1, 1, 4, 4),
    "conv3d": _of(lambda x: F.conv3d(x, x), 1, 1, 2, 2, 2),
    "conv_transpose2d": _of(lambda x: F.conv_transpose2d(x, x), 1, 1, 2, 2),
    "adaptive_avg_pool2d": _of(lambda x: F.adaptive_avg_pool2d(x, 2), 1, 4, 4),
    "adaptive_avg_pool3d": _of(lambda x: F.adaptive_avg_pool3d(x, 2), 1, 4, 4, 4),
    "adaptive_max_pool2d": _of(lambda x: F.adaptive_max_pool2d(x, 2), 1, 4, 4),
    "adaptive_max_pool3d": _of(lambda x: F.adaptive_max_pool3d(x, 2), 1, 4, 4, 4),
    "avg_pool2d": _of(lambda x: F.avg_pool2d(x, 2), 1, 4, 4),
    "avg_pool3d": _of(lambda x: F.avg_pool3d(x, 2), 1, 4, 4, 4),
    "fractional_max_pool2d": _of(lambda x: F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.5)), 1, 1, 4, 4),
    "fractional_max_pool3d": _of(lambda x: F.fractional_max_pool3d(x, 2, output_ratio=(0.5,) * 3), 1, 1, 4, 4, 4),
    "max_pool2d": _of(lambda x: F.max_pool2d(x, 2), 1, 1, 4, 4),
    "max_pool3d": _of(lambda x: F.max_pool3d(x, 2), 1, 1, 4, 4, 4),
    "grid_sample": lambda d: F.grid_sample(
        filled(d, 1, 1, 2, 2), torch.zeros(1, 1, 1, 2, device=d), align_corners=False
    ),
    "grid_sample of volumes": lambda d: F.grid_sample(
        filled(d, 1, 1, 2, 2, 2), torch.zeros(1, 1, 1, 1, 3, device=d), align_corners=False
    ),
    "interpolate, bicubic": _of(lambda x: F.interpolate(x, size=6, mode="bicubic"), 1, 1, 4, 4),
    "interpolate, bilinear": _of(lambda x: F.interpolate(x, size=6, mode="bilinear"), 1, 1, 4, 4),
    "interpolate, bilinear and antialiased": _of(
        lambda x: F.interpolate(x, size=2, mode="bilinear", antialias=True), 1, 1, 4, 4
    ),
    "interpolate, linear": _of(lambda x: F.interpolate(x, size=6, mode="linear"), 1, 1, 4),
    "interpolate, nearest": _of(lambda x: F.interpolate(x, size=6), 1, 1, 4, 4),
    "interpolate, trilinear": _of(lambda x: F.interpolate(x, size=6, mode="trilinear"), 1, 1, 4, 4, 4),
    "pad, reflect": _of(lambda x: F.pad(x, (1, 1), "reflect"), 1, 1, 4),
    "pad, replicate": _of(lambda x: F.pad(x, (1, 1, 1, 1, 1, 1), "replicate"), 1, 1, 4, 4, 4),
    "pixel_shuffle": _of(lambda x: F.pixel_shuffle(x, 2), 1, 4, 2, 2),
    "unfold": _of(lambda x: F.unfold(x, 2), 1, 1, 4, 4),
    "fold": _of(lambda x: F.fold(x, (4, 4), 2), 1, 4, 9),
    "scaled_dot_product_attention": _of(lambda x: F.scaled_dot_product_attention(x, x, x), 1, 1, 2, 4),
    "embedding_bag": lambda d: F.embedding_bag(torch.zeros_like(matrix(d)).long(), matrix(d)),
    "lstm": lambda d: torch.nn.LSTM(3, 2).to(d)(matrix(d)),
}
"""By the name of the function, with what it is of where that is no vector of float32."""
