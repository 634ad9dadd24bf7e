"""What a recipe makes of each layer of a model: its scheme, or why it is skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from assay.errors import ConfigError, describe, plural
from assay.quantize.candidates import Candidate
from assay.quantize.planning.recipe import Recipe, matches
from assay.quantize.scheme import Scheme

GROUPS = (256, 128, 64, 32, 16)


@dataclass(frozen=True)
class Choice:
    """What becomes of one candidate: a scheme, or ``None`` and why; ``why`` also where it is not the first choice."""

    candidate: Candidate
    scheme: Scheme | None
    why: str = ""

    @property
    def nbytes(self) -> int:
        """The bytes that its weight takes then, scales and zeros included."""
        return self.candidate.nbytes if self.scheme is None else self.scheme.nbytes(self.candidate.shape)


def choose(
    layers: Sequence[Candidate], recipe: Recipe, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> list[Choice]:
    """Give each candidate of a model a scheme, or the reason why it is skipped; `include` and `exclude` are patterns.

    Raises:
        ConfigError: a pattern or a rule that no layer falls under, or nothing that could be quantized.
    """
    for option, pattern in [*(("include", each) for each in include), *(("exclude", each) for each in exclude)]:
        if not any(matches(pattern, each.name) for each in layers):
            raise _unmatched(option, pattern, pattern, layers)
    _all_used(recipe, layers)
    choices = [_choice(each, recipe, include, exclude) for each in layers]
    by_name = {choice.candidate.name: choice for choice in choices}
    choices = [_tied(choice, by_name) for choice in choices]
    if not any(choice.scheme for choice in choices):
        raise ConfigError(_empty(choices))
    return choices


def _choice(each: Candidate, recipe: Recipe, include: Sequence[str], exclude: Sequence[str]) -> Choice:
    if each.why_not:
        return Choice(each, None, each.why_not)
    if pattern := next((pattern for pattern in exclude if matches(pattern, each.name)), ""):
        return Choice(each, None, f"excluded by {pattern!r}")
    if include and not any(matches(pattern, each.name) for pattern in include):
        return Choice(each, None, "not included")
    rule = recipe.rule_for(each.name, each.kind)
    if rule is None:
        is_linear = each.kind == "linear"
        return Choice(each, None, "no rule names it" if is_linear else 'embedding; "embedding:*" in a recipe takes it')
    if not rule.schemes:
        return Choice(each, None, f"skipped by {rule.key!r}")
    first = rule.schemes[0]
    why = _why_not(each, first)
    for scheme in rule.schemes:
        if not _why_not(each, scheme):
            return Choice(each, scheme, f"not {first}: {why}" if scheme != first else "")
    return Choice(each, None, why + _instead(each, first))


def _why_not(each: Candidate, scheme: Scheme) -> str:
    if each.kind == "embedding" and scheme.activations:
        return "an embedding has no activations to round"
    return scheme.why_not(each.shape)


def _instead(each: Candidate, scheme: Scheme) -> str:
    """A scheme of the same bits that the shape allows, as advice."""
    smaller = [group for group in GROUPS if group < (scheme.group_size or 0)]
    others = [replace(scheme, group_size=group) for group in (*smaller, None)]
    return next((f"; {other} fits" for other in others if not _why_not(each, other)), "")


def _tied(choice: Choice, by_name: dict[str, Choice]) -> Choice:
    """Weights that are shared become the same integers, or stay as they are: a copy would be no saving."""
    for name in choice.candidate.tied if choice.scheme else ():
        other = by_name.get(name)
        if other is None or other.scheme != choice.scheme:
            what = "is no layer" if other is None else f"gets {other.scheme}" if other.scheme else "is skipped"
            return Choice(choice.candidate, None, f"shares its weight with {name}, which {what}")
    return choice


def _unmatched(what: str, pattern: str, key: str, layers: Sequence[Candidate]) -> ConfigError:
    names = [each.name for each in layers]
    close = ", ".join(get_close_matches(pattern, names, n=3, cutoff=0.3) or names[:3])
    expected = f"the name of a linear layer or an embedding, such as {close}" if names else "a model with layers"
    do = "Change it; a pattern is a name or a part of one between dots, with * and ?"
    return ConfigError(describe(what, f"{key!r}, which no layer matches", expected, do))


def _all_used(recipe: Recipe, layers: Sequence[Candidate]) -> None:
    """Every rule takes a layer: one that does not is a slip, or stands behind one that takes all of its layers."""
    used = {rule for each in layers if (rule := recipe.rule_for(each.name, each.kind))}
    for rule in recipe.rules:
        if rule in used or rule.pattern == "*":
            continue
        kin = [each for each in layers if each.kind == rule.kind]
        hidden = next((each for each in kin if rule.matches(each.name, each.kind)), None)
        if hidden is None:
            raise _unmatched("recipe", rule.pattern, rule.key, kin)
        before = recipe.rule_for(hidden.name, hidden.kind)
        got = f"{rule.key!r} behind {before.key if before else ''!r}, which takes all of its layers"
        raise ConfigError(describe("recipe", got, "rules from the narrow to the wide", "Put it first"))


def _empty(choices: Sequence[Choice]) -> str:
    """Why there is nothing to do, with the reasons counted."""
    if not choices:
        expected = "at least one linear layer or embedding"
        return describe("model", "no linear layer and no embedding", expected, "Pass a model that has some")
    reasons = Counter(choice.why for choice in choices)
    summary = "; ".join(f"{plural(count, 'layer')}: {why}" for why, count in reasons.most_common(3))
    do = "Change the recipe, or take another scheme"
    return describe("plan", f"nothing to quantize ({summary})", "at least one layer", do)
