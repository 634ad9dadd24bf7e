"""What a check found, and what is expected of devices: records, and the file of expectations in this package."""

from __future__ import annotations

import json
from dataclasses import field
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

from assay._records import OPTIONAL, Record
from assay.conformance.metric_cases import MetricValue
from assay.devices.capabilities import device_type
from assay.devices.kinds import HOST

CheckKind: TypeAlias = Literal[
    "operators", "dtypes", "waits", "integers", "values", "laws", "metrics", "metrics of rounded terms"
]
KINDS: dict[CheckKind, str] = {
    "operators": "operators run, or raise the error that is expected",
    "dtypes": "dtypes: made, copied and computed with, to the bit",
    "waits": "where the program synchronizes with the device",
    "integers": "integer operators that counts rest on, to the bit",
    "values": "values of operators of float32, within their rounding",
    "laws": "conservation laws of counts, split and merged",
    "metrics": "metrics, to the bit",
    "metrics of rounded terms": "metrics of float terms, within their rounding",
}
"""The kinds of checks, in their order."""
Result: TypeAlias = Literal["holds", "differs", "not seen"]


class CheckOutcome(Record):
    """What one check found.

    Args:
        kind: one of `KINDS`.
        name: what was checked.
        result: ``"holds"``, ``"differs"``, or ``"not seen"`` where the device does not show it.
        got: what the device did; why it was not seen; or how near a value that holds is.
        expected: what was expected, where it differs.
    """

    kind: CheckKind
    name: str
    result: Result
    got: str = field(default="", metadata=OPTIONAL)
    expected: str = field(default="", metadata=OPTIONAL)

    def __str__(self) -> str:
        """One line; two more where it differs."""
        line = f"{self.kind}: {self.name}: {self.result}"
        return f"{line}\n  got       {self.got}\n  expected  {self.expected}" if self.result == "differs" else line


class ExpectedAnswers(Record):
    """Questions about operators, dtypes and waits that have the same answers.

    Args:
        answers: what each kind of device answers; a kind is left out where nothing certain is known of it.
        questions: the questions.
    """

    answers: dict[str, str]
    questions: tuple[str, ...]


class Expectations(Record, schema="assay.device-expectations/1"):
    """What is expected of devices: made on the CPU, and on pretended devices by the facts about them.

    Args:
        torch: the release of torch with which they were made.
        behaviours: what devices answer to questions about operators, dtypes and waits.
        values: the values of operators in float64.
        metrics: the value of each metric for its fixed samples.
    """

    torch: str
    behaviours: tuple[ExpectedAnswers, ...]
    values: dict[str, tuple[float, ...]]
    metrics: dict[str, MetricValue]

    @property
    def digest(self) -> str:
        """The digest of what is expected."""
        return str(json.loads(self.to_json())["digest"])

    def answers(self, device: str) -> dict[str, str]:
        """What a device is expected to answer, by question; what is not certain is left out.

        Of a kind of which the file says nothing it is what all kinds of accelerators in it answer.
        """
        kind = device_type(device)
        kinds = {name for each in self.behaviours for name in each.answers}
        wanted = [kind] if kind in kinds else sorted(kinds - {HOST})
        known = [(each, _common([each.answers.get(name) for name in wanted])) for each in self.behaviours]
        return {question: answer for each, answer in known if answer for question in each.questions}


def _common(answers: list[str | None]) -> str | None:
    return answers[0] if len(set(answers)) == 1 else None


@cache
def expectations() -> Expectations:
    """The expectations in this package."""
    text = files("assay.conformance").joinpath("expected.json").read_text(encoding="utf-8")
    return Expectations.from_json(text, "expected.json")
