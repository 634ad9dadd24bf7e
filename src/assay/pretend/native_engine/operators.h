// What is registered with torch's dispatcher.
#pragma once

#include <c10/core/Device.h>
#include <torch/library.h>

namespace assay {

// Kernels for a kind of device, once per process.
void install_operators(c10::DeviceType type);

// cells.cpp: recurrent cells that torch has for accelerators only.
void install_cells(torch::Library& aten);

// autocast.cpp: what runs in which precision under torch.autocast, on devices for which torch leaves that to adapters.
void install_autocast(torch::Library& aten, c10::DeviceType type);

// collectives.cpp: those of torch.distributed.
void install_collectives(torch::Library& c10d);

} // namespace assay
