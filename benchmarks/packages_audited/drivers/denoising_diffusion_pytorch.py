"""Calls of denoising_diffusion_pytorch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, function, named, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("denoising_diffusion_pytorch.classifier_free_guidance.project", noise(2, 3, 4), noise(2, 3, 4))
    yield case(
        "denoising_diffusion_pytorch.GaussianDiffusion",
        lambda: named("denoising_diffusion_pytorch.GaussianDiffusion")(
            named("denoising_diffusion_pytorch.Unet")(dim=8, dim_mults=(1, 2), flash_attn=False),
            image_size=16,
            timesteps=4,
        ),
        (uniform(1, 3, 16, 16),),
    )
    yield case(
        "denoising_diffusion_pytorch.GaussianDiffusion1D",
        lambda: named("denoising_diffusion_pytorch.GaussianDiffusion1D")(
            named("denoising_diffusion_pytorch.Unet1D")(dim=8, dim_mults=(1, 2), channels=3), seq_length=16, timesteps=4
        ),
        (uniform(1, 3, 16),),
    )
