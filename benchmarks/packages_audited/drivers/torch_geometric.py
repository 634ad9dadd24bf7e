"""Calls of torch_geometric."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import Net, case, function, instance, labels, named, noise

from assay.audit import Case


def graph(name, *more, **kw):
    return instance(f"torch_geometric.nn.{name}", noise(4, 3), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), *more, **kw)


def transform(name, **kw):

    def run(m, x, e, pos):
        data = named("torch_geometric.data.Data")(x=x, edge_index=e, pos=pos)
        out = named(f"torch_geometric.transforms.{name}")(**kw)(data)
        return {k: v for k, v in out.to_dict().items() if isinstance(v, torch.Tensor)}

    return case(
        f"torch_geometric.transforms.{name}",
        lambda: Net(torch.nn.Identity, run),
        (noise(4, 3), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), noise(4, 3)),
    )


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n, k in (
        ("GCNConv", {"in_channels": 3, "out_channels": 2}),
        ("GATConv", {"in_channels": 3, "out_channels": 2}),
        ("GATv2Conv", {"in_channels": 3, "out_channels": 2}),
        ("SAGEConv", {"in_channels": 3, "out_channels": 2}),
        ("ChebConv", {"in_channels": 3, "out_channels": 2, "K": 2}),
        ("TAGConv", {"in_channels": 3, "out_channels": 2}),
        ("ARMAConv", {"in_channels": 3, "out_channels": 2}),
        ("SGConv", {"in_channels": 3, "out_channels": 2}),
        ("APPNP", {"K": 2, "alpha": 0.1}),
        ("TransformerConv", {"in_channels": 3, "out_channels": 2}),
        ("GraphConv", {"in_channels": 3, "out_channels": 2}),
        ("LEConv", {"in_channels": 3, "out_channels": 2}),
        ("ClusterGCNConv", {"in_channels": 3, "out_channels": 2}),
        ("FAConv", None),
        ("GENConv", {"in_channels": 3, "out_channels": 2}),
        ("SuperGATConv", {"in_channels": 3, "out_channels": 2}),
        ("EGConv", {"in_channels": 3, "out_channels": 4, "num_heads": 2}),
        ("PDNConv", None),
        ("AntiSymmetricConv", {"in_channels": 3}),
        ("DirGNNConv", None),
        ("LGConv", {}),
        ("MFConv", {"in_channels": 3, "out_channels": 2}),
        ("ResGatedGraphConv", {"in_channels": 3, "out_channels": 2}),
        ("FeaStConv", {"in_channels": 3, "out_channels": 2}),
        ("FiLMConv", {"in_channels": 3, "out_channels": 2}),
        ("GatedGraphConv", {"out_channels": 4, "num_layers": 2}),
        ("HypergraphConv", {"in_channels": 3, "out_channels": 2}),
        ("LabelPropagation", None),
        ("TopKPooling", {"in_channels": 3}),
        ("SAGPooling", {"in_channels": 3}),
        ("ASAPooling", {"in_channels": 3}),
        ("EdgePooling", None),
        ("PANPooling", None),
        ("SSGConv", {"in_channels": 3, "out_channels": 2, "alpha": 0.1}),
    ):
        if k is not None:
            yield graph(n, **k)
    for n in (
        "AddSelfLoops",
        "NormalizeFeatures",
        "LocalDegreeProfile",
        "Distance",
        "Cartesian",
        "Polar",
        "Spherical",
        "LocalCartesian",
        "KNNGraph",
        "RadiusGraph",
        "FaceToEdge",
        "Center",
        "NormalizeRotation",
        "NormalizeScale",
        "RandomJitter",
        "RandomFlip",
        "RandomScale",
        "RandomRotate",
        "RandomShear",
        "GridSampling",
        "FixedPoints",
        "ToDense",
        "OneHotDegree",
        "TargetIndegree",
        "VirtualNode",
        "RandomLinkSplit",
        "RandomNodeSplit",
        "AddRandomWalkPE",
        "AddLaplacianEigenvectorPE",
        "LargestConnectedComponents",
        "GDC",
        "SIGN",
        "GCNNorm",
        "LineGraph",
        "ToUndirected",
        "RemoveIsolatedNodes",
        "HalfHop",
        "Constant",
        "SVDFeatureReduction",
        "RemoveDuplicatedEdges",
        "PadNodes",
        "TwoHop",
        "FeaturePropagation",
        "Pad",
        "RootedRWSubgraph",
        "LaplacianLambdaMax",
    ):
        kw = {
            "RandomJitter": {"translate": 0.1},
            "RandomFlip": {"axis": 0},
            "RandomScale": {"scales": (0.9, 1.1)},
            "RandomRotate": {"degrees": 10},
            "RandomShear": {"shear": 0.1},
            "FixedPoints": {"num": 3},
            "ToDense": {"num_nodes": 6},
            "OneHotDegree": {"max_degree": 3},
            "AddRandomWalkPE": {"walk_length": 2},
            "AddLaplacianEigenvectorPE": {"k": 1},
            "SIGN": {"K": 2},
            "SVDFeatureReduction": {"out_channels": 2},
            "RandomLinkSplit": None,
            "FaceToEdge": None,
            "PadNodes": None,
            "FeaturePropagation": None,
            "Pad": {"max_num_nodes": 6},
            "RootedRWSubgraph": None,
            "KNNGraph": None,
            "RadiusGraph": None,
            "RandomNodeSplit": {"num_val": 1, "num_test": 1},
            "GridSampling": None,
        }.get(n, {})
        if kw is None:
            continue
        yield transform(n, **kw)
    for n, a, k in (
        ("dense_to_sparse", (torch.eye(4),), {}),
        ("to_dense_adj", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        ("dropout_edge", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        ("dropout_node", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        ("dropout_path", None, {}),
        ("negative_sampling", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        (
            "batched_negative_sampling",
            (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), torch.zeros(4, dtype=torch.long)),
            {},
        ),
        ("structured_negative_sampling", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        ("shuffle_node", (noise(4, 3),), {}),
        ("mask_feature", (noise(4, 3),), {}),
        ("add_random_edge", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {"p": 0.5}),
        ("k_hop_subgraph", (1, 1, torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])), {}),
        ("subgraph", (torch.tensor([0, 1]), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])), {}),
        ("get_laplacian", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        ("softmax", (noise(4), torch.tensor([0, 0, 1, 1])), {}),
        ("to_dense_batch", (noise(4, 3), torch.tensor([0, 0, 1, 1])), {}),
        ("homophily", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), labels(2, 4)), {}),
        ("assortativity", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        ("tree_decomposition", None, {}),
        ("random_walk", None, {}),
        ("to_undirected", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        ("spmm", None, {}),
        ("one_hot", (labels(3, 4),), {}),
        ("group_argsort", (noise(4), torch.tensor([0, 0, 1, 1])), {}),
        ("ppr", None, {}),
        ("get_ppr", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        ("dropout_adj", None, {}),
        ("is_undirected", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        ("remove_self_loops", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        ("normalize_edge_index", (torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),), {}),
        ("map_index", (torch.tensor([2, 0, 1]), torch.tensor([0, 1, 2])), {}),
        ("train_test_split_edges", None, {}),
        ("stochastic_blockmodel_graph", (torch.tensor([3, 3]), torch.tensor([[0.5, 0.1], [0.1, 0.5]])), {}),
        ("erdos_renyi_graph", None, {}),
    ):
        if a is not None:
            yield function(f"torch_geometric.utils.{n}", *a, **k)
