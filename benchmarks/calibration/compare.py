"""Say line by line where two devices agree: two files of `probe`, or one file and what PyTorch's tests expect.

python -m benchmarks.calibration.compare real.json pretend.json
python -m benchmarks.calibration.compare pretend.json
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
EXPECTED = Path(__file__).with_name("expected.toml")
VERDICTS = {
    "agree": "the same",
    "other text": "an error of the same class with another text",
    "disagree": "something else",
    "unknown": "one of the two does not say",
}


def verdict(real: Answer, found: Answer) -> str:
    """How the answer of one device compares with that of another."""
    if "unknown" in real or "unknown" in found:
        return "unknown"
    if "waits" in real or "waits" in found:
        return "agree" if real.get("waits") == found.get("waits") else "disagree"
    if "error" in real or "error" in found:
        if real.get("error") != found.get("error"):
            return "disagree"
        return "agree" if _plain(real["text"]) == _plain(found["text"]) else "other text"
    return "agree" if real["value"] == found["value"] else "disagree"


def _plain(text: str) -> str:
    """Addresses differ from run to run."""
    return re.sub(r"0x[0-9a-f]+", "0x…", text).strip()


def compare(real: dict[str, Answer], found: dict[str, Answer]) -> list[tuple[str, str, str]]:
    """Verdict, question and both answers, for every question that both were asked."""
    missing = {"unknown": "not asked"}
    names = [*real, *(name for name in found if name not in real)]
    rows = []
    for name in names:
        a, b = real.get(name, missing), found.get(name, missing)
        rows.append((verdict(a, b), name, f"{say(a)} | {say(b)}"))
    return rows


def say(answer: Answer) -> str:
    """An answer in one line."""
    if "error" in answer:
        return f"{answer['error']}: {answer['text'][:160]}"
    if "waits" in answer:
        return f"waits {answer['times']} times" if answer["waits"] else "does not wait"
    return str(answer.get("value", answer.get("unknown")))


def against_tests(found: dict[str, Answer], device: str) -> list[tuple[str, str, str]]:
    """The same for what PyTorch's tests expect of this kind of device."""
    rows = []
    for one in tomllib.loads(EXPECTED.read_text("utf-8"))["expected"]:
        if device.split(":")[0] not in one["devices"]:
            continue
        for name, kind, value in _wanted(one):
            answer = found.get(name)
            rows.append((_met(kind, value, answer, device), name, _both(kind, value, answer, one["source"])))
    return rows


def _wanted(one: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = [(f"waits: {name}", "waits", "yes") for name in one.get("waits", ())]
    found += [(f"waits: {name}", "waits", "no") for name in one.get("no_wait", ())]
    found += [(name, "raises", text) for name, text in one.get("raises", {}).items()]
    return found + [(name, "value", text) for name, text in one.get("values", {}).items()]


def _met(kind: str, value: str, answer: Answer | None, device: str) -> str:
    if answer is None:
        return "unknown"
    if kind == "waits":
        return "agree" if answer.get("waits") is (value == "yes") else "disagree"
    if kind == "raises":
        if "error" not in answer:
            return "disagree"
        return "agree" if value in answer["text"] else "other text"
    return "agree" if value.replace("DEVICE", device) in str(answer.get("value")) else "disagree"


def _both(kind: str, value: str, answer: Answer | None, source: str) -> str:
    told = "not asked" if answer is None else say(answer)
    return f"{kind} {value} | {told} ({source})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--all", action="store_true", help="agreement, too")
    asked = parser.parse_args()
    files = [json.loads(file.read_text("utf-8")) for file in asked.files[:2]]
    if len(files) == 2:
        rows = compare(files[0]["answers"], files[1]["answers"])
    else:
        rows = against_tests(files[0]["answers"], files[0]["about"]["device"])
    for one in files:
        print("#", one["about"])
    for kind, name, answers in rows:
        if asked.all or kind not in ("agree", "unknown"):
            print(f"{kind:10} {name}: {answers}")
    print("#", dict(Counter(kind for kind, _, _ in rows)))
    return 1 if any(kind == "disagree" for kind, _, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
