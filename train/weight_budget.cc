#include "train/weight_budget.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <torch/torch.h>

#include <algorithm>
#include <atomic>

#include "data/limits.h"
#include "fovea/error.h"

namespace fovea::train {
namespace {

// Counts what libtorch takes through it and has not given back. Storages keep a pointer to their
// allocator, so it lives as long as the process.
class CountingAllocator : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes > limit() - std::min(taken_.load(), limit()))
      throw InvalidArgument("the model: " + data::beyond(data::Limit::kWeights) +
                            "; lower its widths, layers or vocabulary");
    c10::DataPtr data = inner_->allocate(bytes);
    taken_ += bytes;
    void* const place = data.get();
    const c10::Device device = data.device();
    return {place, new Held{std::move(data), bytes}, &give_back, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // data and context differ
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }

 private:
  struct Held {
    c10::DataPtr data;
    size_t bytes;
  };
  static uint64_t limit() { return data::limit(data::Limit::kWeights); }
  static void give_back(void* context) {
    const std::unique_ptr<Held> held(static_cast<Held*>(context));
    taken_ -= held->bytes;
  }

  c10::Allocator* inner_;
  static inline std::atomic<uint64_t> taken_ = 0;
};

// libtorch's CPU memory comes from the counting allocator while one lives.
class Counting {
 public:
  Counting() : before_(c10::GetCPUAllocator()) {
    static CountingAllocator counting(before_);
    c10::SetCPUAllocator(&counting, kPriority);
  }
  ~Counting() { c10::SetCPUAllocator(before_, kPriority); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  static constexpr uint8_t kPriority = 255;
  c10::Allocator* before_;
};

}  // namespace

std::shared_ptr<torch::nn::Module> built(Task& task) {
  const Counting counting;
  return task.build();
}

}  // namespace fovea::train
