"""Reports that anyone can verify: what a report says of itself, what a table says of it, and what a second run says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.verify.file_level import verify_file as verify_file
    from assay.verify.recount import verify_by_report as verify_by_report
    from assay.verify.recount import verify_recount as verify_recount
    from assay.verify.result import Verification as Verification
    from assay.verify.result import VerificationCheck as VerificationCheck
    from assay.verify.statement import SampleProof as SampleProof
    from assay.verify.statement import prove_sample as prove_sample
    from assay.verify.statement import root_of_samples as root_of_samples
    from assay.verify.statement import statement_of as statement_of

__all__, __getattr__, __dir__ = attach(__name__)
