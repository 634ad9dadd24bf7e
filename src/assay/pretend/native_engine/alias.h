// A device tensor seen as a CPU tensor over the same memory, and a CPU result seen as a device tensor.
#pragma once

#include "session.h"

#include <c10/core/Storage.h>

#include <vector>

namespace assay {

// The stand-ins of one call. Tensors that share memory share it here as well, so overlap checks and views hold.
class Aliases {
 public:
  // The CPU tensor over the same memory; a tensor that is not on a pretend device is returned unchanged.
  at::Tensor on_cpu(const at::Tensor& tensor);
  c10::Storage on_cpu(const c10::Storage& storage);
  // A result on the device: the caller's own tensor, a view of its memory, or new memory.
  at::Tensor on_device(const at::Tensor& result, c10::Device device, const std::string& op);
  // What the CPU operator changed beside values: sizes, strides, a larger memory, another storage.
  void write_back(c10::Device device);

 private:
  struct Pair {
    at::Tensor original;
    at::Tensor stand_in;
  };
  struct Memory {
    c10::Storage original;
    c10::Storage stand_in;
  };
  at::Tensor dense_on_cpu(const at::Tensor& tensor);
  at::Tensor sparse_on_cpu(const at::Tensor& tensor);
  at::Tensor compressed_on_cpu(const at::Tensor& tensor);
  at::Tensor dense_on_device(const at::Tensor& result, c10::Device device);
  at::Tensor sparse_on_device(const at::Tensor& result, c10::Device device, const std::string& op);
  at::Tensor compressed_on_device(const at::Tensor& result, c10::Device device, const std::string& op);
  c10::Storage storage_on_device(const c10::Storage& storage, c10::Device device);
  void write_back_dense(const Pair& pair, c10::Device device);
  void write_back_sparse(const Pair& pair, c10::Device device);
  static void move_memory(const Memory& memory);

  std::vector<Pair> tensors;
  std::vector<Memory> memories;
};

} // namespace assay
