#include "train/weight_budget.h"

#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "data/files/limits.h"
#include "fovea/error.h"

namespace fovea::train {
namespace {

// A model below this is built at once. A larger one is counted first.
constexpr uint64_t kSmall = uint64_t{64} << 20;

uint64_t most() { return data::limit(data::Limit::kWeights); }

[[noreturn]] void refuse(uint64_t needed) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const uint64_t round = needed < 10 * kMiB ? needed : needed / kMiB * kMiB;
  throw InvalidArgument(fmt::format(
      "the model: at least {} of weights, {}; lower its widths, layers or vocabulary",
      data::in_unit(data::Limit::kWeights, round), data::beyond(data::Limit::kWeights)));
}

struct LargerThanSmall {};

// Counts the memory that libtorch has allocated through it and not yet freed. Storages keep a
// pointer to their allocator, so each allocator lives as long as the process.
class CountingAllocator : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}

  // Memory of an earlier allocator is freed in the count of that allocator.
  void count_from_zero() { taken_ = std::make_shared<std::atomic<uint64_t>>(0); }
  c10::DataPtr allocate(size_t bytes) final {
    check(*taken_ + bytes);
    auto held = std::make_unique<Held>(taken_, bytes);
    void* const place = take(bytes, held->data);
    *taken_ += bytes;
    return {place, held.release(), &give_back, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // data and context differ
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }

 protected:
  // Throws if `total` bytes exceed the limit.
  virtual void check(uint64_t total) const = 0;
  // Allocates them. What must live as long goes into `data`.
  virtual void* take(size_t bytes, c10::DataPtr& data) = 0;
  c10::Allocator* inner() const { return inner_; }

 private:
  using Count = std::shared_ptr<std::atomic<uint64_t>>;
  struct Held {
    Held(Count of, size_t n) : count(std::move(of)), bytes(n) {}
    Count count;
    size_t bytes;
    c10::DataPtr data;
  };
  static void give_back(void* context) {
    const std::unique_ptr<Held> held(static_cast<Held*>(context));
    *held->count -= held->bytes;
  }

  c10::Allocator* inner_;
  Count taken_;
};

// Gives memory.
class Giving : public CountingAllocator {
 public:
  using CountingAllocator::CountingAllocator;
  uint64_t stop_at = 0;  // 0: at the limit

 private:
  void check(uint64_t total) const override {
    if (total > most()) refuse(total);
    if (stop_at != 0 && total > stop_at) throw LargerThanSmall{};
  }
  void* take(size_t bytes, c10::DataPtr& data) override {
    data = inner()->allocate(bytes);
    return data.get();
  }
};

// Gives every large tensor the same memory, so that a model of any size can be built to count its
// weights. The model is then discarded.
class Pretending : public CountingAllocator {
 public:
  using CountingAllocator::CountingAllocator;
  void end() {
    shared_.clear();
    size_ = 0;
  }

 private:
  static constexpr size_t kShared = 1 << 16;

  void check(uint64_t total) const override {
    if (total > most()) refuse(total);
  }
  void* take(size_t bytes, c10::DataPtr& data) override {
    if (bytes < kShared) {
      data = inner()->allocate(bytes);
      return data.get();
    }
    if (bytes > size_) {
      shared_.push_back(inner()->allocate(bytes));  // others still point into the ones before
      size_ = bytes;
    }
    return shared_.back().get();
  }

  std::vector<c10::DataPtr> shared_;
  size_t size_ = 0;
};

// While one exists, libtorch allocates CPU memory through an allocator of ours.
class Using {
 public:
  explicit Using(CountingAllocator& ours) : before_(c10::GetCPUAllocator()) {
    ours.count_from_zero();
    c10::SetCPUAllocator(&ours, kPriority);
  }
  ~Using() { c10::SetCPUAllocator(before_, kPriority); }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;

 private:
  static constexpr uint8_t kPriority = 255;
  c10::Allocator* before_;
};

// Counts without allocating. A model that fails because its tensors share memory is not counted in
// advance; the limit is checked while it is built.
void count(Task& task, Pretending& pretending) {
  const Using use(pretending);
  try {
    task.build();
  } catch (const InvalidArgument&) {
    throw;
  } catch (const std::exception&) {
  }
}

}  // namespace

std::shared_ptr<torch::nn::Module> built(Task& task) {
  static c10::Allocator* const usual = c10::GetCPUAllocator();
  static auto& giving = *new Giving(usual);
  static auto& pretending = *new Pretending(usual);
  at::Generator generator = at::globalContext().defaultGenerator(torch::kCPU);
  const torch::Tensor random = generator.get_state();
  const auto build_within = [&](uint64_t stop_at) {
    giving.stop_at = stop_at;
    const Using use(giving);
    return task.build();
  };
  try {
    return build_within(kSmall);
  } catch (const LargerThanSmall&) {
    generator.set_state(random);
  }
  count(task, pretending);
  generator.set_state(random);
  auto model = build_within(0);
  pretending.end();  // the task has let go of what was counted
  return model;
}

}  // namespace fovea::train
