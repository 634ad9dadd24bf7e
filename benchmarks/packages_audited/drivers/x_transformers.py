"""Calls of x_transformers."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import case, labels, named

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for k in (
        {},
        {"rotary_pos_emb": True},
        {"alibi_pos_bias": True},
        {"rel_pos_bias": True},
        {"use_rmsnorm": True},
        {"ff_glu": True},
        {"attn_num_mem_kv": 2},
        {"attn_talking_heads": True},
        {"dynamic_pos_bias": True, "dynamic_pos_bias_log_distance": False},
        {"rotary_xpos": True},
        {"attn_qk_norm": True},
        {"macaron": True},
        {"sandwich_norm": True},
        {"shift_tokens": 1},
        {"attn_sparse_topk": 2},
        {"residual_attn": True},
        {"resi_dual": True},
        {"attn_data_dependent_alibi": True},
    ):
        yield case(
            f"x_transformers.TransformerWrapper({next(iter(k), '')})",
            lambda k=k: named("x_transformers.TransformerWrapper")(
                num_tokens=10,
                max_seq_len=16,
                attn_layers=named("x_transformers.Decoder")(dim=16, depth=1, heads=2, **k),
            ),
            (labels(10, 2, 8),),
        )
