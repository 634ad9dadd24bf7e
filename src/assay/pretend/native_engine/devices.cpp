// Guards, hooks, allocators and generators: what torch asks of a kind of device, answered with host memory.
#include "session.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/HPUHooksInterface.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/detail/XPUHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

namespace assay {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

constexpr int MOST = 16; // devices of one kind

// Memory --------------------------------------------------------------------------------------------------------------

// Host memory under a device's name.
struct PretendAllocator final : c10::Allocator {
  explicit PretendAllocator(DeviceType type) : type(type) {}
  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr host = c10::GetCPUAllocator()->allocate(bytes);
    void* data = host.get();
    auto* owner = new c10::DataPtr(std::move(host));
    return {data, owner, &free, Device(type, current_index())};
  }
  static void free(void* owner) {
    delete static_cast<c10::DataPtr*>(owner);
  }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
  DeviceType type;
};

std::mutex pinned_mutex;
std::map<const char*, size_t> pinned; // start -> bytes

// Host memory that counts as page-locked.
struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr host = c10::GetCPUAllocator()->allocate(bytes);
    void* data = host.get();
    {
      std::lock_guard lock(pinned_mutex);
      pinned[static_cast<const char*>(data)] = bytes;
    }
    auto* owner = new c10::DataPtr(std::move(host));
    return {data, owner, &free, Device(c10::kCPU)};
  }
  static void free(void* owner) {
    auto* host = static_cast<c10::DataPtr*>(owner);
    {
      std::lock_guard lock(pinned_mutex);
      pinned.erase(static_cast<const char*>(host->get()));
    }
    delete host;
  }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    std::memcpy(target, source, bytes);
  }
};

PinnedAllocator pinned_allocator;

// Random numbers ------------------------------------------------------------------------------------------------------

// A generator of the pretended device: a CPU generator under its name. Its numbers are not those of a real device.
struct PretendGenerator final : c10::GeneratorImpl {
  explicit PretendGenerator(Device device, at::Generator host = at::detail::createCPUGenerator())
      : GeneratorImpl(device, c10::DispatchKeySet(key_of(device.type()))), host(std::move(host)) {}
  void set_current_seed(uint64_t seed) override {
    host.set_current_seed(seed);
    offset = 0;
  }
  void set_offset(uint64_t next) override {
    offset = next;
  }
  uint64_t get_offset() const override {
    return offset;
  }
  uint64_t current_seed() const override {
    return host.current_seed();
  }
  uint64_t seed() override {
    return host.seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    host.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return host.unsafeGetGeneratorImpl()->get_state();
  }
  PretendGenerator* clone_impl() const override {
    return new PretendGenerator(device_, host.clone());
  }
  at::Generator host;
  uint64_t offset = 0;
};

at::Generator new_generator(DeviceType type, DeviceIndex index) {
  return at::make_generator<PretendGenerator>(with_index(Device(type, index < 0 ? current_index() : index)));
}

// Guards --------------------------------------------------------------------------------------------------------------

// The current device, one per thread; one stream each, on which everything is done as soon as it is asked for.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  explicit Guard(DeviceType kind) : kind(kind) {}
  DeviceType type() const override {
    return kind;
  }
  Device exchangeDevice(Device device) const override {
    const Device last = getDevice();
    set_current_index(with_index(device).index());
    return last;
  }
  Device getDevice() const override {
    return {kind, current_index()};
  }
  void setDevice(Device device) const override {
    set_current_index(with_index(device).index());
  }
  void uncheckedSetDevice(Device device) const noexcept override {
    const Session* now = session();
    if (now && device.index() >= 0 && device.index() < now->count) {
      set_current_index(device.index());
    }
  }
  Stream getStream(Device device) const override {
    // Autograd asks where nothing may be thrown, also for a tensor of an earlier block that had more devices.
    return Stream(Stream::DEFAULT, device.has_index() ? device : Device(kind, current_index()));
  }
  Stream getDefaultStream(Device device) const override {
    return getStream(device);
  }
  Stream getStreamFromGlobalPool(Device device, bool = false) const override {
    return getNewStream(device);
  }
  Stream getNewStream(Device device, int = 0) const override {
    TORCH_CHECK(is_open(kind), "assay: a stream of ", device, " can be made only inside `with pretend(...)`");
    return getStream(device);
  }
  Stream exchangeStream(Stream stream) const override {
    return stream;
  }
  void record(void** event, const Stream&, const DeviceIndex, const c10::EventFlag) const override {
    *event = const_cast<Guard*>(this); // an event that has happened
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  DeviceIndex deviceCount() const noexcept override {
    return is_open(kind) ? session()->count : 0;
  }
  bool queryStream(const Stream&) const override {
    return true;
  }
  void synchronizeStream(const Stream& stream) const override {
    assay::record("sync", "synchronize stream", str(stream.device()), "synchronizes with a stream");
  }
  void synchronizeEvent(void*) const override {
    assay::record("sync", "synchronize event", str(getDevice()), "synchronizes with an event");
  }
  void synchronizeDevice(const DeviceIndex index) const override {
    assay::record("sync", "synchronize", str(Device(kind, index)), "synchronizes with the device");
  }
  double elapsedTime(void*, void*, const DeviceIndex) const override {
    return 0.0;
  }
  DeviceType kind;
};

// Hooks ---------------------------------------------------------------------------------------------------------------

// The answers that the kinds have in common.
template <typename Interface, DeviceType TYPE>
struct Hooks : Interface {
  bool isBuilt() const override {
    return is_open(TYPE);
  }
  bool isAvailable() const override {
    return is_open(TYPE);
  }
  bool hasPrimaryContext(DeviceIndex) const override {
    return is_open(TYPE);
  }
  void init() const override {}
  DeviceIndex deviceCount() const override {
    return is_open(TYPE) ? session()->count : 0;
  }
  void setCurrentDevice(DeviceIndex index) const override {
    set_current_index(index);
  }
  DeviceIndex getCurrentDevice() const override {
    return current_index();
  }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    const auto last = current_index();
    set_current_index(index);
    return last;
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    return index < 0 ? current_index() : exchangeDevice(index);
  }
  bool isPinnedPtr(const void* data) const override {
    return is_pinned(data);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return &pinned_allocator;
  }
  Device getDeviceFromPtr(void*) const override {
    return {TYPE, current_index()};
  }
  const at::Generator& getDefaultGenerator(DeviceIndex index = -1) const override {
    return default_generator(TYPE, index);
  }
  at::Generator getNewGenerator(DeviceIndex index = -1) const override {
    return new_generator(TYPE, index);
  }
};

struct CudaHooks final : Hooks<at::CUDAHooksInterface, c10::kCUDA> {
  bool hasCUDA() const override {
    return is_open(c10::kCUDA);
  }
  DeviceIndex current_device() const override {
    return current_index();
  }
  int getNumGPUs() const override {
    return deviceCount();
  }
  void deviceSynchronize(DeviceIndex index) const override {
    record("sync", "synchronize", str(Device(c10::kCUDA, index)), "synchronizes with the device");
  }
};

struct MpsHooks final : Hooks<at::MPSHooksInterface, c10::kMPS> {
  bool hasMPS() const override {
    return is_open(c10::kMPS);
  }
  bool isOnMacOSorNewer(unsigned, unsigned) const override {
    return true;
  }
  c10::Allocator* getMPSDeviceAllocator() const override {
    return allocator_of(c10::kMPS);
  }
  void deviceSynchronize() const override {
    record("sync", "synchronize", "mps:0", "synchronizes with the device");
  }
  void commitStream() const override {}
  void emptyCache() const override {}
};

struct XpuHooks final : Hooks<at::XPUHooksInterface, c10::kXPU> {
  bool hasXPU() const override {
    return is_open(c10::kXPU);
  }
  DeviceIndex getNumGPUs() const override {
    return deviceCount();
  }
  DeviceIndex current_device() const override {
    return current_index();
  }
  int32_t getGlobalIdxFromDevice(const Device& device) const override {
    return with_index(device).index();
  }
  void deviceSynchronize(DeviceIndex index) const override {
    record("sync", "synchronize", str(Device(c10::kXPU, index)), "synchronizes with the device");
  }
};

struct HpuHooks final : Hooks<at::HPUHooksInterface, c10::kHPU> {
  bool hasHPU() const override {
    return is_open(c10::kHPU);
  }
};

// Registered once and for the whole process. torch takes PrivateUse1 for the accelerator from the moment on at which it
// has a name, so these hooks are asked when its device is closed, and when another kind is open.
struct PrivateUse1Hooks final : Hooks<at::PrivateUse1HooksInterface, c10::kPrivateUse1> {
  c10::Allocator* getPinnedMemoryAllocator() const override {
    TORCH_CHECK(session(), "Cannot access accelerator device when none is available.");
    return &pinned_allocator;
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize(storage, bytes);
  }
};

// torch makes its hooks object once, at first use, and a CPU-only build makes the empty one. Our hooks have the same
// members (none), so giving that object our table of virtual functions turns it into ours, and back.
class Table {
 public:
  template <typename Interface, typename Ours>
  static Table between(const Interface& torchs, const Ours& ours) {
    static_assert(sizeof(Interface) == sizeof(Ours) && sizeof(Interface) == sizeof(void*));
    return {const_cast<void*>(static_cast<const void*>(&torchs)), static_cast<const void*>(&ours)};
  }
  void install() {
    std::memcpy(object, ours, sizeof(void*));
  }
  void remove() {
    std::memcpy(object, &before, sizeof(void*));
  }

 private:
  Table(void* object, const void* ours) : object(object), ours(ours) {
    std::memcpy(&before, object, sizeof(void*));
  }
  void* object;
  const void* ours;
  void* before;
};

// Null for PrivateUse1, whose hooks are registered.
Table* hooks_of(DeviceType type) {
  static const CudaHooks cuda;
  static const MpsHooks mps;
  static const XpuHooks xpu;
  static const HpuHooks hpu;
  static Table cuda_table = Table::between<at::CUDAHooksInterface>(at::detail::getCUDAHooks(), cuda);
  static Table mps_table = Table::between<at::MPSHooksInterface>(at::detail::getMPSHooks(), mps);
  static Table xpu_table = Table::between<at::XPUHooksInterface>(at::detail::getXPUHooks(), xpu);
  static Table hpu_table = Table::between<at::HPUHooksInterface>(at::detail::getHPUHooks(), hpu);
  static const std::map<DeviceType, Table*> tables = {
      {c10::kCUDA, &cuda_table}, {c10::kMPS, &mps_table}, {c10::kXPU, &xpu_table}, {c10::kHPU, &hpu_table}};
  const auto found = tables.find(type);
  return found == tables.end() ? nullptr : found->second;
}

void install_hooks(DeviceType type) {
  if (auto* table = hooks_of(type)) {
    return table->install();
  }
  static PrivateUse1Hooks hooks;
  if (!at::isPrivateUse1HooksRegistered()) {
    at::RegisterPrivateUse1HooksInterface(&hooks);
  }
}

// One for each kind, made when it is first asked for, and never freed.
template <typename Made>
Made& of_kind(DeviceType type) {
  static std::mutex mutex;
  static std::map<DeviceType, std::unique_ptr<Made>> all;
  std::lock_guard lock(mutex);
  auto& found = all[type];
  if (!found) {
    found = std::make_unique<Made>(type);
  }
  return *found;
}

} // namespace

c10::Allocator* allocator_of(DeviceType type) {
  return &of_kind<PretendAllocator>(type);
}

// What torch's C code does for the devices of its build only (UntypedStorage.resize_ in StorageMethods.cpp).
void resize(const c10::Storage& storage, size_t bytes) {
  auto* impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
  auto data = allocator_of(impl->device_type())->allocate(bytes);
  data.unsafe_set_device(impl->device());
  std::memcpy(data.get(), impl->data(), std::min(bytes, impl->nbytes()));
  impl->set_data_ptr_noswap(std::move(data));
  impl->set_nbytes(bytes);
}

bool is_pinned(const void* data) {
  std::lock_guard lock(pinned_mutex);
  const auto* place = static_cast<const char*>(data);
  auto after = pinned.upper_bound(place);
  if (after == pinned.begin()) {
    return false;
  }
  const auto& block = *--after;
  return place < block.first + std::max<size_t>(block.second, 1);
}

const at::Generator& default_generator(DeviceType type, DeviceIndex index) {
  static std::mutex mutex;
  static std::map<std::pair<DeviceType, DeviceIndex>, at::Generator> all;
  std::lock_guard lock(mutex);
  const auto place = std::make_pair(type, index < 0 ? current_index() : index);
  auto found = all.find(place);
  if (found == all.end()) {
    found = all.emplace(place, new_generator(type, place.second)).first;
  }
  return found->second;
}

at::Generator host_generator(const at::Generator& generator) {
  return static_cast<PretendGenerator*>(generator.unsafeGetGeneratorImpl())->host;
}

void install_devices(DeviceType type) {
  // FakeTensorMode replaces a guard of CUDA that reports no devices, as ours does between sessions, by one that does
  // nothing (c10's ensureCUDADeviceGuardSet): what was ours before is ours again.
  static std::set<DeviceType> installed;
  auto& guard = c10::impl::device_guard_impl_registry[static_cast<size_t>(type)];
  TORCH_CHECK(!guard.load() || installed.count(type), "this build of torch has ", type,
              " of its own: assay pretends a kind of device only where torch was built without it");
  installed.insert(type);
  guard.store(&of_kind<Guard>(type));
  c10::SetAllocator(type, allocator_of(type), 1);
  install_hooks(type);
  at::globalContext().lazyInitDevice(type);
}

void remove_devices(DeviceType type) {
  // The guard stays: torch asks it where nothing may be thrown (autograd, of any tensor that outlives the session),
  // and without one the process would end. Of a device that is gone it says that there are none.
  if (auto* table = hooks_of(type)) {
    table->remove();
  }
}

} // namespace assay
