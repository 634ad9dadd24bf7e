"""docs/formats.md has each format that the code writes, in its version."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
_NAMED = re.compile(r"""(?:schema=|SCHEMA = |OLDER = .*)["'](assay\.[a-z-]+/\d+)["']""")
_NUMBERED = {
    "meter/file.py": r"^SCHEMA = (\d+)",
    "scoring/part_files.py": r"^SCHEMA = (\d+)",
    "quantize/files/description.py": r"^VERSION = (\d+)",
}


def test_each_saved_format_stands_on_the_page_in_its_version():
    page = (ROOT / "docs" / "formats.md").read_text("utf-8")
    sources = {path: path.read_text("utf-8") for path in (ROOT / "src" / "assay").rglob("*.py")}
    named = {name for text in sources.values() for name in _NAMED.findall(text)}
    assert len(named) > 12
    assert set(re.findall(r"`(assay\.[a-z-]+/\d+)`", page)) == named
    rows = {"meter/file.py": "`assay.meter`, schema ", "scoring/part_files.py": "`assay.partial`, schema "}
    for file, pattern in _NUMBERED.items():
        (version,) = re.findall(pattern, sources[ROOT / "src" / "assay" / file], re.MULTILINE)
        assert f"| {rows.get(file, '`assay.quantized`, version ')}{version} |" in page
