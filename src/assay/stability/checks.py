"""`check_stability`: one thing is changed at a time, and the outputs for the same samples are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from assay.devices.assign import assign
from assay.errors import AssayError, ConfigError, describe
from assay.evaluation.arguments.options import EvaluateOptions
from assay.evaluation.model.data_parallel import unwrapped
from assay.evaluation.model.exported_models import as_model
from assay.evaluation.model.forward import float_dtype, homes
from assay.stability.alternatives import check_against, check_compiled, check_dtype, check_threads
from assay.stability.comparison import Comparer, not_checked
from assay.stability.model_runner import ModelRunner, random_state_unchanged
from assay.stability.padding_check import check_padding
from assay.stability.repeats import check_inputs, check_repeats
from assay.stability.result import Stability, StabilityCheck
from assay.stability.samples import groups_of, other_neighbours, read_samples

MODES = ("eval", "as is")
_SIZES = (1, 7)


def check_stability(
    model: Callable[..., Any],
    data: Any,
    *,
    samples: int = 64,
    device: str | torch.device = "auto",
    mode: str = "eval",
    inputs: Any = None,
    target: Any = None,
    preds: Any = None,
    padding: int | None = None,
    compile: bool = False,
    against: Mapping[str, Callable[..., Any]] | None = None,
    title: str = "",
) -> Stability:
    """Whether a model gives the same outputs for the same samples when what should not matter changes.

    Changed are, one at a time: nothing (repeats), the batch size (1 and 7), the order of the samples, their
    neighbours in the batch, padding, the number of threads, the dtype (float64), and on demand `torch.compile` and
    other forms of the model. Copies of the model are run, each in the state in which it was given.

    A difference of up to 64 ulps (units in the last place of the largest output of a sample) is rounding. So is a
    larger one of which a float64 copy, with the same change, shows less than 2^-20. All else depends on what was
    changed. Of repeats, any difference counts. Of float64, more than 1,024 ulps count: the model loses digits.

    Args:
        model: what is called: a module, an exported program or a function.
        data: a tensor, or what `assay.evaluate` takes.
        samples: how many of the first samples are used.
        device: where the model is run, as in `assay.evaluate`; the float64 copy is run on the CPU.
        mode: ``"eval"`` for evaluation mode, ``"as is"`` for the mode in which the model was given.
        inputs: which parts of a batch the model takes, as in `assay.evaluate`.
        target: which part of a batch is the target.
        preds: which part of the outputs is compared.
        padding: the token that is padding, for a model without a mask.
        compile: also compare with `torch.compile`.
        against: by name, other forms of the model: exported programs, TorchScript, functions that call ONNX Runtime.
        title: of the result; the class of the model by default.

    Returns:
        A row for each comparison: the largest difference, how many decisions differ, the first operator that differs,
        the verdict and the likely cause.

    Raises:
        ConfigError: an argument is invalid, there are fewer than two samples, or the model does not run.

    Example:
        >>> from assay.stability import check_stability
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
        >>> x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
        >>> check_stability(model, x).outcome
        'stable'
        >>> print(check_stability(model, x, mode="as is").causes[-1])
        the batch norm '1' normalizes by the batch: '1' is in training mode (call eval())
    """
    _check(samples, mode)
    model = as_model(unwrapped(model))
    options = EvaluateOptions(device=device, inputs=inputs, target=target, preds=preds, batch_size=samples)
    with random_state_unchanged():
        chosen = read_samples(model, data, samples, options)
        runner = ModelRunner(model, chosen, assign(device, homes(model)).device.value, mode)
        comparer = _comparer(runner, chosen.rows, float_dtype(model))
        checks = [*check_repeats(comparer), check_inputs(comparer, chosen)]
        others = {name: as_model(unwrapped(other)) for name, other in (against or {}).items()}
        rest = _rest(comparer, model, chosen, padding, compile, others)
        if comparer.is_repeatable:
            checks += [check() for _, check in rest]
        else:
            why = "two runs of the same batches differ already"
            checks += [not_checked(name, why) for name in dict(rest)]
    return Stability.of(title or type(model).__name__, checks, _notes(comparer, mode, compile, against))


def _check(samples: int, mode: str) -> None:
    if not isinstance(samples, int) or samples < 2:
        raise ConfigError(describe("samples", repr(samples), "an integer, 2 or more", "Pass samples=64"))
    if mode not in MODES:
        raise ConfigError(describe("mode", repr(mode), "'eval' or 'as is'", "Leave mode out for evaluation mode"))


def _comparer(runner: ModelRunner, rows: int, dtype: torch.dtype | None) -> Comparer:
    try:
        return Comparer.of(runner, rows, dtype)
    except AssayError:
        raise
    except Exception as error:
        got = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        do = "Call the model with one batch, and name its inputs with inputs="
        raise ConfigError(describe("model", got, f"outputs for {rows} samples", do)) from error


def _rest(
    comparer: Comparer, model: Any, chosen: Any, padding: int | None, compile: bool, against: Mapping[str, Any]
) -> list[tuple[str, Callable[[], StabilityCheck]]]:
    """What is compared where repeats agree, by the name of what is changed."""
    rows, whole = comparer.rows, comparer.whole
    sizes = [size for size in _SIZES if size < rows]
    found: list[tuple[str, Callable[[], StabilityCheck]]] = [
        ("batch size", lambda size=size: comparer.check(  # type: ignore[misc]
            "batch size", f"batches of {size} with one of {rows}", whole, groups_of(rows, size), is_needed=True
        )) for size in sizes
    ]  # fmt: skip
    backwards = [list(reversed(range(rows)))]
    found.append(("order", lambda: comparer.check("order", "the samples in reverse order", whole, backwards)))
    size = max(2, min(8, rows // 2))
    pair = other_neighbours(rows, size)
    compared = f"batches of {size}, the same places and other neighbours"
    found.append(("neighbours", lambda: comparer.check("neighbours", compared, *pair)))
    found.append(("padding", lambda: check_padding(comparer, model, chosen, padding)))
    found.append(("threads", lambda: check_threads(comparer)))
    found.append(("dtype", lambda: check_dtype(comparer)))
    if compile:
        found.append(("torch.compile", lambda: check_compiled(comparer)))
    found += [(name, lambda n=name, o=other: check_against(comparer, n, o)) for name, other in against.items()]  # type: ignore[misc]
    return found


def _notes(comparer: Comparer, mode: str, compile: bool, against: Mapping[str, Any] | None) -> list[str]:
    notes = [f"{comparer.rows} samples. Rounding: up to 64 ulps, or a difference that a float64 copy removes."]
    if comparer.no_float64:
        notes.append(f"No float64 copy: {comparer.no_float64}.")
    if comparer.runner.no_copy:
        notes.append(f"The model cannot be copied ({comparer.runner.no_copy}): all runs are of the model itself.")
    if mode != "eval":
        notes.append("The model was run in the mode in which it was given.")
    left_out = [] if compile else ["torch.compile"]
    left_out += [] if against else ["exported programs, TorchScript and ONNX Runtime"]
    return notes + [f"Left out: {', '.join(left_out)}."] * bool(left_out)
