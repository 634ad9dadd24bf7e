"""What a meter does not have and other libraries do, with what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from assay.errors import describe

_DEVICE = ("each batch to be counted on its own device", "Leave it out")
_DTYPE = ("values in float64", "Leave it out, and convert what compute() returns")
_MODES = ("a meter, which has no modes", "Leave it out")
_VALUES = ("the values in a dictionary", "Write meter.compute()")
_UPDATE = ("the method update", "Write meter.update(preds, target)")
_CLEAR = ("the method reset", "Write meter.reset()")
_MERGE = ("the method merge", "Write meter.merge(other), or meter + other")
_SYNC = ("the method sync", "Write meter.sync().compute()")

INSTEAD: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("to", "cpu", "cuda", "device", "move_state_variables_to_device"), _DEVICE),
    **dict.fromkeys(("half", "float", "double", "bfloat16", "type", "set_dtype"), _DTYPE),
    **dict.fromkeys(("train", "eval", "persistent", "requires_grad_"), _MODES),
    **dict.fromkeys(("value", "result", "values", "items", "keys", "get_metric"), _VALUES),
    **dict.fromkeys(("add", "add_batch", "append", "update_state", "push"), _UPDATE),
    **dict.fromkeys(("clear", "reset_states", "reset_state"), _CLEAR),
    "merge_state": _MERGE,
    **dict.fromkeys(("sync_dist", "all_reduce", "sync_and_compute"), _SYNC),
    **dict.fromkeys(("clone", "copy"), ("a copy from the module copy", "Write copy.deepcopy(meter)")),
    **dict.fromkeys(
        ("add_metrics", "add_metric"), ("all metrics when the meter is made", "Write Meter(acc=..., f1=...)")
    ),
    "attach": ("a function of assay.integrations", "Write assay.integrations.attach(...), of Ignite's engines"),
}
"""For each name that meters of other libraries have: what there is here, and what to write."""


def about(name: str, metrics: Collection[str], public: Collection[str]) -> str:
    """The message for a name that a meter does not have.

    Args:
        name: what was asked for.
        metrics: the names of the metrics of the meter.
        public: the names that a meter has.
    """
    if name.startswith("_"):
        return f"'Meter' object has no attribute {name!r}"
    if name in metrics:
        expected, do = "the value in a dictionary", f"Write meter[{name!r}], or meter.compute()[{name!r}]"
    elif name in INSTEAD:
        expected, do = INSTEAD[name]
    else:
        close = difflib.get_close_matches(name, [each for each in public if not each.startswith("_")], 1)
        expected, do = "a name that dir(meter) lists", f"Write {close[0]}" if close else "Check the name"
    return describe("Meter", f"{name!r}, which it does not have", expected, do)


def about_positions(method: str, others: int, columns: Collection[str]) -> str:
    """The message for a call with more than predictions and targets by place.

    Args:
        method: what was called.
        others: how many arguments are too many.
        columns: the names of the columns that the metrics take; weights where they take none.
    """
    named = ", ".join(f"{name}=..." for name in sorted(columns) or ("weights",))
    do = f"Write meter.{method}(preds, target, {named})"
    return describe(f"Meter.{method}", f"{others + 2} arguments without a name", "preds and target", do)
