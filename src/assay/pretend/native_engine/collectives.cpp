// Collectives of torch.distributed: the CPU's, over the same memory. A build for the CPU has torch's own kernels for
// CUDA tensors, but no gloo behind them: they would follow a null pointer.
#include "alias.h"
#include "operators.h"
#include "session.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace assay {
namespace {

using torch::jit::Stack;

// Every tensor of a value, also in lists of lists, changed.
template <typename Change>
c10::IValue changed(const c10::IValue& value, const Change& change) {
  if (value.isTensor()) {
    return change(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor tensor : value.toTensorVector()) {
      list.push_back(change(tensor));
    }
    return list;
  }
  if (value.isList() && value.toList().elementType()->isSubtypeOf(*c10::ListType::ofTensors())) {
    c10::List<c10::List<at::Tensor>> lists;
    for (const c10::IValue& inner : value.toListRef()) {
      lists.push_back(changed(inner, change).toTensorList());
    }
    return lists;
  }
  return value;
}

// torch's own error where the group has no backend for the device, such as gloo for xpu.
void check_backend(const Stack& stack, size_t begin, c10::DeviceType type) {
  for (size_t i = begin; i < stack.size(); ++i) {
    if (stack[i].isCustomClass()) {
      if (const auto group = stack[i].toCustomClass<c10d::ProcessGroup>()) {
        group->getBackend(type);
        return;
      }
    }
  }
}

void collective(const c10::OperatorHandle& op, Stack* stack) {
  const Entered entered;
  const auto name = toString(op.operator_name());
  TORCH_CHECK(session(), "assay: ", name, " was called on a tensor of a pretend device, which is there only inside "
              "`with pretend(...)`");
  const size_t begin = stack->size() - op.schema().arguments().size();
  std::optional<c10::Device> device;
  for (size_t i = begin; i < stack->size(); ++i) {
    changed((*stack)[i], [&](const at::Tensor& tensor) {
      if (!device && tensor.defined() && is_pretended(tensor)) {
        device = tensor.device();
      }
      return tensor;
    });
  }
  const auto there = device.value_or(c10::Device(session()->type, current_index()));
  const Rule& rule = rule_of(op);
  check_available(op, rule.available, rule, there);
  if (rule.available) {
    check_backend(*stack, begin, there.type());
  }
  const at::AutoDispatchBelowADInplaceOrView beneath;
  Aliases aliases;
  for (size_t i = begin; i < stack->size(); ++i) {
    (*stack)[i] = changed((*stack)[i], [&](const at::Tensor& tensor) { return aliases.on_cpu(tensor); });
  }
  op.callBoxed(stack);
  for (size_t i = begin; i < stack->size(); ++i) {
    (*stack)[i] = changed((*stack)[i], [&](const at::Tensor& tensor) { return aliases.on_device(tensor, there, name); });
  }
}

} // namespace

void install_collectives(torch::Library& c10d) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto full = toString(name);
    const auto op = dispatcher.findOp(name);
    if (full.rfind("c10d::", 0) == 0 && op && op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
      c10d.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&collective>());
    }
  }
}

} // namespace assay
