"""The names of torchvision's compiled operators, so that its wheel for CUDA can be imported beside a torch for the CPU.

``torchvision`` registers shapes and gradients for its operators when it is imported, which torch refuses where the
compiled library could not be loaded. Here the operators have names and arguments; nms alone can be called.
"""

from __future__ import annotations

import torch

SCHEMAS = """
nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor
qroi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio, bool aligned) -> Tensor
_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor
roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)
_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor
ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)
_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor
ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)
_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor
deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor
_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)
""".strip().splitlines()  # noqa: E501 - as torchvision's C++ declares them

_library = torch.library.Library("torchvision", "DEF")


def _nms(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Indices of the boxes that overlap no box of a higher score by more than the threshold."""
    order, kept = scores.cpu().argsort(descending=True), []
    boxes_here = boxes.cpu()
    while len(order):
        kept.append(order[0])
        first, rest = boxes_here[order[0]], boxes_here[order[1:]]
        sides = (torch.minimum(first[2:], rest[:, 2:]) - torch.maximum(first[:2], rest[:, :2])).clamp(min=0)
        overlap = sides.prod(1)
        union = (first[2:] - first[:2]).prod() + (rest[:, 2:] - rest[:, :2]).prod(1) - overlap
        order = order[1:][overlap / union <= threshold]
    return torch.stack(kept).to(boxes.device) if kept else torch.zeros(0, dtype=torch.int64, device=boxes.device)


def define() -> None:
    """Define the operators, once; before torchvision is imported."""
    if not hasattr(torch.ops.torchvision, "nms"):
        for schema in SCHEMAS:
            _library.define(schema)
        _library.impl("nms", _nms, "CompositeExplicitAutograd")
