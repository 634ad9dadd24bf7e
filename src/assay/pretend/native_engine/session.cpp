#include "session.h"

#include <c10/core/TensorOptions.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>

#include <algorithm>
#include <atomic>

namespace assay {
namespace {

std::atomic<Session*> open{nullptr};
thread_local Session* entered = nullptr;
thread_local c10::DeviceIndex current = 0;

struct Gil {
  PyGILState_STATE state = PyGILState_Ensure();
  ~Gil() {
    PyGILState_Release(state);
  }
};

std::string text(PyObject* item) {
  const char* chars = PyUnicode_AsUTF8(item);
  TORCH_CHECK(chars, "a rule must be text");
  return chars;
}

// A row of engine/native.py, in the order of Rule's members.
std::unique_ptr<Rule> read_rule(PyObject* row) {
  auto rule = std::make_unique<Rule>();
  rule->available = PyObject_IsTrue(PyTuple_GetItem(row, 0));
  rule->available_sparse = PyObject_IsTrue(PyTuple_GetItem(row, 1));
  rule->on_cpu = PyObject_IsTrue(PyTuple_GetItem(row, 2));
  rule->check = static_cast<Rule::Check>(PyLong_AsLong(PyTuple_GetItem(row, 3)));
  rule->structured = PyObject_IsTrue(PyTuple_GetItem(row, 4));
  rule->missing = text(PyTuple_GetItem(row, 5));
  rule->waits_when = text(PyTuple_GetItem(row, 6));
  rule->why_waits = text(PyTuple_GetItem(row, 7));
  PyObject* ways = PyTuple_GetItem(row, 8);
  for (Py_ssize_t i = 0; i < PyTuple_Size(ways); ++i) {
    PyObject* way = PyTuple_GetItem(ways, i);
    rule->nondeterminism.push_back(
        {text(PyTuple_GetItem(way, 0)), text(PyTuple_GetItem(way, 1)), text(PyTuple_GetItem(way, 2))});
  }
  PyObject* dtypes = PyTuple_GetItem(row, 9);
  for (Py_ssize_t i = 0; i < PyTuple_Size(dtypes); ++i) {
    rule->missing_dtypes.push_back(text(PyTuple_GetItem(dtypes, i)));
  }
  rule->dtype_error = text(PyTuple_GetItem(row, 10));
  rule->refused_when = text(PyTuple_GetItem(row, 11));
  rule->refusal = text(PyTuple_GetItem(row, 12));
  PyObject* narrow = PyTuple_GetItem(row, 13);
  for (Py_ssize_t i = 0; i < PyTuple_Size(narrow); ++i) {
    rule->narrow.push_back(text(PyTuple_GetItem(narrow, i)));
  }
  return rule;
}

std::unique_ptr<Rule> ask_rule(const Session& now, const c10::OperatorHandle& op) {
  Gil gil;
  const auto name = toString(op.operator_name());
  TORCH_CHECK(now.rule_of, "assay: the block of `with pretend(...)` ended in another thread while ", name,
              " began in this one; let threads end before the block does");
  PyObject* row = PyObject_CallFunction(now.rule_of, "s", name.c_str());
  if (!row) {
    PyErr_Print();
    TORCH_CHECK(false, "assay could not look up the rule of ", name);
  }
  auto rule = read_rule(row);
  Py_DECREF(row);
  return rule;
}

} // namespace

Session* session() {
  return entered ? entered : open.load(std::memory_order_acquire);
}

void open_session(Session* next) {
  open.store(next, std::memory_order_release);
}

void close_session() {
  Session* last = open.exchange(nullptr);
  if (!last) {
    return;
  }
  Py_CLEAR(last->rule_of);
  Py_CLEAR(last->record);
  current = 0;
}

Entered::Entered() : before(entered) {
  entered = session();
}

Entered::~Entered() {
  entered = before;
}

bool is_open(c10::DeviceType type) {
  const Session* now = session();
  return now && now->type == type;
}

bool is_kind(c10::DeviceType type) {
  return std::find(KINDS.begin(), KINDS.end(), type) != KINDS.end();
}

c10::DispatchKey key_of(c10::DeviceType type, c10::DispatchKey functionality) {
  TORCH_CHECK(is_kind(type), "assay does not pretend ", type);
  const auto dense = c10::computeDispatchKey(c10::kFloat, c10::kStrided, c10::Device(type));
  return c10::toRuntimePerBackendFunctionalityKey(functionality, c10::toBackendComponent(dense));
}

c10::DeviceIndex current_index() {
  const Session* now = session();
  return now && current < now->count ? current : 0;
}

void set_current_index(c10::DeviceIndex index) {
  const Session* now = session();
  TORCH_CHECK(!now || (index >= 0 && index < now->count), now->bad_index);
  current = index;
}

c10::Device with_index(c10::Device device) {
  if (!device.has_index()) {
    return c10::Device(device.type(), current_index());
  }
  const Session* now = session();
  TORCH_CHECK(!now || device.index() < now->count, now->bad_index);
  return device;
}

bool is_pretended(const at::Tensor& tensor) {
  return is_kind(tensor.device().type());
}

std::string str(c10::Device device) {
  return device.str();
}

const Rule& rule_of(const c10::OperatorHandle& op) {
  auto& now = *session();
  const auto* name = &op.operator_name();
  {
    std::shared_lock lock(now.rules_mutex);
    const auto found = now.rules.find(name);
    if (found != now.rules.end()) {
      return *found->second;
    }
  }
  auto rule = ask_rule(now, op); // outside the lock: Python may switch threads
  std::unique_lock lock(now.rules_mutex);
  return *now.rules.emplace(name, std::move(rule)).first->second;
}

void record(const char* kind, const std::string& op, const std::string& device, const std::string& why,
            const Copy& copy) {
  const Session* now = session();
  if (!now) {
    return;
  }
  Gil gil;
  if (!now->record) { // closed by another thread meanwhile: nobody listens
    return;
  }
  PyObject* done = PyObject_CallFunction(
      now->record, "ssssssOOL", kind, op.c_str(), device.c_str(), why.c_str(), copy.source.c_str(),
      copy.target.c_str(), copy.non_blocking ? Py_True : Py_False, copy.pinned ? Py_True : Py_False,
      static_cast<long long>(copy.elements));
  if (!done) { // a listener raised: torch.cuda.set_sync_debug_mode("error") does
    python_error raised;
    raised.persist();
    throw raised;
  }
  Py_DECREF(done);
}

} // namespace assay
