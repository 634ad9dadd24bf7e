"""What the file of a device check says of itself: its digest, and that no check is missing."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import suppress

from assay._records import read_text
from assay.conformance.checks import TRITON, checks_for
from assay.conformance.outcomes import expectations
from assay.conformance.result import DeviceCheck
from assay.errors import StateError
from assay.verify.result import VerificationCheck

SHOWN = 3


def is_device_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is one of ``assay devices --check``, of any version."""
    with suppress(LookupError, TypeError, ValueError, OSError):
        return str(json.loads(read_text(path))["schema"]).startswith("assay.device-check/")
    return False


def verify_device_file(path: str | os.PathLike[str]) -> tuple[str, list[VerificationCheck]]:
    """Check the file of a device check against itself.

    Args:
        path: the file.

    Returns:
        What the file is of; and what was checked.
    """
    try:
        found = DeviceCheck.load(path)
    except StateError as error:
        return str(path), [VerificationCheck("file", "schema and digest", "fail", str(error))]
    whole = VerificationCheck("file", "schema and digest", "pass")
    title = f"{found.device}, {found.how}: {found.outcome}"
    return title, [whole, _all_checks(found), _outcome(found)]


def _all_checks(found: DeviceCheck) -> VerificationCheck:
    what = "every check is there, once"
    if found.expected_of.get("digest") != expectations().digest:
        why = "another version of assay made it, with other expectations"
        return VerificationCheck("file", what, "not checked", why, is_needed=True)
    names = Counter(f"{each.kind}: {each.name}" for each in found.outcomes)
    wanted = {str(check) for check in checks_for(found.device)}
    doubled = {name for name, count in names.items() if count > 1}
    odd = sorted((doubled | (wanted ^ names.keys())) - {TRITON})  # which only builds for CUDA check
    text = f"{len(odd):,} are not: {'; '.join(odd[:SHOWN])}" if odd else f"{names.total():,} checks"
    return VerificationCheck("file", what, "fail" if odd else "pass", text)


def _outcome(found: DeviceCheck) -> VerificationCheck:
    what = "the device does what is expected"
    if found.differing:
        text = "; ".join(f"{each.kind}: {each.name}" for each in found.differing[:SHOWN])
        return VerificationCheck("file", what, "fail", f"{len(found.differing):,} differ: {text}")
    if found.how == "pretended":
        why = "the device is PRETENDED: this says nothing of a real one"
        return VerificationCheck("file", what, "not checked", why, is_needed=True)
    if found.outcome != "holds":
        return VerificationCheck("file", what, "not checked", "a kind of check was not seen", is_needed=True)
    return VerificationCheck("file", what, "pass", f"{found.name}; {found.machine['system']}")
