"""`assay metrics`, and what every help says."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.cli.declaration import options_of
from assay.cli.options import COMMANDS, GROUPS
from assay.errors import ConfigError

WIDE = {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}


def shown(*arguments):
    found = CliRunner().invoke(app, arguments, env=WIDE, catch_exceptions=False)
    assert found.exit_code == 0
    return found.stdout


def test_one_metric_is_shown_by_its_abbreviation():
    page = shown("metrics", "wer")
    assert page.startswith("WordErrorRate(")
    assert all(part in page for part in ("Source:", "Example:", "As a string: worderrorrate, wer", "Better: lower"))
    assert re.search("Elsewhere: TorchMetrics: .*WordErrorRate", page)


def test_metrics_are_listed_by_family_and_found_by_words():
    everything = shown("metrics")
    assert "classification\n" in everything
    assert re.search(r"  Accuracy +The share of labels that are right\.", everything)
    assert {"WordErrorRate", "CharErrorRate"} <= set(shown("metrics", "errorrate").split())
    (facts,) = json.loads(shown("metrics", "acc", "--json"))
    assert (facts["name"], facts["better"], "num_classes" in facts["arguments"]) == ("Accuracy", "higher", True)


def test_an_unknown_metric_names_the_nearest():
    with pytest.raises(ConfigError, match="Write assay metrics acc"):
        shown("metrics", "acurracy")


def test_commands_stand_in_groups():
    text = shown("--help")
    places = [text.index(f" {group} ") for group in GROUPS]
    assert places == sorted(places)
    assert {command.group for command in COMMANDS.values()} == set(GROUPS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_an_example_that_the_command_takes(name):
    example = COMMANDS[name].example
    assert f"Example: assay {name} {example}".rstrip() in " ".join(shown(name, "--help").split())
    arguments = shlex.split(example)
    known = {f"--{each.key}" for each in options_of(COMMANDS[name].options).values()}
    known |= {each for option in options_of(COMMANDS[name].options).values() for each in option.declared.names}
    assert {each for each in arguments if each.startswith("--")} <= known
