"""The gallery: a page for each script of `examples/gallery`, with its code, a picture and the report that it makes.

What a script makes is kept in `build/gallery` until the script changes; pictures need Chromium.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
import screenshots

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "examples" / "gallery"
BUILT = ROOT / "build" / "gallery"
INDEX = "gallery/index.md"
ORDER = (
    *("digits", "breast_cancer", "diabetes", "two_models", "history", "text", "retrieval", "detection"),
    *("segmentation", "language_model", "quantized", "judge"),
)


class Example(NamedTuple):
    """A script of the gallery: its name, the title and the text of its docstring, and its code."""

    name: str
    title: str
    text: str
    code: str


def examples() -> list[Example]:
    """All scripts, in the order in which the gallery shows them."""
    return [example(name) for name in ORDER]


def example(name: str) -> Example:
    """A script by its name."""
    _, docstring, code = (SCRIPTS / f"{name}.py").read_text("utf-8").split('"""', 2)
    title, _, text = docstring.partition("\n")
    return Example(name, title, text.strip(), code.strip())


def run(name: str, page: Path) -> None:
    """Run a script, and write the report that it calls `report` as a page."""
    names: dict[str, object] = {"__name__": name}
    script = SCRIPTS / f"{name}.py"
    exec(compile(script.read_text("utf-8"), str(script), "exec"), names)
    page.parent.mkdir(parents=True, exist_ok=True)
    names["report"].to_html(page)  # type: ignore[attr-defined]


def built() -> list[Path]:
    """The pages of all reports and their pictures, made where they are missing or older than their script."""
    for name in ORDER:
        page = BUILT / f"{name}.html"
        if not page.exists() or page.stat().st_mtime < (SCRIPTS / f"{name}.py").stat().st_mtime:
            run(name, page)
            program = screenshots.browser()
            for scheme in screenshots.SCHEMES.values() if program else ():
                screenshots.take(program, page, scheme, BUILT / f"{name}-{scheme}.png")
    return sorted(each for each in BUILT.iterdir() if each.name.split(".")[0].split("-")[0] in ORDER)


def pages(files: Iterable[str]) -> dict[str, str]:
    """The Markdown of each page, by its path in the site; `files` are the names of those that were built."""
    found = {*files}
    return {INDEX: _index(found)} | {f"gallery/{each.name}.md": _page(each, found) for each in examples()}


def _index(files: set[str]) -> str:
    parts = [
        "# Gallery",
        "Twelve reports of small tasks on data that comes with scikit-learn and with Python. Each page has the script, "
        "which runs as it stands in seconds, and the page that it wrote: sort, filter, zoom, and try it on a phone.",
    ]
    for each in examples():
        parts.append(f"## [{each.title}]({each.name}.md)\n\n{_first_paragraph(each.text)}")
        parts.append(_picture(each, files, f"{each.name}.md"))
    return "\n\n".join(filter(None, parts)) + "\n"


def _page(each: Example, files: set[str]) -> str:
    parts = [
        f"# {each.title}",
        each.text,
        f"[Open the report](reports/{each.name}.html){{ .md-button .md-button--primary }}",
        _picture(each, files, f"reports/{each.name}.html"),
        f"## The script\n\n`examples/gallery/{each.name}.py`; "
        'with `report.to_html("report.html")` behind it, it writes the page.',
        f"```python\n{each.code}\n```",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _picture(each: Example, files: set[str], link: str) -> str:
    """The upper part of the report, light and dark, that leads to a page."""
    shown = {"light": screenshots.SCHEMES["report.png"], "dark": screenshots.SCHEMES["report-dark.png"]}
    names = {theme: f"{each.name}-{scheme}.png" for theme, scheme in shown.items()}
    return "\n".join(
        f"[![The report: {each.title}](reports/{name}#only-{theme}){{ loading=lazy }}]({link})"
        for theme, name in names.items()
        if name in files
    )


def _first_paragraph(text: str) -> str:
    return text.partition("\n\n")[0]


if __name__ == "__main__":
    shutil.rmtree(BUILT, ignore_errors=True)
    print(*built(), sep="\n")
