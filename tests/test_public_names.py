"""What is public changes only where the snapshot changes with it."""

from public_names import FILE, lines


def test_public_names_and_signatures_are_those_of_the_snapshot():
    known, found = set(FILE.read_text("utf-8").splitlines()), set(lines())
    gone, new = sorted(known - found), sorted(found - known)
    todo = "Where that is meant: docs/releases.md says how, and `python tests/public_names.py` writes the snapshot"
    assert not gone + new, f"no longer public: {gone}; newly public: {new}. {todo}."
