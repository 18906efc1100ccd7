#include "fovea/nn/decoder_cache.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

namespace fovea::nn {
namespace {

constexpr int64_t kLeastRoom = 16;

bool counts_up(const std::vector<int64_t>& numbers, int64_t n) {
  if (static_cast<int64_t>(numbers.size()) != n) return false;
  for (int64_t i = 0; i < n; ++i) {
    if (numbers[static_cast<size_t>(i)] != i) return false;
  }
  return true;
}

std::vector<int64_t> listed(const at::Tensor& numbers) {
  const at::Tensor flat = numbers.cpu().contiguous();
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

}  // namespace

void StepCache::append(const at::Tensor& both) {
  const int64_t wanted = length_ + both.size(1);
  if (!store_.defined() || store_.size(1) < wanted) {
    const at::Tensor larger =
        at::empty({both.size(0), std::max(2 * wanted, kLeastRoom), both.size(2)}, both.options());
    if (store_.defined()) larger.narrow(1, 0, length_).copy_(store_.narrow(1, 0, length_));
    store_ = larger;
    spare_ = at::Tensor();
  }
  store_.narrow(1, length_, both.size(1)).copy_(both);
  length_ = wanted;
}

HeadsCache StepCache::heads(int64_t heads) const {
  const at::Tensor there = rows().unflatten(-1, {2, heads, store_.size(2) / (2 * heads)});
  return {there.select(2, 0).transpose(1, 2), there.select(2, 1).transpose(1, 2)};
}

at::Tensor StepCache::rows() const { return store_.narrow(1, 0, length_); }

void StepCache::select(const at::Tensor& rows) {
  if (!store_.defined()) return;
  if (!spare_.defined() || spare_.size(0) < rows.size(0)) {
    spare_ = at::empty({rows.size(0), store_.size(1), store_.size(2)}, store_.options());
  }
  spare_ = spare_.narrow(0, 0, rows.size(0));
  at::Tensor there = spare_.narrow(1, 0, length_);
  at::index_select_out(there, store_.narrow(1, 0, length_), 0, rows);
  std::swap(store_, spare_);
}

Readers::Readers(int64_t memories, at::Tensor lengths)
    : memory_of_(static_cast<size_t>(memories)), memories_(memories), lengths_(std::move(lengths)) {
  std::iota(memory_of_.begin(), memory_of_.end(), 0);
}

at::Tensor Readers::select(const at::Tensor& rows) {
  std::vector<int64_t> kept, readers,
      slot_of;  // memories in order, how many rows read each, a row's place among them
  int64_t before = -1;
  for (const int64_t row : listed(rows)) {
    const int64_t memory = memory_of_[static_cast<size_t>(row)];
    if (memory != before) {
      kept.push_back(memory);
      readers.push_back(0);
    }
    slot_of.push_back(readers.back()++);
    before = memory;
  }
  const bool same = counts_up(kept, memories_);
  memories_ = static_cast<int64_t>(kept.size());
  const int64_t most = readers.empty() ? 0 : *std::max_element(readers.begin(), readers.end());
  memory_of_.clear();
  std::vector<int64_t> slots;
  for (int64_t m = 0, first = 0; m < memories_; first += readers[static_cast<size_t>(m)], ++m) {
    const int64_t n = readers[static_cast<size_t>(m)];
    memory_of_.insert(memory_of_.end(), static_cast<size_t>(n), m);
    for (int64_t k = 0; k < most; ++k)
      slots.push_back(first + std::min(k, n - 1));  // spare slots repeat the last reader
  }
  slots_ = rows_ = at::Tensor();
  if (slots.size() != memory_of_.size()) {
    for (size_t r = 0; r < slot_of.size(); ++r) slot_of[r] += memory_of_[r] * most;
    slots_ = at::tensor(slots, at::kLong);
    rows_ = at::tensor(slot_of, at::kLong);
  }
  if (same) return {};
  const at::Tensor chosen = at::tensor(kept, at::kLong);
  if (lengths_.defined()) lengths_ = lengths_.index_select(0, chosen.to(lengths_.device()));
  return chosen;
}

at::Tensor Readers::gathered(const at::Tensor& x) const {
  const at::Tensor all = slots_.defined() ? x.index_select(0, slots_.to(x.device())) : x;
  return all.reshape({memories_, -1, x.size(2)});
}

at::Tensor Readers::scattered(const at::Tensor& x) const {
  const int64_t slots = slots_.defined() ? slots_.size(0) : static_cast<int64_t>(memory_of_.size());
  const at::Tensor all = x.reshape({slots, -1, x.size(2)});
  return rows_.defined() ? all.index_select(0, rows_.to(x.device())) : all;
}

void DecoderCache::select(const at::Tensor& rows) {
  if (memory.empty()) return;
  const c10::Device device = memory[0].key.device();
  if (!counts_up(listed(rows), readers.rows())) {
    for (StepCache& cache : self) cache.select(rows.to(device));
  }
  const at::Tensor kept = readers.select(rows);
  if (!kept.defined()) return;
  for (HeadsCache& heads : memory) {
    heads.key = heads.key.index_select(0, kept.to(device));
    heads.value = heads.value.index_select(0, kept.to(device));
  }
}

}  // namespace fovea::nn
