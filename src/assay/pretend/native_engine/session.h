// What the parts of the engine share: the open session, its rules, and how events reach Python.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Storage.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay {

// What an operator does on the pretended device; see OperatorRule in rules.py, from which it is filled.
struct Rule {
  enum Check { NONE, ALL, ITERATOR, PLACEHOLDER, INDEX, WHERE, FILL, PUT }; // in the order of rules.DeviceCheck
  bool available = true;
  bool available_sparse = true; // for tensors of a sparse layout
  bool on_cpu = false;
  Check check = NONE;
  bool structured = false;      // torch's messages name the wrapper of a structured operator in another way
  std::string missing;          // the text of the error where it is not available
  std::string waits_when;       // a condition on its arguments, see devices/operators/conditions.py
  std::string why_waits;
  // The ways in which its result may differ from run to run.
  struct Nondeterminism {
    std::string named;         // the name torch's error gives it
    std::string when;          // a condition on its arguments
    std::string deterministic; // what it does when asked for a deterministic form: raises, switches, ignores
  };
  std::vector<Nondeterminism> nondeterminism;
  std::vector<std::string> missing_dtypes; // for which it has no kernel there, though the device has the dtype
  std::string dtype_error;                 // "... {} ...": what it says of them
  std::string refused_when;                // a condition: there is no kernel for such a call
  std::string refusal;                     // what the device says then
  // For these the CPU has no kernel: the values are computed in a wider dtype and brought back.
  std::vector<std::string> narrow;
  c10::ScalarType computed_in = c10::kDouble;
};

struct Session {
  c10::DeviceType type;
  c10::DeviceIndex count;
  PyObject* rule_of = nullptr; // name -> tuple, see read_rule
  PyObject* record = nullptr;  // (kind, operator, device, why, source, target, non_blocking, pinned, elements)
  bool cpu_fallback = false;   // PYTORCH_ENABLE_MPS_FALLBACK=1
  std::map<c10::ScalarType, std::string> missing_dtypes;
  std::string fallback_warning; // "... {} ...": where a missing operator runs on the CPU instead
  std::string placeholder;      // what mps says of an operand without a Metal buffer
  std::string bad_index;        // what the device says of an index it does not have
  std::map<std::string, std::string> copy_waits; // "to host, pinned": why such a copy synchronizes with the device
  std::shared_mutex rules_mutex;
  std::unordered_map<const c10::OperatorName*, std::unique_ptr<Rule>> rules; // those that were asked for
};

// The session that is open, or null. One at a time; opened and closed with the GIL held. Inside an operator (`Entered`)
// it is the one that was open when the operator was called, also if another thread closes it meanwhile.
Session* session();
void open_session(Session* session);
void close_session();


// An operator runs to its end in the session in which it began. A session is never freed, so this needs no count.
class Entered {
 public:
  Entered();
  ~Entered();
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  Session* before;
};

// The kinds of device that can be pretended. Adapters of other makers share PrivateUse1, one name to a process.
constexpr std::array KINDS = {c10::kCUDA, c10::kMPS, c10::kXPU, c10::kHPU, c10::kPrivateUse1};
bool is_kind(c10::DeviceType type);
c10::DispatchKey key_of(c10::DeviceType type, c10::DispatchKey functionality = c10::DispatchKey::Dense);
c10::DeviceIndex current_index();
void set_current_index(c10::DeviceIndex index);
c10::Device with_index(c10::Device device); // "cuda" -> "cuda:0", and an error for a device that is not there
bool is_pretended(const at::Tensor& tensor);
bool is_open(c10::DeviceType type);
std::string str(c10::Device device);

const Rule& rule_of(const c10::OperatorHandle& op);

struct Copy {
  std::string source;
  std::string target;
  bool non_blocking = false;
  bool pinned = false;
  int64_t elements = 0;
};
void record(const char* kind, const std::string& op, const std::string& device, const std::string& why,
            const Copy& copy = {});

// devices.cpp: guards, hooks, allocators and generators of the kinds of device.
void install_devices(c10::DeviceType type);
void remove_devices(c10::DeviceType type);
c10::Allocator* allocator_of(c10::DeviceType type);
void resize(const c10::Storage& storage, size_t bytes);
bool is_pinned(const void* data);
const at::Generator& default_generator(c10::DeviceType type, c10::DeviceIndex index);
at::Generator host_generator(const at::Generator& generator); // the CPU generator inside a pretend one

// rules.cpp: what a real device would refuse.
using Operands = std::vector<std::pair<std::string, at::Tensor>>; // argument name and tensor, outputs first
void check_available(const c10::OperatorHandle& op, bool available, const Rule& rule, c10::Device device);
void check_devices(const c10::OperatorHandle& op, const Rule& rule, const Operands& operands,
                   const torch::jit::Stack& stack);
void check_deterministic(const c10::OperatorHandle& op, const Rule& rule, c10::Device device,
                         const torch::jit::Stack& stack);
void check_operand_dtypes(const c10::OperatorHandle& op, const Rule& rule, const Operands& operands,
                          c10::Device device);
void check_refused(const c10::OperatorHandle& op, const Rule& rule, c10::Device device,
                   const torch::jit::Stack& stack);
bool is_among(const std::vector<std::string>& dtypes, c10::ScalarType dtype);
void check_dtype(const std::string& op, c10::ScalarType dtype, c10::Device device);
void note_wait(const c10::OperatorHandle& op, const Rule& rule, c10::Device device, const torch::jit::Stack& stack);

} // namespace assay
