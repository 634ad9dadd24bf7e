// What runs in which precision under torch.autocast on the devices that an adapter brings to torch: the lists that torch
// keeps for all of them, as torch_npu, torch_mlu and torch_musa take them over, and their ban of binary_cross_entropy.
// MooreThreads/torch_musa torch_musa/csrc/amp/autocast_mode.cpp; Ascend/pytorch torch_npu/csrc/aten/AutoCastOps.cpp.
#include "operators.h"

#include <ATen/autocast_mode.h>

namespace at::autocast {
namespace {

Tensor binary_cross_entropy_banned(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
              "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
              "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
              "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
              "safe to autocast.");
}

template <c10::DeviceType TYPE>
void install(torch::Library& m) {
#define ASSAY_LOWER(...) KERNEL(TYPE, __VA_ARGS__, lower_precision_fp)
#define ASSAY_FP32(...) KERNEL(TYPE, __VA_ARGS__, fp32)
#define ASSAY_FP32_DTYPE(...) KERNEL(TYPE, __VA_ARGS__, fp32_set_opt_dtype)
#define ASSAY_PROMOTE(...) KERNEL(TYPE, __VA_ARGS__, promote)
#define ASSAY_REDISPATCH(...) KERNEL_DIFFERENT_REDISPATCH_SIGNATURE(TYPE, __VA_ARGS__)
  AT_FORALL_LOWER_PRECISION_FP(ASSAY_LOWER)
  AT_FORALL_FP32(ASSAY_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(ASSAY_FP32_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(ASSAY_REDISPATCH)
  AT_FORALL_PROMOTE(ASSAY_PROMOTE)
  m.impl("binary_cross_entropy", binary_cross_entropy_banned);
}

} // namespace
} // namespace at::autocast

namespace assay {

void install_autocast(torch::Library& aten, c10::DeviceType type) {
  type == c10::kHPU ? at::autocast::install<c10::kHPU>(aten) : at::autocast::install<c10::kPrivateUse1>(aten);
}

} // namespace assay
