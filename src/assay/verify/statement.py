"""A verified report as an in-toto Statement, which can be signed, and proofs of single samples.

Which field of a report becomes which field of a statement is said here alone: the predicate is a proposal, and moves.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from assay._atomic import reading
from assay._records import encode
from assay.errors import ConfigError, StateError, describe
from assay.report import Report, Samples, Section
from assay.verify.merkle import merkle_path, merkle_root, root_of_path
from assay.verify.result import Verification

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/eval-result/v0.1"
"""As https://github.com/in-toto/attestation/pull/575 has it on 28 September 2026; it is a proposal."""


def statement_of(
    report: Report, file: Path, verification: Verification, evaluator: str, subject: Path | None = None
) -> dict[str, Any]:
    """The statement of a report that was verified.

    Each value becomes two claims, `>=` and `<=` the value, as the predicate knows thresholds alone. `evidence` has the
    report with its SHA-256, and the Merkle root over its samples.

    Args:
        report: the report, of one section.
        file: the file that it was read from, or its folder.
        verification: what `assay verify` found of it.
        evaluator: a URI of who ran the evaluation.
        subject: the artifact that the statement is about, such as a file of weights; the report by default.

    Returns:
        The statement, ready for `json.dumps`.

    Raises:
        StateError: the verification did not pass; or the report says of its model, data or values too little.
        ConfigError: `evaluator` is no URI.

    Source: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md.
    """
    if verification.outcome != "pass":
        do = "Verify it with --data or --model, or correct what fails; a statement is made of what holds"
        raise StateError(describe(str(file), f"a verification that ends with: {verification.outcome}", "a pass", do))
    if ":" not in evaluator or evaluator != evaluator.strip():
        do = "Write who ran the evaluation, such as https://example.org/team"
        raise ConfigError(describe("evaluator", repr(evaluator), "a URI", do))
    (section,) = report.sections if len(report.sections) == 1 else (None,)
    if section is None:
        do = "Make a report of one evaluation"
        raise StateError(describe(str(file), f"{len(report.sections)} sections", "one", do))
    own = _of_file(file / "report.json" if file.is_dir() else file) | {"mediaType": "application/json"}
    artifact = _of_file(subject) if subject else None
    evidence = [own, *([_samples(section.samples)] if section.samples is not None else [])]
    predicate = {
        "evaluator": {"id": evaluator},
        "evaluatedAt": report.created,
        "suite": {"name": report.title or section.name, "version": _commit(report)},
        "claims": _claims(section, file),
        "sampleSize": section.counts.rows if section.counts else max(each.count or 0 for each in section.values),
        "model": artifact or _model(report, file),
        "dataset": _dataset(report, section, file),
        "assuranceLevel": "reproduced" if _was_reproduced(verification) else "self_attested",
        "subjectProfile": "public-model" if artifact else "receipt",
        "evidence": evidence,
        "harness": {"name": "assay", "version": report.environment.get("assay", "")},
    }
    return {
        "_type": STATEMENT,
        "subject": [{name: each for name, each in (artifact or own).items() if name in ("name", "digest")}],
        "predicateType": PREDICATE,
        "predicate": predicate,
    }


@dataclass(frozen=True)
class SampleProof:
    """That a sample is among those of a Merkle root.

    Attributes:
        entry: the sample as JSON, as it was hashed: its id, target, decision and what it contributes.
        index: its place.
        count: how many samples there are.
        path: the hashes that make the root of it, from the leaves up.
    """

    entry: bytes
    index: int
    count: int
    path: tuple[bytes, ...]

    def holds(self, root: str) -> bool:
        """Whether it is a proof for the root, in hexadecimal."""
        found = root_of_path(self.entry, self.index, self.count, self.path)
        return found is not None and found.hex() == root.lower()


def prove_sample(samples: Samples, id: int | str) -> SampleProof:
    """Prove that a sample is among those of a report, without showing the others.

    Args:
        samples: those of a section.
        id: the sample.

    Raises:
        ConfigError: there is no such sample.

    Example:
        >>> from assay.report import Samples
        >>> samples = Samples.pack(["a", "b", "c"], {"correct": [True, False, True]})
        >>> proof = prove_sample(samples, "b")
        >>> proof.entry, proof.holds(root_of_samples(samples))
        (b'{"correct":false,"id":"b"}', True)
    """
    ids = list(map(str, samples.ids.values.tolist()))
    if str(id) not in ids:
        raise ConfigError(describe("id", repr(id), f"one of the {len(ids)} samples", "Take an id of the report"))
    entries, index = list(_entries(samples)), ids.index(str(id))
    return SampleProof(entries[index], index, len(entries), tuple(merkle_path(entries, index)))


def root_of_samples(samples: Samples) -> str:
    """The Merkle root over the samples, in hexadecimal."""
    return merkle_root(_entries(samples)).hex()


def _entries(samples: Samples) -> Iterator[bytes]:
    """Each sample as JSON with sorted names: the same bytes wherever the report is read."""
    series = {"id": samples.ids, "target": samples.target, "decision": samples.decision}
    named = {name: each.values.tolist() for name, each in series.items() if each is not None}
    named |= {each.name: each.values.values.tolist() for each in samples.columns}
    for row in zip(*named.values(), strict=True):
        entry = {name: encode(value) for name, value in zip(named, row, strict=True)}
        yield json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _samples(samples: Samples) -> dict[str, Any]:
    root = root_of_samples(samples)
    return {"name": "samples", "digest": {"assay-merkle-sha256": root}, "annotations": {"count": len(samples)}}


def _of_file(path: Path) -> dict[str, Any]:
    with reading(path, "a file whose bytes are hashed", "Check the path"), path.open("rb") as opened:
        return {"name": path.name, "digest": {"sha256": hashlib.file_digest(opened, "sha256").hexdigest()}}


def _claims(section: Section, file: Path) -> list[dict[str, Any]]:
    known = {value.signature or value.name: value.value for value in section.values if math.isfinite(value.value)}
    if not known:
        raise StateError(describe(str(file), "no value that is a number", "one or more", "Measure a metric"))
    return [
        {"metric": name, "comparator": comparator, "threshold": format(Decimal(repr(value)), "f"), "passed": True}
        for name, value in known.items()
        for comparator in (">=", "<=")
    ]


def _model(report: Report, file: Path) -> dict[str, Any]:
    if report.origin is None or not report.origin.model:
        do = "Name its file with --subject, such as model.safetensors"
        raise StateError(describe(str(file), "no digest of the model", "one", do))
    return {"name": "parameters and buffers", "digest": {"assay-weights-sha256": report.origin.model}}


def _dataset(report: Report, section: Section, file: Path) -> dict[str, Any]:
    """The data by the digest of its file; of several files or none by that of their names or of the targets."""
    named = dict(report.origin.data) if report.origin is not None else {}
    if len(named) == 1 and (digest := next(iter(named.values()))).startswith("sha256:"):
        return {"name": next(iter(named)), "digest": {"sha256": digest.partition(":")[2]}}
    if named:
        lines = "".join(f"{name} {digest}\n" for name, digest in sorted(named.items()))
        return {"name": "files", "digest": {"assay-files-sha256": hashlib.sha256(lines.encode()).hexdigest()}}
    if section.samples is None or section.samples.target is None:
        do = "Keep samples (keep_samples=True), or measure on data in a file"
        raise StateError(describe(str(file), "no digest of the data, and no targets", "one of the two", do))
    targets = Samples(section.samples.ids, target=section.samples.target)
    return {"name": "targets", "digest": {"assay-merkle-sha256": root_of_samples(targets)}}


def _commit(report: Report) -> str:
    return (report.origin.commit if report.origin is not None else "") or "unknown"


def _was_reproduced(verification: Verification) -> bool:
    return any(
        each.level == "rerun" and each.what == "values" and each.outcome == "pass" for each in verification.checks
    )
