// What is registered with torch's dispatcher.
#pragma once

#include <c10/core/Device.h>
#include <torch/library.h>

#include <string>
#include <vector>

namespace assay {

// Kernels for a kind of device, once per process; `own` are those that would else take a composite kernel.
void install_operators(c10::DeviceType type, const std::vector<std::string>& own);

// cells.cpp: recurrent cells that torch has for accelerators only.
void install_cells(torch::Library& aten, c10::DeviceType type);

} // namespace assay
