"""The text of a Python file: where its nodes are, the parts of a call, and changes that leave the rest unchanged."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_OPENS = re.compile(r"[fF][rR]?['\"]|[rR][fF]['\"]")
_SPACE = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)


@dataclass(frozen=True, order=True)
class Edit:
    """Put a text in the place of the characters from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class SourcePart:
    """One argument of a call, or one name of an import: where it is, and where the comma behind it is, if any."""

    start: int
    end: int
    comma: int | None


class SourceText:
    """A text and its tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = _LINES.findall(text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self.parent = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self._tokens = [
            (token, self._starts[token.start[0] - 1] + token.start[1], self._starts[token.end[0] - 1] + token.end[1])
            for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline)
            if token[0] not in (tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT)
        ]

    def _at(self, line: int, column: int) -> int:
        before = self._lines[line - 1].encode()[:column].decode() if line <= len(self._lines) else ""
        return self._starts[line - 1] + len(before)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node starts and ends, in characters."""
        start = self._at(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return start, self._at(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def of(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def exact(self, node: ast.expr) -> bool:
        """Whether a node is where it says; inside of f-strings that is not always so before Python 3.12."""
        if self._strings(node) > 1:
            return False
        try:
            return ast.dump(ast.parse(self.of(node), mode="eval").body) == ast.dump(node)
        except (SyntaxError, ValueError, IndexError):
            return False

    def in_string(self, node: ast.AST) -> bool:
        """Whether a node is inside of an f-string."""
        return self._strings(node) > 0

    def _strings(self, node: ast.AST) -> int:
        """How many f-strings a node is inside of."""
        count = 0
        while node in self.parent:
            node = self.parent[node]
            count += isinstance(node, ast.FormattedValue)
        return count

    def quote(self, node: ast.AST) -> str:
        """The quotation mark that may be written at a node: in an f-string, the one that it does not use."""
        if not self.in_string(node):
            return '"'
        start = self.span(node)[0]
        before = [token.string for token, begins, _ in self._tokens if begins <= start and _OPENS.match(token.string)]
        return "'" if before and before[-1].lstrip("frbuFRBU").startswith('"') else '"'

    def parts(self, start: int, end: int) -> list[SourcePart]:
        """What is between commas from one place to another, brackets and comments respected."""
        parts: list[SourcePart] = []
        depth, first, last = 0, -1, -1
        for token, begins, ends in self._tokens:
            if begins < start or ends > end or token[0] in _SPACE:
                continue
            if token.string == "," and depth == 0:
                parts.append(SourcePart(first, last, begins))
                first = -1
                continue
            depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
            first, last = (begins if first < 0 else first), ends
        return [*parts, SourcePart(first, last, None)] if first >= 0 else parts

    def arguments(self, call: ast.Call) -> tuple[int, int, list[SourcePart]]:
        """Where the inside of a call's brackets starts and ends, and its arguments."""
        behind, end = self.span(call.func)[1], self.span(call)[1]
        opened = next(b for token, b, _ in self._tokens if b >= behind and token.string == "(")
        return opened + 1, end - 1, self.parts(opened + 1, end - 1)

    def names_of(self, imported: ast.ImportFrom | ast.Import) -> list[SourcePart]:
        """The names of an import, in its order."""
        start, end = self.span(imported)
        inside = [(token, b, e) for token, b, e in self._tokens if start <= b and e <= end]
        begins = next(e for token, _, e in inside if token.string == "import")
        brackets = [b for token, b, _ in inside if token.string in ("(", ")")]
        return self.parts(brackets[0] + 1, brackets[1]) if brackets else self.parts(begins, end)

    def without(self, parts: list[SourcePart], dropped: set[int]) -> list[Edit]:
        """Take some of the parts away, with their commas, and with their lines where nothing else is on them."""
        return [self._dropping(parts, index, dropped) for index in sorted(dropped)]

    def _dropping(self, parts: list[SourcePart], index: int, dropped: set[int]) -> Edit:
        part = parts[index]
        start, end = part.start, part.end
        if part.comma is not None:
            end = part.comma + 1
            end += len(self.text[end:]) - len(self.text[end:].lstrip(" \t"))
        else:
            remaining = [each for i, each in enumerate(parts[:index]) if i not in dropped]
            if remaining and "#" not in self.text[remaining[-1].end : start]:
                return Edit(remaining[-1].end, end, "")
        line = self.text.rfind("\n", 0, start) + 1
        rest = re.compile(r"\r?\n").match(self.text, end)
        if rest and not self.text[line:start].strip():
            start, end = line, rest.end()
        return Edit(start, end, "")


def changed(text: str, edits: list[Edit]) -> str:
    """The text with all changes; what is taken away may overlap, and an insertion inside of it is lost with it."""
    out, at = [], 0
    for edit in sorted(dict.fromkeys(edits), key=lambda each: (each.start, each.end)):
        if edit.start < at:
            at = max(at, edit.end)
            continue
        out += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*out, text[at:]])
