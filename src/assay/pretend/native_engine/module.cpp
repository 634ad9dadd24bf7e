// The engine as a Python module.
#include "operators.h"
#include "session.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/device_lazy_init.h>

namespace py = pybind11;

namespace assay {
namespace {

c10::DeviceType type_of(const std::string& name) {
  return c10::Device(name).type();
}

c10::ScalarType dtype_of(const std::string& name) {
  static const std::map<std::string, c10::ScalarType> dtypes = {
      {"float64", c10::kDouble},         {"float32", c10::kFloat},      {"float16", c10::kHalf},
      {"bfloat16", c10::kBFloat16},      {"complex64", c10::kComplexFloat}, {"complex128", c10::kComplexDouble},
      {"complex32", c10::kComplexHalf},  {"int64", c10::kLong},         {"int32", c10::kInt},
      {"int16", c10::kShort},            {"int8", c10::kChar},          {"uint8", c10::kByte},
      {"uint16", c10::kUInt16},          {"uint32", c10::kUInt32},      {"uint64", c10::kUInt64},
      {"bool", c10::kBool},              {"float8_e4m3fn", c10::ScalarType::Float8_e4m3fn},
      {"float8_e5m2", c10::ScalarType::Float8_e5m2}, {"float8_e4m3fnuz", c10::ScalarType::Float8_e4m3fnuz},
      {"float8_e5m2fnuz", c10::ScalarType::Float8_e5m2fnuz}};
  const auto found = dtypes.find(name);
  TORCH_CHECK(found != dtypes.end(), "no dtype ", name);
  return found->second;
}

void open(const std::string& device, int count, py::object rule_of, py::object record, bool cpu_fallback,
          const std::map<std::string, std::string>& missing_dtypes, const std::map<std::string, std::string>& texts,
          const std::map<std::string, std::string>& copy_waits) {
  TORCH_CHECK(!session(), "a pretend device is open already");
  const auto type = type_of(device);
  auto* next = new Session{type, static_cast<c10::DeviceIndex>(count)};
  next->cpu_fallback = cpu_fallback;
  for (const auto& [dtype, text] : missing_dtypes) {
    next->missing_dtypes[dtype_of(dtype)] = text;
  }
  next->fallback_warning = texts.at("fallback_warning");
  next->placeholder = texts.at("placeholder");
  next->bad_index = texts.at("bad_index");
  next->copy_waits = copy_waits;
  install_devices(type);
  install_operators(type);
  if (torch::utils::is_device_lazy_init_supported(type)) {
    torch::utils::register_fork_handler_for_device_init(type); // a forked process cannot use it, as with real ones
  }
  next->rule_of = rule_of.release().ptr();
  next->record = record.release().ptr();
  open_session(next); // never freed: another thread may be inside an operator
}

void close(const std::string& device) {
  const auto type = type_of(device);
  close_session();
  remove_devices(type);
  if (torch::utils::is_device_lazy_init_supported(type)) {
    torch::utils::set_requires_device_init(type, true);
  }
}

py::object generator(const std::string& device, int index) {
  const auto& found = default_generator(type_of(device), static_cast<c10::DeviceIndex>(index));
  return py::reinterpret_steal<py::object>(THPGenerator_Wrap(found));
}

void resize_storage(const py::object& storage, size_t bytes) {
  resize(torch::createStorage(storage.ptr()), bytes);
}

} // namespace
} // namespace assay

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("open", &assay::open);
  module.def("close", &assay::close);
  module.def("current_device", [] { return static_cast<int>(assay::current_index()); });
  module.def("set_device", [](int index) { assay::set_current_index(static_cast<c10::DeviceIndex>(index)); });
  module.def("generator", &assay::generator);
  module.def("resize_storage", &assay::resize_storage);
}
