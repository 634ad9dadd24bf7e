// What a real device would refuse, in its own words, and what synchronizes with it. Events first, errors after.
#include "session.h"

#include <ATen/Context.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/ops/result_type.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace assay {
namespace {

std::string name_of(const c10::OperatorHandle& op) {
  return toString(op.operator_name());
}

std::string fill(const std::string& text, const std::string& name) {
  const auto place = text.find("{}");
  return place == std::string::npos ? text : text.substr(0, place) + name + text.substr(place + 2);
}

// Runs a check of torch's own; if it raises, the event comes first.
template <typename Check>
void noting(const c10::OperatorHandle& op, c10::Device device, const Check& check) {
  try {
    check();
  } catch (const c10::Error& error) {
    record("devices", name_of(op), str(device), error.what_without_backtrace());
    throw;
  }
}

std::optional<c10::Device> accelerator_of(const Operands& operands) {
  for (const auto& [name, tensor] : operands) {
    if (tensor.defined() && is_pretended(tensor)) {
      return tensor.device();
    }
  }
  return std::nullopt;
}

bool is_cpu_scalar(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.dim() == 0;
}

// As in torchgen's wrappers: every operand on the device of the first one.
void check_all(const std::string& wrapper, const Operands& operands) {
  std::optional<c10::Device> common;
  for (const auto& [name, tensor] : operands) {
    c10::impl::check_and_update_common_device(common, tensor, wrapper.c_str(), name.c_str());
  }
}

bool is_written(const c10::OperatorHandle& op, const std::string& name) {
  for (const auto& argument : op.schema().arguments()) {
    if (argument.name() == name) {
      return argument.alias_info() && argument.alias_info()->isWrite();
    }
  }
  return false;
}

// As TensorIterator::compute_types: the first accelerator's device is the common one; one CPU scalar may mix, but not
// as what is written to (`op.is_output` there).
void check_iterator(const c10::OperatorHandle& op, const Operands& operands, c10::Device common, int most) {
  int scalars = 0;
  for (const auto& [name, tensor] : operands) {
    if (!tensor.defined() || tensor.device() == common) {
      continue;
    }
    if (is_cpu_scalar(tensor) && !is_written(op, name)) {
      TORCH_CHECK(scalars < most, "Trying to pass too many CPU scalars to non-CPU kernel!");
      ++scalars;
      continue;
    }
    TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", common,
                " and ", tensor.device(), "!");
  }
}

void check_placeholder(const c10::OperatorHandle& op, const Operands& operands) {
  for (const auto& [name, tensor] : operands) {
    const bool here = tensor.defined() && tensor.device().is_cpu();
    const bool ignored = here && !is_written(op, name) && (tensor.dim() == 0 || tensor.numel() == 0);
    TORCH_CHECK(!here || ignored, session()->placeholder);
  }
}

// As masked_fill_ in cuda/Indexing.cu.
void check_fill(const Operands& operands) {
  const auto& self = operands[0].second;
  const auto& mask = operands[1].second;
  TORCH_CHECK(self.device() == mask.device(), "expected self and mask to be on the same device, but got mask on ",
              mask.device(), " and self on ", self.device());
  TORCH_CHECK(!self.device().is_cpu(), "masked_fill_: Expected inputs to be on same device");
}

// As AdvancedIndex in TensorAdvancedIndexing.cpp: indices may be on the CPU or with the tensor.
void check_index(const Operands& operands) {
  const at::Tensor* self = nullptr;
  for (const auto& [name, tensor] : operands) {
    if (name == "self") {
      self = &tensor;
    }
  }
  for (const auto& [name, tensor] : operands) {
    if (!self || !tensor.defined() || tensor.device() == self->device()) {
      continue;
    }
    if (name == "indices") {
      TORCH_CHECK(tensor.device().is_cpu() && !self->device().is_cpu(),
                  "indices should be either on ", at::kCPU, " or on the same device as the indexed tensor (",
                  self->device(), ")");
    } else {
      TORCH_CHECK(is_cpu_scalar(tensor),
                  "Expected all tensors to be on the same device, but found at least two devices, ", self->device(),
                  " and ", tensor.device(), "!");
    }
  }
}

// As _index_put_impl_: indices and numbers are brought to the tensor, wherever they are.
void check_put(const Operands& operands, bool filled) {
  const auto& self = operands[0].second;
  for (const auto& [name, tensor] : operands) {
    const bool moved = name == "indices" || (tensor.defined() && tensor.dim() == 0);
    TORCH_CHECK(filled || moved || !tensor.defined() || tensor.device() == self.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ", self.device(),
                " and ", tensor.device(), "!");
  }
}

// The argument of that name in a call, or null.
const c10::IValue* argument(const c10::OperatorHandle& op, const torch::jit::Stack& stack, const char* name) {
  const auto& declared = op.schema().arguments();
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].name() == name) {
      return &stack[stack.size() - declared.size() + i];
    }
  }
  return nullptr;
}

bool boolean_index(const c10::IValue* indices) {
  if (!indices || !indices->isList()) {
    return false;
  }
  for (const c10::IValue& element : indices->toListRef()) {
    const auto index = element.isTensor() ? element.toTensor() : at::Tensor();
    const bool mask = index.defined() && (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte);
    if (mask && !index.device().is_cpu()) { // a mask on the CPU becomes positions there
      return true;
    }
  }
  return false;
}

bool is_true(const c10::IValue* value) {
  return value && value->isBool() && value->toBool();
}

// One mask and one CPU value become masked_fill_, which needs no positions (canDispatchToMaskedFill in torch).
bool is_filled(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto* indices = argument(op, stack, "indices");
  const auto* values = argument(op, stack, "values");
  const auto here = argument(op, stack, "self")->toTensor().device();
  const bool one_value = values && values->isTensor() && values->toTensor().numel() == 1 &&
      values->toTensor().device().is_cpu();
  int given = 0;
  bool masks = true;
  for (const c10::IValue& element : indices->toListRef()) { // TorchScript's lists are untyped
    const auto index = element.isTensor() ? element.toTensor() : at::Tensor();
    given += index.defined();
    const bool mask = index.defined() && (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte);
    masks &= !index.defined() || (mask && index.device() == here);
  }
  return one_value && given == 1 && masks && !is_true(argument(op, stack, "accumulate"));
}

// `self.add_(other, alpha=2)` that is computed in a wider float dtype than that of `self`.
bool alpha_and_wider(const c10::IValue* self, const c10::IValue* other, const c10::IValue* alpha) {
  if (!other->isTensor() || alpha->toScalar().equal(1)) {
    return false;
  }
  const auto own = self->toTensor().scalar_type();
  return c10::isFloatingType(own) && at::result_type(self->toTensor(), other->toTensor()) != own;
}

bool is_text(const c10::IValue* value, const std::string& text) {
  return value && value->isString() && value->toStringRef() == text;
}

// The dtype that counts: the one asked for, else that of `self`.
bool is_inexact(const c10::IValue* dtype, const c10::IValue* self, bool complex_too) {
  c10::ScalarType type = c10::kLong;
  if (dtype && dtype->isInt()) {
    type = dtype->toScalarType();
  } else if (self && self->isTensor() && self->toTensor().defined()) {
    type = self->toTensor().scalar_type();
  }
  return c10::isFloatingType(type) || (complex_too && c10::isComplexType(type));
}

// The conditions of devices/operators/conditions.py, on the arguments of a call.
bool applies(const std::string& when, const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto get = [&](const char* name) { return argument(op, stack, name); };
  if (when.empty() || when == "always") {
    return !when.empty();
  }
  if (when == "boolean index") {
    return boolean_index(get("indices"));
  }
  if (when == "boolean index unless filled") {
    return boolean_index(get("indices")) && !is_filled(op, stack);
  }
  if (when == "floating point or complex") {
    return is_inexact(get("dtype"), get("self"), true);
  }
  if (when == "floating point") {
    return is_inexact(nullptr, get("self"), false);
  }
  if (when == "weights") {
    const auto* weights = get("weights");
    return weights && !weights->isNone();
  }
  if (when == "accumulate" || when == "without accumulate") {
    return is_true(get("accumulate")) == (when == "accumulate");
  }
  if (when == "accumulate of floating point or complex") {
    return is_true(get("accumulate")) && is_inexact(nullptr, get("self"), true);
  }
  if (when == "a reduction") {
    const auto* reduction = get("reduction");
    return reduction && reduction->toInt() != at::Reduction::None;
  }
  if (when == "without a range") {
    if (const auto* range = get("range")) {
      return range->isNone();
    }
    const auto* least = get("min");
    const auto* most = get("max");
    return least && most && least->toScalar().toDouble() == most->toScalar().toDouble(); // not with given edges
  }
  if (when == "without output_size") {
    const auto* size = get("output_size");
    return !size || size->isNone();
  }
  if (when == "check_errors") {
    return is_true(get("check_errors"));
  }
  if (when == "reduce is sum or mean") {
    return is_text(get("reduce"), "sum") || is_text(get("reduce"), "mean");
  }
  if (when == "reduce is prod") {
    return is_text(get("reduce"), "prod");
  }
  if (when == "mode is max") {
    const auto* mode = get("mode");
    return mode && mode->isInt() && mode->toInt() == 2;
  }
  if (when == "alpha and a wider float") {
    return alpha_and_wider(get("self"), get("other"), get("alpha"));
  }
  if (when == "projections") {
    const auto* states = get("hx");
    const auto of = states ? states->toTensorVector() : std::vector<at::Tensor>();
    return of.size() == 2 && of[0].dim() == 3 && of[1].dim() == 3 && of[0].size(2) != of[1].size(2);
  }
  TORCH_CHECK(false, "assay: a rule of ", name_of(op), " has an unknown condition: ", when);
}

// The name of the wrapper that torchgen makes of a kernel (torchgen/dest/register_dispatch_key.py).
std::string wrapper_of(const c10::OperatorHandle& op, const Rule& rule) {
  const auto& name = op.operator_name();
  const auto short_name = name.name.substr(name.name.find("::") + 2);
  bool out = false;
  for (const auto& declared : op.schema().arguments()) {
    out |= declared.is_out();
  }
  const std::string prefix = std::string("wrapper_") + toString(key_of(session()->type)) + "_";
  const std::string full = short_name + (out ? "_out" : "");
  if (rule.structured) {
    return prefix + full + (name.overload_name.empty() ? "" : "_" + name.overload_name);
  }
  return prefix + name.overload_name + "_" + full;
}

} // namespace

void check_available(const c10::OperatorHandle& op, bool available, const Rule& rule, c10::Device device) {
  if (available || rule.on_cpu) {
    if (rule.on_cpu) {
      record("fallback", name_of(op), str(device), "torch runs this operator on the CPU: " + name_of(op));
    }
    return;
  }
  const Session* now = session();
  const auto name = name_of(op);
  if (now->cpu_fallback) {
    const auto why = fill(now->fallback_warning, name);
    record("fallback", name, str(device), why);
    TORCH_WARN_ONCE(why);
    return;
  }
  record("operator", name, str(device), rule.missing);
  TORCH_CHECK_NOT_IMPLEMENTED(false, rule.missing);
}

void check_devices(const c10::OperatorHandle& op, const Rule& rule, const Operands& operands,
                   const torch::jit::Stack& stack) {
  const auto device = accelerator_of(operands);
  if (!device || rule.check == Rule::NONE) {
    return;
  }
  noting(op, *device, [&] {
    switch (rule.check) {
      case Rule::ALL:
        return check_all(wrapper_of(op, rule), operands);
      case Rule::ITERATOR:
        return check_iterator(op, operands, *device, 1);
      case Rule::WHERE: // it brings numbers of the CPU to the device (where_self_out in TensorCompare.cpp)
        return check_iterator(op, operands, *device, 2);
      case Rule::FILL:
        return check_fill(operands);
      case Rule::PLACEHOLDER:
        return check_placeholder(op, operands);
      case Rule::INDEX:
        return check_index(operands);
      case Rule::PUT:
        return check_put(operands, is_filled(op, stack));
      default:
        return;
    }
  });
}

void check_deterministic(const c10::OperatorHandle& op, const Rule& rule, c10::Device device,
                         const torch::jit::Stack& stack) {
  auto& context = at::globalContext();
  const bool asked = context.deterministicAlgorithms();
  for (const auto& way : rule.nondeterminism) {
    if (!applies(way.when, op, stack)) {
      continue;
    }
    const bool raises = asked && way.deterministic == "raises";
    if (!asked || way.deterministic == "ignores" || (raises && context.deterministicAlgorithmsWarnOnly())) {
      record("nondeterministic", name_of(op), str(device), way.named + " may differ from run to run");
    }
    if (raises) {
      try {
        at::globalContext().alertNotDeterministic(way.named);
      } catch (const c10::Error& error) {
        record("deterministic", name_of(op), str(device), error.what_without_backtrace());
        throw;
      }
    }
  }
}

void check_operand_dtypes(const c10::OperatorHandle& op, const Rule& rule, const Operands& operands,
                          c10::Device device) {
  for (const auto& [name, tensor] : operands) {
    if (tensor.defined() && is_among(rule.missing_dtypes, tensor.scalar_type())) {
      const auto why = fill(rule.dtype_error, c10::toString(tensor.scalar_type()));
      record("dtype", name_of(op), str(device), why);
      TORCH_CHECK_NOT_IMPLEMENTED(false, why);
    }
  }
}

bool is_among(const std::vector<std::string>& dtypes, c10::ScalarType dtype) {
  return std::find(dtypes.begin(), dtypes.end(), c10::toString(dtype)) != dtypes.end();
}

void check_refused(const c10::OperatorHandle& op, const Rule& rule, c10::Device device,
                   const torch::jit::Stack& stack) {
  if (applies(rule.refused_when, op, stack)) {
    const bool of_dtypes = rule.refused_when == "alpha and a wider float";
    record(of_dtypes ? "dtype" : "operator", name_of(op), str(device), rule.refusal);
    TORCH_CHECK(false, rule.refusal);
  }
}

void check_dtype(const std::string& op, c10::ScalarType dtype, c10::Device device) {
  const Session* now = session();
  if (!now) {
    return;
  }
  const auto missing = now->missing_dtypes.find(dtype);
  if (missing != now->missing_dtypes.end()) {
    record("dtype", op, str(device), missing->second);
    TORCH_CHECK_TYPE(false, missing->second);
  }
}

void note_wait(const c10::OperatorHandle& op, const Rule& rule, c10::Device device, const torch::jit::Stack& stack) {
  if (!rule.waits_when.empty() && applies(rule.waits_when, op, stack)) {
    record("sync", name_of(op), str(device), rule.why_waits);
  }
}

} // namespace assay
