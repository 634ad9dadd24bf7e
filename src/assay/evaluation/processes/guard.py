"""A forward that communicates although nothing in the model shows it: found in its first batch, before it waits."""

from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from assay.errors import ConfigError, describe
from assay.evaluation.processes.links import SAY

_NAMESPACES = ("c10d", "_c10d_functional", "c10d_functional", "_c10d_functional_autograd")


class CommunicationGuard(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, a collective, or an operation on a `DTensor`, raises instead of being run.

    Processes evaluate different samples, so its results would mix them, or it would wait for ever.

    Raises:
        ConfigError: names the operation.
    """

    @classmethod
    def is_infra_mode(cls) -> bool:
        """True: inside any other mode torch leaves functions uncompiled, and later on, too."""
        return True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.namespace in _NAMESPACES or any(each.__name__ == "DTensor" for each in types):
            got = f"a forward that communicates with other processes ({func})"
            expected = "a model that is whole on each process, or word of which processes need the same samples"
            raise ConfigError(describe("model", got, expected, SAY))
        return func(*args, **(kwargs or {}))
