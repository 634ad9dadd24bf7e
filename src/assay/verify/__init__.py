"""Reports that anyone can verify: what a report says of itself, what a table says of it, and what a second run says."""

from __future__ import annotations

from assay.verify.file_level import verify_file
from assay.verify.recount import verify_by_report, verify_recount
from assay.verify.result import Verification, VerificationCheck
from assay.verify.statement import SampleProof, prove_sample, root_of_samples, statement_of

__all__ = [
    "SampleProof",
    "Verification",
    "VerificationCheck",
    "prove_sample",
    "root_of_samples",
    "statement_of",
    "verify_by_report",
    "verify_file",
    "verify_recount",
]
