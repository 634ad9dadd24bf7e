from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from assay.audit.findings.rulebook import SEVERITIES, at_least, chosen, page, rules
from assay.errors import ConfigError

PAGE = Path(__file__).parents[2] / "docs" / "audit_rules.md"


@pytest.mark.parametrize("rule", rules().values(), ids=rules())
def test_every_rule_says_what_a_reader_needs(rule):
    assert rule.severity in SEVERITIES
    for text in (rule.title, rule.why, rule.fix, rule.fix_at, rule.source):
        assert text
        assert not text.endswith(".")  # they are put into sentences
    for fix in (rule.fix_at, *rule.fix_of.values()):
        assert "{expression}" in fix or rule.id == "suppression"
        assert fix.format(expression="x")


@pytest.mark.parametrize("rule", rules().values(), ids=rules())
def test_every_example_is_python_and_is_changed_by_the_fix(rule):
    for example in (rule.bug, rule.fixed):
        body = textwrap.indent(textwrap.dedent(example), "    ")
        ast.parse(f"def example():\n{body}")
    assert rule.bug != rule.fixed


def test_the_page_of_the_rules_is_what_the_rules_say():
    assert PAGE.read_text("utf-8") == page()


def test_rules_are_chosen_by_name():
    assert chosen() == set(rules())
    assert chosen(without=["device-sync"]) == set(rules()) - {"device-sync"}
    with pytest.raises(ConfigError, match=r"^rule: got 'host_sync', expected one of mixed-devices, dtype-missing"):
        chosen(without=["host_sync"])


def test_severities_rise():
    assert [at_least(severity, "warning") for severity in SEVERITIES] == [False, True, True]
