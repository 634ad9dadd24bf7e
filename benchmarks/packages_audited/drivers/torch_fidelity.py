"""Calls of torch_fidelity."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("torch_fidelity.metric_isc.isc_features_to_metric", noise(20, 5), splits=2)
    yield function("torch_fidelity.metric_fid.fid_features_to_statistics", noise(20, 5))
    yield function(
        "torch_fidelity.metric_kid.kid_features_to_metric",
        noise(20, 5),
        noise(20, 5),
        kid_subsets=2,
        kid_subset_size=10,
    )
    yield function(
        "torch_fidelity.metric_prc.prc_features_to_metric",
        noise(20, 5),
        noise(20, 5),
        prc_neighborhood=2,
        prc_batch_size=10,
    )
