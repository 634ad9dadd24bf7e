"""Whether kernels in Triton count on a device what torch's operators count on the CPU: their self-test."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache

import torch

from assay.decide import Argmax, TopK
from assay.devices.policies import policy
from assay.devices.selftest import SelfTest, SelfTestOutcome
from assay.errors import KernelWarning
from assay.tally.base import Batch, State, Tally
from assay.tally.labels.confusion import ClassCounts, Confusion
from assay.tally.labels.labels import Labels
from assay.tally.scores.labelled_scores import score_spec
from assay.tally.scores.scores import ScoreTally
from assay.tally.sums.sums import Sums
from assay.tally.sums.terms import PREDS, TARGET, AbsoluteError, Product
from assay.triton_kernels.launch import failures

_ROWS = 1100  # more than one program of each kernel, and not a multiple of their blocks


@cache
def uses_triton(device: torch.device) -> bool:
    """Whether batches of a device are counted by kernels in Triton: they are allowed there and pass their self-test.

    The first call for a device that allows them runs the self-test, which synchronizes with it once.

    Warns:
        KernelWarning: the self-test failed, so torch's operators count.
    """
    if not policy(device).triton.value:
        return False
    test = check_kernels(device)
    if not test.passed:
        failed = "; ".join(f"{each.name}: {each.detail}" for each in test.failures)
        message = f"Triton kernels failed their self-test on {device} ({failed}); torch's operators count instead."
        warnings.warn(message, KernelWarning, stacklevel=2)
    return test.passed


def check_kernels(device: torch.device) -> SelfTest:
    """Count the same samples by kernels on a device and by torch's operators on the CPU, and compare the states."""
    outcomes = [_check(name, device, *case) for name, case in _cases().items()]
    outcomes += [SelfTestOutcome(f"kernel {name}", False, why) for name, why in failures().items()]
    return SelfTest(device, tuple(outcomes))


def _check(name: str, device: torch.device, tally: Tally, batch: Batch) -> SelfTestOutcome:
    expected = tally.zero(torch.device("cpu"))
    tally.add(expected, batch)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWarning)  # failures of kernels are outcomes
            state = tally.zero(device)
            target = None if batch.target is None else batch.target.to(device)
            tally.add(state, Batch(batch.preds.to(device), target, triton=True))
            on_host = {field: value.cpu() for field, value in state.items()}
    except Exception as error:  # compilers and drivers raise anything
        return SelfTestOutcome(name, False, str(error).strip().partition("\n")[0] or type(error).__name__)
    different = _different(tally.canonicalize(on_host, _ROWS), tally.canonicalize(expected, _ROWS))
    return SelfTestOutcome(name, not different, f"{', '.join(different)} differ" if different else "")


def _different(got: State, expected: State) -> list[str]:
    return [name for name in expected if not torch.equal(got[name], expected[name])]


def _cases() -> Mapping[str, tuple[Tally, Batch]]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(_ROWS, 7, generator=generator, dtype=torch.float32, device="cpu")
    scores[::50, 3] = torch.nan
    scores[1::9] = scores[1::9].round()
    labels = torch.randint(-1, 8, (_ROWS,), generator=generator, device="cpu")
    any_bits = torch.randint(-(2**31), 2**31 - 1, (2, _ROWS), generator=generator, dtype=torch.int32, device="cpu")
    x, y = any_bits.view(torch.float32)
    moments = frozenset({PREDS, TARGET, Product(PREDS, TARGET), Product(PREDS, PREDS), AbsoluteError()})
    finite = Batch(x.nan_to_num(0, 1, -1), scores[:, 0])
    return {
        "sums of any numbers": (Sums(moments), finite),
        "sums with what is not finite": (Sums(moments), Batch(x, y)),
        "labels of the highest scores": (Confusion(Labels(7, Argmax())), Batch(scores, labels)),
        "labels of the top 2": (ClassCounts(Labels(7, TopK(2), ignore_index=5)), Batch(scores, labels)),
        "bins of scores": (
            ScoreTally(score_spec(None), keep=0),
            Batch(scores[:, 0].abs(), labels.clamp(-1, 2)),
        ),
        "bins of logits": (
            ScoreTally(score_spec(None, 7, logits=True), keep=0),
            Batch(scores, (labels[:, None] + torch.arange(7, device="cpu")) % 4 - 1),
        ),
    }
