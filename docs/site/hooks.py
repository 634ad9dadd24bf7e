"""Additions to mkdocs: pages of the reference, of files beside the documentation, and formulas as MathML."""

from __future__ import annotations

import html
import json
import posixpath
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

import assay

sys.path.insert(0, str(Path(__file__).parent))
import gallery
import languages
import metric_pages
import pictures
import reference

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "README.zh-CN.md": "index.zh-CN.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Files at the root of the repository that are pages of the site."""
OUTSIDE = re.compile(r"\]\(((?:\.\./)+[^)#]+)")
PATH_AS_TEXT = re.compile(r"\[((?:docs/)?[\w/]+\.md)\]\(([\w./-]+\.md(?:#[^)]*)?)(?=\))")
LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml"}

_BOOSTS = {"source/": 0.2, "upstream/": 0.4, "changelog": 0.4, "contributing": 0.4, "zh/": 0.3, "index.zh": 0.3}
"""For what the path of a page begins with: its weight in the search."""
_FOLLOW_THE_SYSTEM = (
    'try{__md_get("__palette")||__md_set("__palette",{index:0,color:{media:"(prefers-color-scheme)"}})}catch(e){}'
)
"""Chooses the first palette before a page is drawn, so that a dark system sees no light page first."""


def on_config(config: Any) -> Any:
    """Put the reference into the navigation, the version below each page, and give headings GitHub's anchors."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = anchor
    generated = {"Reference": reference.navigation([*reference.pages(), metric_pages.INDEX])}
    config.nav = [generated if each == "Reference" else each for each in config.nav]
    config.copyright = f"assay {assay.__version__}, Apache-2.0"
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the reference, the catalogue, the gallery, files of the root, and a page for each linked file elsewhere."""
    texts = {page: _from_root((ROOT / name).read_text("utf-8")) for name, page in PAGES.items()}
    picture = cache(pictures.picture)
    texts |= reference.pages() | {"catalogue.md": reference.catalogue_page(picture)} | metric_pages.pages(picture)
    reports = gallery.built()
    texts |= gallery.pages(each.name for each in reports)
    written = {page.src_path: page.content_string for page in files.documentation_pages()}
    for name, text in (written | texts).items():
        for link in OUTSIDE.findall(text):
            if path := _repository_path(name, link):
                texts[_page_of(path)] = texts.get(_page_of(path)) or _source(ROOT / path)
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "site/inks.css", content=_inks()))
    for report in reports:
        files.append(File.generated(config, f"gallery/reports/{report.name}", abs_src_path=str(report)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Lead links out of the documentation to the pages of these files; a link whose text is a file gets its title."""
    here = page.file.src_path
    page.meta.setdefault("search", {"boost": search_boost(here)})
    markdown = metric_pages.linked(markdown, here)
    markdown = PATH_AS_TEXT.sub(lambda link: f"[{_title(files, here, link[2]) or link[1]}]({link[2]}", markdown)

    def inside(match: re.Match[str]) -> str:
        path = _repository_path(here, match[1])
        return f"]({'../' * here.count('/')}{_page_of(path)}" if path else match[0]

    return OUTSIDE.sub(inside, markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Formulas as MathML, which browsers show without a script."""

    def mathml(match: re.Match[str]) -> str:
        return convert(html.unescape(match[2]), display="block" if match[1] == "div" else "inline")

    return re.sub(r'<(div|span) class="arithmatex">\\[\[(](.*?)\\[\])]</\1>', mathml, content, flags=re.DOTALL)


def on_page_context(context: Any, page: Any, config: Any, nav: Any) -> Any:
    """The page in its language: the words of the theme, the navigation, and a switch to the other language."""
    here = page.file.src_path
    urls = {each.file.src_path: each.url for each in [*nav.pages, page]}  # a page of a metric is not in `nav`
    config.theme["language"] = languages.language(here)
    config.extra["alternate"] = languages.alternates(here, urls)
    context["nav"] = languages.navigation(nav, here)
    for neighbour in ("previous_page", "next_page"):
        other = getattr(page, neighbour)
        if other and languages.language(other.file.src_path) != languages.language(here):
            setattr(page, neighbour, None)
    return context


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The page in the colours of the system, if a browser loads all of it from the site itself.

    Raises:
        PluginError: the page loads something from the network.
    """
    if loaded := re.findall(r'<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)="((?:https?:)?//[^"]+)', output):
        raise PluginError(f"{page.file.src_path} loads {loaded[0]} from the network: put a copy into docs")
    output = languages.without_links_in_head(output)
    return output.replace("</head>", f"<script>{_FOLLOW_THE_SYSTEM}</script></head>", 1)


def search_boost(page: str) -> float:
    """How much the search prefers a page: code and lists less than pages that explain, English to its translation.

    A query in Chinese finds Chinese pages all the same, as no other page has its words.
    """
    return next((boost for start, boost in _BOOSTS.items() if page.startswith(start)), 1.0)


def anchor(title: str, separator: str) -> str:
    """The anchor that GitHub gives a heading; unlike `\\w`, it has no superscripts."""
    return re.sub(r"[^\w -]", "", title.lower().replace("²", "")).replace(" ", separator)


def _inks() -> str:
    """The colours of plots on light and on dark pages, which are those of the pages that reports are written to."""
    css = (ROOT / "src" / "assay" / "render" / "page" / "page.css").read_text("utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    return f".picture {{{light}}}\n[data-md-color-scheme='slate'] .picture {{{dark}}}\n"


def _title(files: Any, page: str, link: str) -> str:
    """The first heading of the page that a link leads to; nothing for other links."""
    target = files.get_file_from_path(
        posixpath.normpath(posixpath.join(posixpath.dirname(page), link.partition("#")[0]))
    )
    found = re.search(r"^# (.*)", target.content_string, re.MULTILINE) if target else None
    return found[1] if found else ""


def _from_root(text: str) -> str:
    """A page whose links start at the root of the repository, with links that start in the documentation."""

    def link(match: re.Match[str]) -> str:
        return f"]({match[1].removeprefix('docs/') if match[1].startswith('docs/') else '../' + match[1]})"

    return re.sub(r"\]\((?!\w+://|#)([^)]+)\)", link, text)


def _repository_path(page: str, link: str) -> str:
    """The path in the repository that a link of a page leads to, if that is outside of the documentation."""
    target = (ROOT / "docs" / page).parent.joinpath(link).resolve()
    is_page = target.is_relative_to(ROOT / "docs") or not target.exists()
    return "" if is_page else target.relative_to(ROOT).as_posix()


def _page_of(path: str) -> str:
    return PAGES.get(path, f"source/{path}.md")


def _source(path: Path) -> str:
    """A page with a file, with all files of a folder, or with the cells of a notebook."""
    if path.suffix == ".ipynb":
        return "\n\n".join(_cell(cell) for cell in json.loads(path.read_text("utf-8"))["cells"])
    files = sorted(path.glob("*.*")) if path.is_dir() else [path]
    blocks = (
        f"`{each.name}`\n\n````{LANGUAGES.get(each.suffix, 'text')}\n{each.read_text('utf-8')}\n````" for each in files
    )
    return "\n\n".join([f"# {path.relative_to(ROOT).as_posix()}", *blocks])


def _cell(cell: Mapping[str, Any]) -> str:
    """A cell of a notebook as Markdown, with what it printed and drew."""
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return text
    parts = [f"```python\n{text}\n```"]
    for output in cell["outputs"]:
        if picture := output.get("data", {}).get("image/png"):
            parts.append(f"![](data:image/png;base64,{''.join(picture).strip()})")
        else:
            parts.append(f"```text\n{''.join(output['text'])}```")
    return "\n\n".join(parts)
