"""The kinds of device that assay knows: the only list of them."""

from __future__ import annotations

from dataclasses import dataclass

HOST = "cpu"
MOST = 16  # of a kind of which a machine may have several


@dataclass(frozen=True)
class DeviceKind:
    """A kind of accelerator: what tells it from the others, as far as no fact file says it.

    One record here and two files make a kind known. ``known/NAME.toml`` says what it can do, feature by feature, and
    ``known/operators_NAME.toml`` what torch's operators do there. From then on ``assay devices`` lists it,
    ``policy("NAME")`` decides by its facts, plans of quantized weights may name it, and the audit knows it as a device
    that programs name. :func:`assay.pretend.pretend` opens it if ``pretended`` is true, which also needs the functions
    that ``torch.NAME`` calls (``pretend/torch_functions.py``) and, for the native engine, its guards in C++.

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
        pretended: whether it can be pretended.

    Example:
        >>> KINDS["xpu"].backend, KINDS["mps"].several
        ('xccl', False)
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
    pretended: bool = True

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
    )
}
ACCELERATORS = tuple(KINDS)
DEVICES = (HOST, *ACCELERATORS)
PRETENDED = tuple(name for name, kind in KINDS.items() if kind.pretended)
AUDITED = tuple(kind.audited for kind in sorted(KINDS.values(), key=lambda kind: kind.several) if kind.audited)
"""The devices that are audited by default: the kind of which a machine has one is first."""
BACKENDS = {kind.backend: name for name, kind in KINDS.items() if kind.backend}
"""The kind of device by the backend of ``torch.distributed`` that serves it."""
PATTERN = "|".join(ACCELERATORS)
"""The kinds, as a regular expression."""
