// The operators of a pretend device: each runs on the CPU over the same memory, after its device's rules were asked.
#include "alias.h"
#include "operators.h"
#include "session.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/TracerMode.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include <limits>
#include <map>
#include <set>

namespace assay {
namespace {

using K = c10::DispatchKey;
using torch::jit::Stack;

std::string name_of(const c10::OperatorHandle& op) {
  return toString(op.operator_name());
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

// TorchScript's lists of optional tensors carry another element type than those made in C++: the declaration tells.
bool is_optional_tensors(const c10::Argument& argument, const c10::IValue& value) {
  const auto list = argument.type()->cast<c10::ListType>();
  const auto element = list ? list->getElementType()->cast<c10::OptionalType>() : nullptr;
  return element && element->getElementType()->kind() == c10::TypeKind::TensorType && value.isList();
}

std::vector<std::optional<at::Tensor>> optional_tensors(const c10::IValue& value) {
  std::vector<std::optional<at::Tensor>> tensors;
  for (const c10::IValue& element : value.toListRef()) {
    tensors.push_back(element.isTensor() ? std::optional<at::Tensor>(element.toTensor()) : std::nullopt);
  }
  return tensors;
}

// The tensors of a call with the names of their arguments, `out` arguments first as in torch's own wrappers.
Operands operands_of(const c10::OperatorHandle& op, const Stack& stack) {
  Operands outs;
  Operands operands;
  const auto& declared = op.schema().arguments();
  const size_t begin = stack.size() - declared.size();
  for (size_t i = 0; i < declared.size(); ++i) {
    const auto& value = stack[begin + i];
    auto& list = declared[i].is_out() ? outs : operands;
    if (value.isTensor()) {
      list.emplace_back(declared[i].name(), value.toTensor());
    } else if (is_optional_tensors(declared[i], value)) {
      for (const auto& tensor : optional_tensors(value)) {
        list.emplace_back(declared[i].name(), tensor.value_or(at::Tensor()));
      }
    } else if (value.isTensorList()) {
      for (const at::Tensor tensor : value.toTensorVector()) {
        list.emplace_back(declared[i].name(), tensor);
      }
    }
  }
  outs.insert(outs.end(), operands.begin(), operands.end());
  return outs;
}

// Where a result goes: to the device that was named, else to that of the first tensor that is on one.
std::optional<c10::Device> result_device(const Operands& operands, const c10::OperatorHandle& op, const Stack& stack) {
  const auto& declared = op.schema().arguments();
  const size_t begin = stack.size() - declared.size();
  for (size_t i = 0; i < declared.size(); ++i) {
    if (stack[begin + i].isDevice()) {
      const auto device = stack[begin + i].toDevice();
      return device.is_cpu() ? device : with_index(device);
    }
  }
  for (const auto& [name, tensor] : operands) {
    if (tensor.defined() && is_pretended(tensor)) {
      return tensor.device();
    }
  }
  return std::nullopt;
}

at::Generator generator_on_cpu(const c10::IValue& value, c10::Device device) {
  if (value.isNone()) {
    return host_generator(default_generator(device.type(), device.index()));
  }
  const auto generator = value.toGenerator();
  TORCH_CHECK(generator.device().type() == device.type(), "Expected a '", c10::DeviceTypeName(device.type(), true),
              "' device type for generator but found '",
              c10::DeviceTypeName(generator.device().type(), true), "'");
  return host_generator(generator);
}

bool takes_generator(const c10::Argument& argument) {
  const auto type = argument.type();
  const auto optional = type->cast<c10::OptionalType>();
  return (optional ? optional->getElementType() : type)->kind() == c10::TypeKind::GeneratorType;
}

void arguments_to_cpu(const c10::OperatorHandle& op, Stack& stack, Aliases& aliases, c10::Device device) {
  const auto& declared = op.schema().arguments();
  const size_t begin = stack.size() - declared.size();
  for (size_t i = 0; i < declared.size(); ++i) {
    auto& value = stack[begin + i];
    if (value.isTensor()) {
      value = aliases.on_cpu(value.toTensor());
    } else if (is_optional_tensors(declared[i], value)) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& tensor : optional_tensors(value)) {
        list.push_back(tensor ? std::optional<at::Tensor>(aliases.on_cpu(*tensor)) : std::nullopt);
      }
      value = std::move(list);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor tensor : value.toTensorVector()) {
        list.push_back(aliases.on_cpu(tensor));
      }
      value = std::move(list);
    } else if (value.isStorage()) {
      value = aliases.on_cpu(value.toStorage());
    } else if (value.isDevice()) {
      value = c10::Device(c10::kCPU);
    } else if (takes_generator(declared[i])) {
      value = generator_on_cpu(value, device);
    } else if (declared[i].name() == "pin_memory") {
      value = c10::IValue();
    }
  }
}

void results_to_device(const c10::OperatorHandle& op, Stack& stack, size_t begin, Aliases& aliases,
                       c10::Device device) {
  const auto name = name_of(op);
  for (size_t i = begin; i < stack.size(); ++i) {
    auto& value = stack[i];
    if (value.isTensor()) {
      value = aliases.on_device(value.toTensor(), device, name);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor tensor : value.toTensorVector()) {
        list.push_back(aliases.on_device(tensor, device, name));
      }
      value = std::move(list);
    }
  }
}

// Whether a call is about sparse tensors: given one, or asked for one.
bool is_sparse_call(const c10::OperatorHandle& op, const Operands& operands, const Stack& stack) {
  for (const auto& [name, tensor] : operands) {
    if (tensor.defined() && tensor.layout() != c10::kStrided) {
      return true;
    }
  }
  const auto& declared = op.schema().arguments();
  const size_t begin = stack.size() - declared.size();
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].name() == "layout" && stack[begin + i].isInt()) {
      return stack[begin + i].toLayout() != c10::kStrided;
    }
  }
  return false;
}

void check_open(const c10::OperatorHandle& op, const Operands& operands) {
  for (const auto& [name, tensor] : operands) {
    if (tensor.defined() && is_pretended(tensor)) {
      TORCH_CHECK(is_open(tensor.device().type()), "assay: ", name, " is on ", tensor.device(),
                  ", a pretend device that is there only inside `with pretend(...)`, and ", name_of(op),
                  " was called on it outside; call .cpu() on it and go on with that");
    }
  }
}

// Whether an operator only gives the same memory another shape, or replaces it.
bool needs_no_memory(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name().name;
  const auto& returns = op.schema().returns();
  return name == "aten::resize_" || name == "aten::set_" ||
      (!returns.empty() && returns[0].alias_info() && !returns[0].alias_info()->isWrite());
}

// A storage may be resized under a tensor. A CPU's kernel would read and write past its end.
void check_memory(const at::Tensor& tensor, const std::string& name, const c10::OperatorName& op) {
  if (!tensor.defined() || !is_pretended(tensor) || !tensor.has_storage() || tensor.numel() == 0) {
    return;
  }
  const auto needed =
      at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(), tensor.storage_offset());
  TORCH_CHECK(tensor.storage().nbytes() >= needed, "assay: ", name, " of ", op, " needs ", needed,
              " bytes, but its storage was resized to ", tensor.storage().nbytes(), "; on a real device this reads or "
              "writes memory that is not its own. Resize the storage before the tensor is used");
}

void check_memories(const c10::OperatorHandle& op, const Operands& operands) {
  if (needs_no_memory(op)) {
    return;
  }
  for (const auto& [name, tensor] : operands) {
    check_memory(tensor, name, op.operator_name());
  }
}

// What `.cpu()` of a sparse tensor asks; it works, as the copy of a dense one does, when the device is gone.
bool reads_structure(const c10::OperatorHandle& op) {
  static const std::set<std::string> names = {"aten::_indices", "aten::_values",       "aten::_nnz",
                                              "aten::sparse_dim", "aten::dense_dim", "aten::is_coalesced"};
  return names.count(op.operator_name().name);
}

void check_has_cpu_kernel(const c10::OperatorHandle& op, c10::Device device) {
  if (!op.hasComputedKernelForDispatchKey(K::CPU) && !op.hasComputedKernelForDispatchKey(K::SparseCPU) &&
      !op.hasComputedKernelForDispatchKey(K::SparseCsrCPU)) {
    const auto why = "assay: pretend " + str(device) + " cannot run " + name_of(op) +
        ": torch has no CPU kernel of it to borrow; a real device is needed for this operator";
    record("unsupported", name_of(op), str(device), why);
    TORCH_CHECK_NOT_IMPLEMENTED(false, why);
  }
}

// Neither autograd, nor a tracer, nor the CPU's autocast sees the stand-ins.
struct Beneath {
  at::AutoDispatchBelowADInplaceOrView autograd;
  c10::impl::ExcludeDispatchKeyGuard autocast{c10::autocast_dispatch_keyset};
  at::tracer::impl::NoTracerDispatchMode tracer;
};

// Notes a copy, and the wait it means. `host` is the side in host memory; where it is not there yet, or none is, either.
void note_copy(c10::Device target, c10::Device source, const at::Tensor& host, bool non_blocking) {
  const auto there = target.is_cpu() ? source : target;
  const bool with_host = target.is_cpu() || source.is_cpu();
  Copy copy{str(source), str(target), non_blocking, false, host.numel()};
  copy.pinned = host.device().is_cpu() && host.layout() == c10::kStrided && is_pinned(host.storage().data());
  record("copy", "aten::copy_", str(there), copy.source + " to " + copy.target, copy);
  if (!with_host) {
    return;
  }
  const std::string way = std::string(target.is_cpu() ? "to host" : "to device") + (copy.pinned ? ", pinned" : "") +
      (non_blocking ? ", non_blocking" : "");
  const auto& waits = session()->copy_waits;
  const auto found = waits.find(way);
  if (found != waits.end()) {
    record("sync", "aten::copy_", str(there), found->second, copy);
  }
}

// make_info in TensorAdvancedIndexingUtils.h moves indices to the tensor they are for.
void note_moved_indices(const Operands& operands, c10::Device device) {
  for (const auto& [name, tensor] : operands) {
    if (name == "indices" && tensor.defined() && tensor.device() != device) {
      note_copy(device, tensor.device(), tensor, false);
    }
  }
}

// Arguments of dtypes that the CPU's kernel lacks, in a wider one; the dtype that they had, if there were any.
std::optional<c10::ScalarType> widen(const Rule& rule, Stack& stack, size_t begin) {
  std::optional<c10::ScalarType> narrow;
  for (size_t i = begin; i < stack.size(); ++i) {
    if (stack[i].isTensor() && is_among(rule.narrow, stack[i].toTensor().scalar_type())) {
      narrow = stack[i].toTensor().scalar_type();
      stack[i] = stack[i].toTensor().to(rule.computed_in);
    }
  }
  return narrow;
}

void narrow_results(const Rule& rule, Stack& stack, size_t begin, std::optional<c10::ScalarType> narrow) {
  for (size_t i = begin; narrow && i < stack.size(); ++i) {
    if (stack[i].isTensor() && stack[i].toTensor().scalar_type() == rule.computed_in) {
      stack[i] = stack[i].toTensor().to(*narrow);
    }
  }
}

// As checkSetStorage in Resize.h.
void check_storages(const c10::OperatorHandle& op, const Operands& operands, const Stack& stack) {
  if (op.operator_name().name != "aten::set_") {
    return;
  }
  const auto own = operands[0].second.device();
  auto other = operands.size() > 1 ? operands[1].second.device() : own;
  for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i) {
    other = stack[i].isStorage() ? stack[i].toStorage().device() : other;
  }
  if (own != other) {
    const auto why = c10::str("Attempted to set the storage of a tensor on device \"", own,
                              "\" to a storage on different device \"", other,
                              "\".  This is no longer allowed; the devices must match.");
    record("devices", name_of(op), str(own), why);
    TORCH_CHECK(false, why);
  }
}

// What the CPU's kernel lacks says nothing of the device's.
void call_on_cpu(const c10::OperatorHandle& op, Stack* stack, c10::Device device) {
  try {
    op.callBoxed(stack);
  } catch (const c10::NotImplementedError& error) {
    const auto why = c10::str("assay: pretend ", device, " cannot run ", name_of(op), " here: the CPU's kernel, which it "
                              "borrows, says: ", error.what_without_backtrace());
    record("unsupported", name_of(op), str(device), why);
    TORCH_CHECK_NOT_IMPLEMENTED(false, why);
  }
}

// Runs the CPU's kernel over the same memory.
void run_beneath(const c10::OperatorHandle& op, Stack* stack, c10::Device device) {
  const Beneath beneath;
  Aliases aliases;
  const size_t begin = stack->size() - op.schema().arguments().size();
  arguments_to_cpu(op, *stack, aliases, device);
  const Rule* rule = session() && !op.schema().is_mutable() ? &rule_of(op) : nullptr;
  const auto narrow = rule && !rule->narrow.empty() ? widen(*rule, *stack, begin) : std::nullopt;
  call_on_cpu(op, stack, device);
  if (narrow) {
    narrow_results(*rule, *stack, begin, narrow);
  }
  if (op.schema().is_mutable()) {
    aliases.write_back(device);
  }
  if (!device.is_cpu()) {
    results_to_device(op, *stack, begin, aliases, device);
  }
}

void run_on_cpu(const c10::OperatorHandle& op, Stack* stack) {
  const Entered entered;
  const auto operands = operands_of(op, *stack);
  if (!session() && reads_structure(op)) {
    return run_beneath(op, stack, operands[0].second.device());
  }
  check_open(op, operands);
  if (!session()) {
    const auto asked = result_device(operands, op, *stack);
    TORCH_CHECK(false, "assay: ", name_of(op), " asks for ", asked ? str(*asked) : "a device",
                ", a pretend device, which is there only inside `with pretend(...)`");
  }
  const auto device = result_device(operands, op, *stack).value_or(c10::Device(session()->type, current_index()));
  TORCH_CHECK(device.is_cpu() || device.type() == session()->type, "assay: ", name_of(op), " asks for ", device,
              ", which is not there: the pretend device that is open is ", session()->type);
  const Rule& rule = rule_of(op);
  check_available(op, is_sparse_call(op, operands, *stack) ? rule.available_sparse : rule.available, rule, device);
  check_memories(op, operands);
  check_storages(op, operands, *stack);
  check_devices(op, rule, operands, *stack);
  check_operand_dtypes(op, rule, operands, device);
  check_refused(op, rule, device, *stack);
  check_deterministic(op, rule, device, *stack);
  check_has_cpu_kernel(op, device);
  note_wait(op, rule, device, *stack);
  // what is written to may be on the CPU, with indices on the device
  const auto home = rule.check == Rule::PUT ? operands[0].second.device() : device;
  if (rule.check == Rule::PUT || (rule.check == Rule::INDEX && !device.is_cpu())) {
    note_moved_indices(operands, home);
  }

  run_beneath(op, stack, home);
}

// Copies --------------------------------------------------------------------------------------------------------------

// Every two devices may copy; a tensor may leave a device that is gone, but nothing may enter it.
at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (self.is_same(source)) {
    return self;
  }
  const Entered entered;
  const auto there = self.device().is_cpu() ? source.device() : self.device();
  TORCH_CHECK(is_open(there.type()) || self.device().is_cpu(), "assay: ", there,
              " is there only inside `with pretend(...)`, so nothing can be copied to it");
  if (is_open(there.type()) && self.device() != source.device()) {
    note_copy(self.device(), source.device(), self.device().is_cpu() ? self : source, non_blocking);
  }
  check_memory(self, "self", {"aten::copy_", ""});
  check_memory(source, "src", {"aten::copy_", ""});
  const Beneath beneath;
  Aliases aliases;
  auto target = aliases.on_cpu(self);
  target.copy_(aliases.on_cpu(source), false);
  if (!is_pretended(self)) {
    return self;
  }
  if (self.layout() != c10::kStrided) {
    aliases.write_back(self.device());
  }
  return self;
}

// Operators that torch's CPU build cannot take over as they are ------------------------------------------------------

// torch picks a convolution by device; here the CPU's runs, after what torch asks of the operands: first their types,
// which say nothing of an index (check_input_same_type_as_parameters in aten/src/ATen/native/Convolution.cpp), then what
// the wrapper of the kernel asks, and of a bias the addition behind it.
void check_convolution(const at::Tensor& input, const std::string& name, const at::Tensor& other, bool backward) {
  if (!other.defined()) {
    return;
  }
  TORCH_CHECK(input.options().type_equal(other.options()), "Input type (", input.toString(), ") and ", name, " type (",
              other.toString(), ") should be the same");
  if (input.device() == other.device()) {
    return;
  }
  TORCH_CHECK(name == "weight", "Expected all tensors to be on the same device, but found at least two devices, ",
              input.device(), " and ", other.device(), "!");
  const bool cuda = input.is_cuda();
  const std::string kernel = cuda ? (backward ? "convolution_backward" : "cudnn_convolution")
                                  : (backward ? "convolution_backward_overrideable" : "convolution_overrideable");
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but got weight is on ", other.device(),
              ", different from other tensors on ", input.device(), " (when checking argument in method wrapper_",
              toString(key_of(input.device().type())), "__", kernel, ")");
}

void convolution(const c10::OperatorHandle& op, Stack* stack) {
  const Entered entered;
  const auto operands = operands_of(op, *stack);
  check_open(op, operands);
  const bool backward = operands[0].first == "grad_output";
  const auto& input = operands[backward ? 1 : 0].second;
  try {
    for (const auto& [name, tensor] : operands) {
      if (name == "weight" || name == "bias") {
        check_convolution(input, name, tensor, backward);
      }
    }
  } catch (const c10::Error& error) {
    record("devices", name_of(op), str(input.device()), error.what_without_backtrace());
    throw;
  }
  run_on_cpu(op, stack);
}

// A softmax of half precision in float32, as autocast asks for; the CPU's kernel has no such form.
void softmax(const c10::OperatorHandle& op, Stack* stack) {
  auto& half_to_float = stack->back();
  auto& self = (*stack)[stack->size() - 3];
  if (half_to_float.toBool()) {
    self = self.toTensor().to(at::kFloat);
    half_to_float = false;
  }
  run_on_cpu(op, stack);
}

void softmax_backward(const c10::OperatorHandle& op, Stack* stack) {
  const auto wanted = stack->back().toScalarType();
  const auto computed = (*stack)[stack->size() - 4].toTensor().scalar_type();
  stack->back() = computed;
  run_on_cpu(op, stack);
  if (wanted != computed) {
    stack->back() = stack->back().toTensor().to(wanted);
  }
}

// Attention by plain matrix products: the fused kernels have other names on the CPU.
at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const std::optional<at::Tensor>& mask, double dropout, bool causal, std::optional<double> scale,
                     bool grouped) {
  auto added = mask; // torch makes numbers of a boolean mask before it chooses a kernel
  if (mask && mask->scalar_type() == at::kBool) {
    added = at::zeros_like(*mask, query.scalar_type());
    added->masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
  }
  return std::get<0>(at::_scaled_dot_product_attention_math(query, key, value, added, dropout, causal, std::nullopt,
                                                            scale, grouped));
}

int64_t fused_sdp_choice(const at::Tensor&, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                         double, bool, std::optional<double>, bool) {
  return 0; // sdp::SDPBackend::math
}

// A conversion to a dtype that its device gives another one for, with a warning (known/operators_npu.toml, _to_copy).
void to_copy(const c10::OperatorHandle& op, Stack* stack) {
  const size_t begin = stack->size() - op.schema().arguments().size();
  const auto self = (*stack)[begin].toTensor();
  auto& dtype = (*stack)[begin + 1];
  const bool only_dtype = dtype.isInt() && (*stack)[begin + 2].isNone() && (*stack)[begin + 3].isNone();
  if (session() && only_dtype && dtype.toScalarType() != self.scalar_type()) {
    const Rule& rule = rule_of(op);
    if (is_among(rule.missing_dtypes, dtype.toScalarType())) {
      record("dtype", name_of(op), str(self.device()), rule.dtype_error);
      TORCH_WARN_ONCE(rule.dtype_error);
      dtype = at::kFloat;
    }
  }
  op.redispatchBoxed(c10::DispatchKeySet(K::CompositeExplicitAutograd), stack);
}

// An operator that torch makes of others, of which the device has a kernel of its own that lacks dtypes or cases.
void checked_composite(const c10::OperatorHandle& op, Stack* stack) {
  const auto operands = operands_of(op, *stack);
  const auto device = result_device(operands, op, *stack);
  if (session() && device) {
    check_operand_dtypes(op, rule_of(op), operands, *device);
    check_refused(op, rule_of(op), *device, *stack);
  }
  op.redispatchBoxed(c10::DispatchKeySet(K::CompositeImplicitAutograd), stack);
}

void record_stream(at::Tensor&, at::Stream) {}

// Whether a vendor's library takes a loss: none is here.
bool no_library(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t) {
  return false;
}

bool no_library_for_lengths(const at::Tensor&, const at::Tensor&, at::IntArrayRef, at::IntArrayRef, int64_t) {
  return false;
}

at::Tensor zero_tensor(c10::SymIntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                       std::optional<c10::Device> device, std::optional<bool>) {
  const auto there = with_index(device.value());
  at::native::ZeroTensorAllocator allocator(there);
  const auto keys = c10::DispatchKeySet(key_of(there.type())) | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor);
  auto scalar_type = dtype.value_or(at::typeMetaToScalarType(at::get_default_dtype()));
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &allocator, keys, scalar_type, std::nullopt);
}

// The dispatch keys of a kind of device, each beside the CPU's whose kernels it borrows.
std::vector<std::pair<K, K>> keys_of(c10::DeviceType type) {
  return {{key_of(type), K::CPU},
          {key_of(type, K::Sparse), K::SparseCPU},
          {key_of(type, K::SparseCsr), K::SparseCsrCPU},
          {key_of(type, K::Quantized), K::QuantizedCPU},
          {key_of(type, K::NestedTensor), K::NestedTensorCPU}};
}

struct Silent final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

using Libraries = std::vector<std::unique_ptr<torch::Library>>;

torch::Library& library(Libraries& kept, const char* space, K key) {
  kept.push_back(std::make_unique<torch::Library>(torch::Library::IMPL, space, key, __FILE__, __LINE__));
  return *kept.back();
}

bool has_composite(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(K::CompositeExplicitAutogradNonFunctional) ||
      op.hasKernelForDispatchKey(K::CompositeExplicitAutograd) || op.hasKernelForDispatchKey(K::CompositeImplicitAutograd);
}

// A fallback runs only where there is no composite kernel. Where the CPU has both, a device has its own as well.
void install_beside_composites(torch::Library& aten, K host, const std::set<std::string>& taken) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    const auto full = toString(name);
    if (full.rfind("aten::", 0) == 0 && op && op->hasKernelForDispatchKey(host) && has_composite(*op) &&
        !taken.count(full.substr(6))) {
      aten.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
    }
  }
}

// What is not simply the CPU's operator; gives the names.
std::set<std::string> install_special(torch::Library& aten, Libraries& kept, c10::DeviceType type) {
  aten.impl("copy_", copy_);
  aten.impl("convolution", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  aten.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  aten.impl("_efficientzerotensor", zero_tensor);
  std::set<std::string> taken = {"copy_", "convolution", "convolution_backward", "_efficientzerotensor",
                                 "record_stream", "_fused_sdp_choice"};
  for (const char* name : {"_softmax", "_log_softmax"}) {
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&softmax>());
    taken.insert(name);
  }
  for (const char* name : {"_softmax_backward_data", "_log_softmax_backward_data"}) {
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&softmax_backward>());
    taken.insert(name);
  }
  if (type == c10::kMPS) {
    for (const auto* whole : {"linalg_svd", "linalg_svd.U", "upsample_nearest3d.vec"}) {
      // Made of others everywhere else: aten/src/ATen/mps/MPSFallback.mm sends them to the CPU before they come apart.
      aten.impl(whole, torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
    }
  } else {
    aten.impl("record_stream", record_stream);
    aten.impl("_fused_sdp_choice", fused_sdp_choice);
    install_cells(aten);
    for (const char* name : {"kaiser_window", "kaiser_window.periodic", "kaiser_window.beta"}) {
      aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>()); // composite, over kernels by device
      taken.insert(name);
    }
  }
  auto& following_gradients = library(kept, "aten", key_of(type, K::AutogradFunctionality));
  std::vector<const char*> composites;
  if (type == c10::kPrivateUse1) {
    aten.impl("_to_copy", torch::CppFunction::makeFromBoxedFunction<&to_copy>());
    taken.insert("_to_copy");
    composites = {"repeat_interleave.self_int", "repeat_interleave.self_Tensor"};
  } else if (type == c10::kMPS) {
    composites = {"lstm.input"};
  }
  for (const char* name : composites) {
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&checked_composite>());
    following_gradients.impl(name, torch::CppFunction::makeFromBoxedFunction<&checked_composite>());
  }
  if (type == c10::kCUDA) {
    aten.impl("_use_cudnn_ctc_loss", no_library_for_lengths);
    aten.impl("_use_cudnn_ctc_loss.Tensor", no_library);
    aten.impl("_use_miopen_ctc_loss.Tensor", no_library);
    aten.impl("_use_miopen_ctc_loss", no_library_for_lengths);
  } else { // how they choose a kernel of attention is not in a CPU build of torch
    aten.impl("scaled_dot_product_attention", attention); // in torch.inference_mode()
    following_gradients.impl("scaled_dot_product_attention", attention);
  }
  return taken;
}

} // namespace

void install_operators(c10::DeviceType type) {
  static std::map<c10::DeviceType, Libraries> libraries;
  if (libraries.count(type)) {
    return; // dispatch registrations stay; outside a session they only raise
  }
  Silent silent; // a build for the CPU has some kernels for other devices, and torch warns that they are replaced
  const c10::WarningUtils::WarningHandlerGuard guard(&silent);
  auto& kept = libraries[type];
  for (const auto& [key, host] : keys_of(type)) {
    library(kept, "_", key).fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
    auto& aten = library(kept, "aten", key);
    const auto special = host == K::CPU ? install_special(aten, kept, type) : std::set<std::string>{};
    install_beside_composites(aten, host, special);
  }
  install_collectives(library(kept, "c10d", key_of(type)));
  if (type == c10::kPrivateUse1 || type == c10::kHPU) { // torch has autocast for the others itself
    const auto autocast = at::autocast::get_autocast_dispatch_key_from_device_type(type);
    library(kept, "_", autocast).fallback(torch::CppFunction::makeFallthrough());
    install_autocast(library(kept, "aten", autocast), type);
  }
}

} // namespace assay
