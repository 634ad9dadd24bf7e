"""The kinds of device that assay knows: the only list of them."""

from __future__ import annotations

from dataclasses import dataclass

HOST = "cpu"
MOST = 16  # of a kind of which a machine may have several
PRIVATE = "PrivateUse1"  # the key that torch leaves to adapters, which name it: torch.utils.rename_privateuse1_backend


@dataclass(frozen=True)
class DeviceKind:
    """A kind of accelerator: what tells it from the others, as far as no fact file says it.

    One record here and two files make a kind known. ``known/NAME.toml`` says what it can do, feature by feature, and
    ``known/operators_NAME.toml`` what torch's operators do there. From then on ``assay devices`` lists it,
    ``policy("NAME")`` decides by its facts, plans of quantized weights may name it, and the audit knows it as a device
    that programs name. :func:`assay.pretend.pretend` opens it if ``pretended`` is true. Of a kind that torch has itself
    this needs the functions that ``torch.NAME`` calls (``pretend/torch_functions.py``); what an ``adapter`` brings is
    made from the fact file (``pretend/adapters.py``). The native engine asks for its type in C++.

    Attributes:
        name: the type of its devices, as in ``torch.device("NAME")``.
        key: torch's dispatch key of its kernels, as in ``native_functions.yaml``.
        number: its number in ``c10/core/DeviceType.h``.
        backend: the backend of ``torch.distributed`` for its tensors, or empty.
        asked_by: the module of torch whose ``is_available()`` says whether it is there.
        several: whether a machine may have more than one.
        int8_products: whether torch multiplies matrices of int8 there (``torch._int_mm``).
        audited: which of its devices an audit pretends by default; the last of two shows what lands on the first.
        kernels: the file in ``known/`` with its kernels release by release, where torch's own list has few of them.
        adapter: the package that brings it to torch, where torch does not have it itself, such as ``"torch_npu"``.
        pretended: whether it can be pretended.

    Example:
        >>> KINDS["xpu"].backend, KINDS["mps"].several
        ('xccl', False)
        >>> KINDS["npu"].renamed, KINDS["npu"].adapter
        (True, 'torch_npu')
    """

    name: str
    key: str
    number: int
    backend: str
    asked_by: str
    several: bool = True
    int8_products: bool = False
    audited: str = ""
    kernels: str = ""
    adapter: str = ""
    pretended: bool = True

    @property
    def renamed(self) -> bool:
        """Whether it is torch's ``PrivateUse1`` under a name that a process can give it once."""
        return self.key == PRIVATE

    @property
    def most(self) -> int:
        """How many of them can be pretended at once."""
        return MOST if self.several else 1


KINDS = {
    kind.name: kind
    for kind in (
        DeviceKind("cuda", "CUDA", 1, "nccl", "torch.cuda", int8_products=True, audited="cuda:1"),
        DeviceKind("mps", "MPS", 13, "", "torch.backends.mps", several=False, audited="mps"),
        DeviceKind("xpu", "XPU", 12, "xccl", "torch.xpu", int8_products=True, audited="xpu", kernels="kernels_xpu"),
        DeviceKind("npu", PRIVATE, 20, "hccl", "torch.npu", kernels="kernels_npu", adapter="torch_npu"),
        DeviceKind("mlu", PRIVATE, 20, "cncl", "torch.mlu", kernels="kernels_mlu", adapter="torch_mlu"),
        DeviceKind("musa", PRIVATE, 20, "mccl", "torch.musa", kernels="kernels_musa", adapter="torch_musa"),
        DeviceKind("hpu", "HPU", 15, "hccl", "torch.hpu", kernels="kernels_hpu", adapter="habana_frameworks.torch"),
        # Its tensors are graphs that are computed later: what goes wrong there (compilation, traffic) has no like here.
        DeviceKind("xla", "XLA", 9, "xla", "torch_xla", kernels="kernels_xla", adapter="torch_xla", pretended=False),
    )
}
ACCELERATORS = tuple(KINDS)
DEVICES = (HOST, *ACCELERATORS)
PRETENDED = tuple(name for name, kind in KINDS.items() if kind.pretended)
AUDITED = tuple(kind.audited for kind in sorted(KINDS.values(), key=lambda kind: kind.several) if kind.audited)
"""The devices that are audited by default: the kind of which a machine has one is first."""
BACKENDS = {
    backend: tuple(name for name, kind in KINDS.items() if kind.backend == backend)
    for backend in dict.fromkeys(kind.backend for kind in KINDS.values() if kind.backend)
}
"""The kinds of device by the backend of ``torch.distributed`` that serves them; ``hccl`` is Ascend's and Gaudi's."""
PATTERN = "|".join(ACCELERATORS)
"""The kinds, as a regular expression."""
