#include "alias.h"

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/TensorImpl.h>

namespace assay {
namespace {

template <typename Owner>
void drop(void* owner) {
  delete static_cast<Owner*>(owner);
}

// The memory of `storage` under the name of `device`, kept alive by the result.
at::DataPtr borrow(const c10::Storage& storage, c10::Device device) {
  void* data = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
  return {data, new c10::Storage(storage), &drop<c10::Storage>, device};
}

c10::Storage over(const c10::Storage& storage, c10::Device device, c10::Allocator* allocator) {
  return {c10::Storage::use_byte_size_t(), storage.nbytes(), borrow(storage, device), allocator,
          storage.unsafeGetStorageImpl()->resizable()};
}

at::Tensor shaped(at::Tensor tensor, const at::Tensor& like) {
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.is_conj()) {
    impl->_set_conj(true);
  }
  if (like.is_neg()) {
    impl->_set_neg(true);
  }
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) {
    impl->set_wrapped_number(true);
  }
  return tensor;
}

at::Tensor dense(c10::Storage storage, c10::DispatchKey key, const at::Tensor& like) {
  return shaped(at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype()),
                like);
}

// In inference mode, too, a view of an ordinary tensor is ordinary: torch's views take over the keys of their base.
at::Tensor view_of(const at::Tensor& base, c10::Storage storage, const at::Tensor& like) {
  const auto keys = base.key_set().remove(c10::DispatchKey::Conjugate).remove(c10::DispatchKey::Negative);
  return shaped(at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, std::move(storage), keys, like.dtype()),
                like);
}

bool is_compressed(const at::Tensor& tensor) {
  return at::sparse_csr::is_sparse_compressed(tensor);
}

} // namespace

c10::Storage Aliases::on_cpu(const c10::Storage& storage) {
  for (const auto& memory : memories) {
    if (memory.original.is_alias_of(storage)) {
      return memory.stand_in;
    }
  }
  memories.push_back({storage, over(storage, c10::Device(c10::kCPU), c10::GetCPUAllocator())});
  return memories.back().stand_in;
}

at::Tensor Aliases::on_cpu(const at::Tensor& tensor) {
  if (!tensor.defined() || !is_pretended(tensor)) {
    return tensor;
  }
  for (const auto& pair : tensors) {
    if (pair.original.is_same(tensor)) {
      return pair.stand_in;
    }
  }
  at::Tensor stand_in = tensor.is_sparse() ? sparse_on_cpu(tensor)
      : is_compressed(tensor)              ? compressed_on_cpu(tensor)
                                           : dense_on_cpu(tensor);
  tensors.push_back({tensor, stand_in});
  return stand_in;
}

at::Tensor Aliases::dense_on_cpu(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      tensor.layout() == c10::kStrided && !tensor.is_quantized() && !tensor.is_nested() && tensor.has_storage(),
      "assay: pretend devices have no quantized, nested or opaque tensors (got layout ", tensor.layout(), ", dtype ",
      tensor.dtype(), "); use dense or sparse tensors here, or a real device");
  return dense(on_cpu(tensor.storage()), c10::DispatchKey::CPU, tensor);
}

at::Tensor Aliases::sparse_on_cpu(const at::Tensor& tensor) {
  const auto* impl = at::sparse::get_sparse_impl(tensor);
  return at::_sparse_coo_tensor_unsafe(on_cpu(impl->indices()), on_cpu(impl->values()), tensor.sizes(),
                                       impl->values().options().device(c10::kCPU).layout(c10::kSparse),
                                       impl->coalesced());
}

at::Tensor Aliases::compressed_on_cpu(const at::Tensor& tensor) {
  const auto* impl = at::sparse_csr::get_sparse_csr_impl(tensor);
  return at::_sparse_compressed_tensor_unsafe(
      on_cpu(impl->compressed_indices()), on_cpu(impl->plain_indices()), on_cpu(impl->values()), tensor.sizes(),
      impl->values().options().device(c10::kCPU).layout(tensor.layout()));
}

c10::Storage Aliases::storage_on_device(const c10::Storage& storage, c10::Device device) {
  for (const auto& memory : memories) {
    if (memory.stand_in.is_alias_of(storage)) {
      return memory.original;
    }
  }
  memories.push_back({over(storage, device, allocator_of(device.type())), storage});
  return memories.back().original;
}

at::Tensor Aliases::dense_on_device(const at::Tensor& result, c10::Device device) {
  TORCH_CHECK_NOT_IMPLEMENTED(result.layout() == c10::kStrided && result.has_storage() && !result.is_quantized(),
                              "assay: pretend devices have no quantized, nested or opaque tensors (got layout ",
                              result.layout(), ", dtype ", result.dtype(), ")");
  auto storage = storage_on_device(result.storage(), device);
  for (const auto& pair : tensors) {
    const auto& base = pair.original;
    if (result.is_inference() && !base.is_inference() && base.has_storage() && base.storage().is_alias_of(storage)) {
      return view_of(base, std::move(storage), result);
    }
  }
  return dense(std::move(storage), key_of(device.type()), result);
}

at::Tensor Aliases::sparse_on_device(const at::Tensor& result, c10::Device device, const std::string& op) {
  const c10::DeviceGuard here(device); // the new tensor takes the current index
  const auto* from = at::sparse::get_sparse_impl(result);
  auto tensor = at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(key_of(device.type(), c10::DispatchKey::Sparse)),
                                                              result.dtype());
  auto* impl = at::sparse::get_sparse_impl(tensor);
  impl->resize_(from->sparse_dim(), from->dense_dim(), result.sizes());
  impl->set_indices_and_values_unsafe(on_device(from->indices(), device, op), on_device(from->values(), device, op));
  impl->set_coalesced(from->coalesced());
  return tensor;
}

at::Tensor Aliases::compressed_on_device(const at::Tensor& result, c10::Device device, const std::string& op) {
  const auto* from = at::sparse_csr::get_sparse_csr_impl(result);
  auto tensor = at::detail::make_tensor<at::SparseCsrTensorImpl>(
      c10::DispatchKeySet(key_of(device.type(), c10::DispatchKey::SparseCsr)), device, result.layout(), result.dtype());
  at::sparse_csr::get_sparse_csr_impl(tensor)->set_member_tensors(
      on_device(from->compressed_indices(), device, op), on_device(from->plain_indices(), device, op),
      on_device(from->values(), device, op), result.sizes());
  return tensor;
}

at::Tensor Aliases::on_device(const at::Tensor& result, c10::Device device, const std::string& op) {
  if (!result.defined() || is_pretended(result)) {
    return result;
  }
  for (const auto& pair : tensors) {
    if (pair.stand_in.is_same(result)) {
      return pair.original;
    }
  }
  check_dtype(op, result.scalar_type(), device);
  return result.is_sparse()     ? sparse_on_device(result, device, op)
      : is_compressed(result) ? compressed_on_device(result, device, op)
                              : dense_on_device(result, device);
}

// The CPU operator gave a stand-in other memory (it was resized): the original takes it over.
void Aliases::move_memory(const Memory& memory) {
  auto* original = memory.original.unsafeGetStorageImpl();
  auto* stand_in = memory.stand_in.unsafeGetStorageImpl();
  if (original->device() == stand_in->device()) {
    return;
  }
  auto& now = stand_in->_mutable_data_ptr_no_checks();
  if (now.get() != original->_mutable_data_ptr_no_checks().get()) {
    const auto device = original->device();
    auto* owner = new at::DataPtr(std::move(now));
    original->set_data_ptr_noswap(at::DataPtr(owner->get(), owner, &drop<at::DataPtr>, device));
    now = at::DataPtr(owner->get(), c10::Device(c10::kCPU));
  }
  original->set_nbytes(stand_in->nbytes());
}

void Aliases::write_back_dense(const Pair& pair, c10::Device device) {
  auto* original = pair.original.unsafeGetTensorImpl();
  const auto& stand_in = pair.stand_in;
  const auto storage = storage_on_device(stand_in.storage(), device);
  if (!storage.is_alias_of(pair.original.storage())) {
    original->set_storage_keep_dtype(storage);
  }
  if (original->sizes() != stand_in.sizes() || original->strides() != stand_in.strides() ||
      original->storage_offset() != stand_in.storage_offset()) {
    original->set_sizes_and_strides(stand_in.sizes(), stand_in.strides(), stand_in.storage_offset());
  }
}

void Aliases::write_back_sparse(const Pair& pair, c10::Device device) {
  const auto* from = at::sparse::get_sparse_impl(pair.stand_in);
  auto* impl = at::sparse::get_sparse_impl(pair.original);
  impl->raw_resize_(from->sparse_dim(), from->dense_dim(), pair.stand_in.sizes());
  impl->set_indices_and_values_unsafe(on_device(from->indices(), device, "aten::_indices"),
                                      on_device(from->values(), device, "aten::_values"));
  impl->set_coalesced(from->coalesced());
}

void Aliases::write_back(c10::Device device) {
  const auto pairs = tensors; // on_device may add to the list
  for (const auto& pair : pairs) {
    const auto& own = pair.original.device();
    if (pair.original.is_sparse()) {
      write_back_sparse(pair, own);
    } else if (!is_compressed(pair.original)) {
      write_back_dense(pair, own);
    }
  }
  for (const auto& memory : memories) {
    move_memory(memory);
  }
  (void)device;
}

} // namespace assay
