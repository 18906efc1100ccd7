// What was found out about arrays that a caller passes again and again, such as a graph's: kept for
// as long as the arrays live and are not changed.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace fovea {

// An array as it is now. Every change of it through libtorch counts its version up.
class ArrayIdentity {
 public:
  // Nothing where libtorch does not count the changes of the array.
  static std::optional<ArrayIdentity> of(const at::Tensor& x) {
    if (x.is_inference() || !x.has_storage()) return std::nullopt;
    return ArrayIdentity(x);
  }
  bool is_alive() const { return !storage_.expired(); }
  bool is(const at::Tensor& x) const {
    return is_alive() && data_ == x.const_data_ptr() && version_ == x._version() &&
           type_ == x.scalar_type() && x.sizes().equals(sizes_) && x.strides().equals(strides_);
  }

 private:
  explicit ArrayIdentity(const at::Tensor& x)
      : storage_(x.storage().getWeakStorageImpl()),
        data_(x.const_data_ptr()),
        version_(static_cast<int64_t>(x._version())),
        type_(x.scalar_type()),
        sizes_(x.sizes().vec()),
        strides_(x.strides().vec()) {}

  c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
  const void* data_;
  int64_t version_;
  at::ScalarType type_;
  std::vector<int64_t> sizes_, strides_;
};

template <class Value>
class ArrayMemo {
 public:
  using Arrays = std::vector<at::Tensor>;
  using Numbers = std::vector<int64_t>;

  std::optional<Value> find(const Arrays& arrays, const Numbers& numbers) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](const Entry& entry) {
      return !std::ranges::all_of(entry.arrays, &ArrayIdentity::is_alive);
    });
    for (const auto& entry : entries_) {
      if (entry.numbers != numbers || entry.arrays.size() != arrays.size()) continue;
      size_t same = 0;
      while (same < arrays.size() && entry.arrays[same].is(arrays[same])) ++same;
      if (same == arrays.size()) return entry.value;
    }
    return std::nullopt;
  }

  void keep(const Arrays& arrays, Numbers numbers, Value value) {
    Entry entry{{}, std::move(numbers), std::move(value)};
    for (const auto& x : arrays) {
      auto identity = ArrayIdentity::of(x);
      if (!identity) return;
      entry.arrays.push_back(*std::move(identity));
    }
    const std::lock_guard lock(mutex_);
    constexpr size_t kMost = 16;
    if (entries_.size() == kMost) entries_.erase(entries_.begin());
    entries_.push_back(std::move(entry));
  }

 private:
  struct Entry {
    std::vector<ArrayIdentity> arrays;
    Numbers numbers;
    Value value;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;  // the oldest first
};

}  // namespace fovea
