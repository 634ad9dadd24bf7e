"""Calls of vit_pytorch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import Net, case, named, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    img = uniform(1, 3, 32, 32)
    common = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16}
    for m, n in (
        ("vit", "ViT"),
        ("simple_vit", "SimpleViT"),
        ("deepvit", "DeepViT"),
        ("parallel_vit", "ViT"),
        ("vit_for_small_dataset", "ViT"),
        ("rvt", "RvT"),
        ("learnable_memory_vit", "ViT"),
        ("simple_vit_with_patch_dropout", "SimpleViT"),
        ("simple_vit_with_register_tokens", "SimpleViT"),
        ("simple_vit_with_qk_norm", "SimpleViT"),
        ("simple_vit_with_value_residual", "SimpleViT"),
        ("simple_vit_with_hyper_connections", "SimpleViT"),
        ("simple_vit_with_fft", "SimpleViT"),
        ("normalized_vit", "nViT"),
        ("jumbo_vit", "JumboViT"),
        ("local_vit", "LocalViT"),
        ("ats_vit", "ViT"),
        ("cait", "CaiT"),
        ("scalable_vit", "ScalableViT"),
    ):
        kw = dict(common)
        if m == "ats_vit":
            kw["max_tokens_per_depth"] = (8,)
        if m == "cait":
            kw["cls_depth"] = 1
        if m == "simple_vit_with_fft":
            kw["freq_patch_size"] = 8
        if m == "normalized_vit":
            kw = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16}
        if m == "jumbo_vit":
            kw.update(num_jumbo_cls=1, jumbo_cls_k=2, jumbo_ff_mult=2)
        if m == "scalable_vit":
            continue
        yield case(f"vit_pytorch.{m}.{n}", lambda m=m, n=n, kw=kw: named(f"vit_pytorch.{m}.{n}")(**kw), (img,))
    yield case(
        "vit_pytorch.na_vit.NaViT",
        lambda: Net(lambda: named("vit_pytorch.na_vit.NaViT")(**common), lambda m, x: m([list(x)])),
        (img,),
    )
    yield case(
        "vit_pytorch.mae.MAE",
        lambda: named("vit_pytorch.mae.MAE")(encoder=named("vit_pytorch.vit.ViT")(**common), decoder_dim=8),
        (img,),
    )
    yield case(
        "vit_pytorch.simmim.SimMIM",
        lambda: named("vit_pytorch.simmim.SimMIM")(encoder=named("vit_pytorch.vit.ViT")(**common), masking_ratio=0.5),
        (img,),
    )
    yield case(
        "vit_pytorch.mpp.MPP",
        lambda: named("vit_pytorch.mpp.MPP")(transformer=named("vit_pytorch.vit.ViT")(**common), patch_size=8, dim=16),
        (img,),
    )
    yield case(
        "vit_pytorch.mp3.MP3",
        lambda: named("vit_pytorch.mp3.MP3")(
            vit=named("vit_pytorch.mp3.ViT")(
                num_classes=5, image_size=32, patch_size=8, dim=16, depth=1, heads=2, mlp_dim=16
            ),
            masking_ratio=0.5,
        ),
        (img,),
    )
