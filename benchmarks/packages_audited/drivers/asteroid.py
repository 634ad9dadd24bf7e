"""Calls of asteroid."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import function, instance, labels, noise, uniform

from assay.audit import Case


def spd():
    x = noise(2, 3, 3)
    return torch.complex(x @ x.mT + 3 * torch.eye(3), torch.zeros(2, 3, 3))


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("asteroid.dsp.spatial.xcorr", noise(2, 2, 64), noise(2, 2, 32))
    yield function("asteroid.dsp.beamforming.compute_scm", torch.complex(noise(2, 2, 5, 6), noise(2, 2, 5, 6)))
    yield function("asteroid.losses.cluster.deep_clustering_loss", noise(2, 20, 4), labels(3, 2, 4, 5))
    yield instance("asteroid.losses.SingleSrcMultiScaleSpectral", noise(2, 2000), noise(2, 2000))
    yield instance("asteroid.losses.SingleSrcPMSQE", uniform(1, 10, 257), uniform(1, 10, 257))
    yield instance("asteroid.masknn.tac.TAC", noise(2, 3, 8, 4, 5), input_dim=8, hidden_dim=6)
    yield function("asteroid.dsp.beamforming.stable_solve", spd(), spd())
    yield function("asteroid.dsp.beamforming.stable_cholesky", spd())
    yield function("asteroid.dsp.beamforming.generalized_eigenvalue_decomposition", spd(), spd())
    for n in (
        "SCMBeamformer",
        "MVDRBeamformer",
        "SDWMWFBeamformer",
        "GEVBeamformer",
        "GEVDBeamformer",
        "RTFMVDRBeamformer",
    ):
        if n in ("SCMBeamformer", "RTFMVDRBeamformer"):
            continue
        c = torch.complex(noise(1, 2, 5, 6), noise(1, 2, 6, 5).mT)
        scm = torch.einsum("bmft,bnft->bmnf", c, c.conj()) + torch.eye(2)[None, :, :, None]
        yield instance(f"asteroid.dsp.beamforming.{n}", c, scm, scm)
