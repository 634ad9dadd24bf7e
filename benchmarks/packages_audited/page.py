"""Writes the findings into docs/audit_of_other_libraries.md, and texts for issues into docs/upstream."""

from __future__ import annotations

from pathlib import Path

from benchmarks.packages_audited.findings import Package, PackageFinding, audited, packages

PAGE = Path("docs/audit_of_other_libraries.md")
UPSTREAM = Path("docs/upstream")
BEGIN, END = "<!-- packages: begin -->", "<!-- packages: end -->"


def section() -> str:
    """The part of the page between the two marks."""
    found, ran = packages(), audited()
    number = sum(len(package.findings) for package in found)
    with_findings = {package.name for package in found}
    rest = [each for each in ran if each.name not in with_findings]
    rows = [_row(package, finding) for package in found for finding in package.findings]
    clean = ", ".join(f"{each.name} {each.version} ({each.calls})" for each in rest)
    return "\n".join(
        (
            BEGIN,
            f"{len(ran)} packages, {sum(each.calls for each in ran):,} functions and classes: {number} lines of "
            f"{len(found)} packages go wrong.",
            "",
            "| package | line | rule | devices | what happens | still there after the release |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            f"No finding in these, with the number of functions and classes that were called: {clean}.",
            END,
        )
    )


def _row(package: Package, finding: PackageFinding) -> str:
    name = f"[{package.name} {package.version}](upstream/{package.name}.md)"
    still = f"{package.still}" if package.still else "no newer commit seen"
    why = finding.why.replace("|", "\\|")
    return f"| {name} | `{finding.line}` | {finding.rule} | {', '.join(finding.devices)} | {why} | {still} |"


def issue(package: Package) -> str:
    """The text of an issue: what fails, how to see it, and what to change."""
    parts = [
        f"# {package.title}",
        "",
        f"{package.name} {package.version}, torch 2.13.0. Seen on a device that is pretended by `assay.pretend`, "
        "not run on a real one.",
    ]
    if package.still:
        parts.append(f"The commit {package.still}, after the release, has the same lines.")
    for finding in package.findings:
        parts += [
            "",
            f"## `{finding.line}`",
            "",
            finding.why,
            "",
            "```py",
            *_script(finding),
            "```",
            "",
            f"- Expected: what it gives on the CPU, on {_listed(finding.devices)}.",
            f"- Seen: `{finding.seen.strip().rstrip(':')}`",
            f"- Suggested fix: {finding.fix}.",
        ]
    return "\n".join(parts) + "\n"


def _script(finding: PackageFinding) -> list[str]:
    """The lines that reproduce it, with torch and the device."""
    lines = finding.reproduce.strip().splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith(("import ", "from "))) + 1
    return ["import torch", *lines[:last], "", f'device = "{finding.devices[0]}"', *lines[last:]]


def _listed(devices: tuple[str, ...]) -> str:
    return " and ".join(f"`{device}`" for device in devices)


def write() -> None:
    """Write the page and the texts."""
    text = PAGE.read_text("utf-8")
    PAGE.write_text(text[: text.index(BEGIN)] + section() + text[text.index(END) + len(END) :], "utf-8")
    UPSTREAM.mkdir(exist_ok=True)
    for package in packages():
        (UPSTREAM / f"{package.name}.md").write_text(issue(package), "utf-8")
