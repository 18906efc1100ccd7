#include "train/descent/divided.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "data/random.h"
#include "train/sums/rank_sum.h"

namespace fovea::train {
namespace {

constexpr int64_t kBucketBytes = 4 << 20;  // enough that what a message costs does not count

class Notice : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit Notice(std::function<void()> call) : call_(std::move(call)) {}
  void operator()(const torch::autograd::Variable&) override { call_(); }

 private:
  std::function<void()> call_;
};

torch::Tensor flat_doubles(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& tensor : tensors)
    flat.push_back(tensor.detach().reshape({-1}).to(torch::kCPU, torch::kFloat64));
  return torch::cat(flat);
}

}  // namespace

DividedGradient::DividedGradient(const torch::nn::Module& model,
                                 std::vector<torch::Tensor> parameters, const Division& division,
                                 Ranks* ranks, ItemsOfPart given, size_t room)
    : division_(division),
      ranks_(ranks),
      given_(given),
      own_(parts_of_rank(division.parts, ranks ? ranks->rank() : 0, ranks ? ranks->size() : 1)),
      parameters_(std::move(parameters)),
      buffers_(model.buffers()),
      bucket_of_(parameters_.size()),
      offset_of_(parameters_.size()),
      wanted_(parameters_.size(), true) {
  make_buckets();
  std::vector<Addends> addends;
  for (const Bucket& bucket : buckets_)
    addends.push_back(
        {bucket.numbers, parameters_[bucket.members[0]].options().requires_grad(false)});
  const auto figures = 2 * static_cast<size_t>(most_parts()) + parameters_.size() + buffers_.size();
  gradients_.emplace(addends, RoomOfRank{figures, room}, division_, ranks_);
  for (size_t i = 0; i < parameters_.size(); ++i)
    torch::autograd::impl::set_post_acc_grad_hooks(
        parameters_[i], std::make_unique<Notice>([this, i] { on_gradient(i); }));
}

void DividedGradient::make_buckets() {
  // Backward passes reach the last layers first.
  for (size_t i = parameters_.size(), bytes = 0; i-- > 0;) {
    const torch::Tensor& p = parameters_[i];
    const bool fits = !buckets_.empty() && bytes < kBucketBytes &&
                      parameters_[buckets_.back().members[0]].scalar_type() == p.scalar_type();
    if (!fits) {
      buckets_.emplace_back();
      bytes = 0;
    }
    Bucket& bucket = buckets_.back();
    bucket.members.push_back(i);
    offset_of_[i] = bucket.numbers;
    bucket.numbers += p.numel();
    bucket_of_[i] = buckets_.size() - 1;
    bytes += static_cast<size_t>(p.numel() * p.element_size());
  }
}

DividedGradient::~DividedGradient() {
  for (const torch::Tensor& p : parameters_)
    torch::autograd::impl::set_post_acc_grad_hooks(p, nullptr);
}

Loss DividedGradient::compute(const Batch& batch, const LossOf& loss, const std::string& step) {
  running_ = false;
  used_.assign(parameters_.size(), false);
  changed_.assign(buffers_.size(), false);
  sums_.clear();
  counts_.clear();
  buffers_after_.clear();
  remember_buffers();
  gradients_->clear();
  try {
    for (int64_t part = own_.first; part < own_.end; ++part) run_part(batch, part, loss);
    restore_buffers();
    const Figures figures = exchange(step);
    set_gradients(figures, step);
    set_buffers(batch, figures, step);
    // Whatever draws between steps must not see which part this rank computed last.
    torch::manual_seed(data::mix(batch.seed, 0xD21));
    return {torch::tensor(figures.sum / std::max(1.0, figures.count), torch::kFloat64),
            static_cast<int64_t>(figures.count)};
  } catch (...) {
    running_ = false;
    restore_buffers();
    throw;
  }
}

std::span<const int64_t> DividedGradient::items_of(const Batch& batch, int64_t part) const {
  return given_ == ItemsOfPart::kHeld ? batch.items
                                      : items_of_part(batch.items, part, division_.parts);
}

void DividedGradient::run_part(const Batch& batch, int64_t part, const LossOf& loss) {
  part_ = part;
  open_ = 0;
  moved_.assign(parameters_.size(), false);
  for (size_t number = 0; number < buckets_.size(); ++number) {
    buckets_[number].missing = buckets_[number].members.size();
    buckets_[number].room = (*gradients_)[number].room();
  }
  const auto items = items_of(batch, part);
  sums_.push_back(0);
  counts_.push_back(0);
  if (!items.empty()) {
    const uint64_t seed = data::mix(batch.seed, static_cast<uint64_t>(part));
    torch::manual_seed(data::mix(seed, 0xD20));
    restore_buffers();
    const Loss of_part = loss({items, seed, batch.epoch});
    const double mean = of_part.mean.item<double>();
    counts_.back() = static_cast<double>(of_part.count);
    sums_.back() = mean * counts_.back();
    running_ = true;
    // Whoever asked for the gradient stops where the loss is not finite. Ranks that compute a batch
    // together go through it together.
    const bool together = given_ == ItemsOfPart::kHeld;
    if (of_part.mean.requires_grad() && (together || std::isfinite(mean)))
      (of_part.mean * counts_.back()).backward();
    running_ = false;
    std::vector<torch::Tensor>& after = buffers_after_.emplace_back();
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const bool changed = !torch::equal(buffers_[i], buffers_before_[i]);
      changed_[i] = changed_[i] || changed;
      after.push_back(changed ? buffers_[i].detach().clone() : buffers_before_[i]);
    }
  }
  for (; open_ < buckets_.size(); ++open_) close(open_);
}

void DividedGradient::on_gradient(size_t parameter) {
  if (!running_) return;
  move_gradient(parameter);
  --buckets_[bucket_of_[parameter]].missing;
  close_complete_ones();
}

// In the same order on every rank, whatever the order in which gradients come.
void DividedGradient::close_complete_ones() {
  for (; open_ < buckets_.size() && buckets_[open_].missing == 0; ++open_) close(open_);
}

// At once, while it is in the processor's cache: its memory is used again for the next one.
void DividedGradient::move_gradient(size_t parameter) {
  const torch::NoGradGuard guard;
  torch::Tensor p = parameters_[parameter];
  torch::Tensor to =
      buckets_[bucket_of_[parameter]].room.narrow(0, offset_of_[parameter], p.numel());
  const torch::Tensor gradient = p.grad();
  if (gradient.defined() && gradient.is_sparse())
    throw Unsupported("a sparse gradient, expected a dense one");
  if (gradient.defined()) {
    to.copy_(gradient.reshape({-1}));
    used_[parameter] = true;
  } else {
    to.zero_();
  }
  p.mutable_grad() = torch::Tensor();
  moved_[parameter] = true;
}

// All gradients of this part are there. After the last part they are on their way, while backward goes
// on.
void DividedGradient::close(size_t number) {
  Bucket& bucket = buckets_[number];
  for (const size_t member : bucket.members)
    if (!moved_[member]) move_gradient(member);
  PartSum& sum = (*gradients_)[number];
  sum.add(part_, std::move(bucket.room));
  if (part_ + 1 == own_.end) sum.start();
}

// The parts of a rank at most.
int64_t DividedGradient::most_parts() const {
  const int64_t size = ranks_ ? ranks_->size() : 1;
  int64_t most = 0;
  for (int64_t rank = 0; rank < size; ++rank)
    most = std::max(most, parts_of_rank(division_.parts, rank, size).count());
  return most;
}

DividedGradient::Figures DividedGradient::exchange(const std::string& step) {
  const int64_t size = ranks_ ? ranks_->size() : 1, most = most_parts();
  std::vector<double> own(static_cast<size_t>(2 * most), 0);
  std::copy(sums_.begin(), sums_.end(), own.begin());
  std::copy(counts_.begin(), counts_.end(), own.begin() + most);
  own.insert(own.end(), used_.begin(), used_.end());
  own.insert(own.end(), changed_.begin(), changed_.end());
  const std::vector<double> all = gradients_->figures_of_all(own, "the losses of " + step);
  const double* row = all.data();
  Figures out{0, 0, used_, changed_};
  for (int64_t rank = 0; rank < size; ++rank, row += own.size()) {
    for (int64_t i = 0; i < parts_of_rank(division_.parts, rank, size).count(); ++i) {
      out.sum += row[i];
      out.count += row[most + i];
    }
    const double* flags = row + 2 * most;
    for (size_t i = 0; i < out.used.size(); ++i) out.used[i] = out.used[i] || flags[i] != 0;
    flags += out.used.size();
    for (size_t i = 0; i < out.changed.size(); ++i)
      out.changed[i] = out.changed[i] || flags[i] != 0;
  }
  return out;
}

void DividedGradient::set_gradients(const Figures& figures, const std::string& step) {
  const torch::NoGradGuard guard;
  const std::string what = "the gradients of " + step;
  gradients_->combine(std::max(1.0, figures.count), what);
  for (size_t number = 0; number < buckets_.size(); ++number) {
    const torch::Tensor total = (*gradients_)[number].take(what);
    for (const size_t member : buckets_[number].members) {
      if (!figures.used[member] || !wanted_[member]) continue;
      torch::Tensor p = parameters_[member];
      const torch::Tensor own = total.narrow(0, offset_of_[member], p.numel()).view(p.sizes());
      p.mutable_grad() =
          p.is_contiguous() && p.device().is_cpu() ? own : torch::empty_like(p).detach().copy_(own);
    }
  }
}

void DividedGradient::set_buffers(const Batch& batch, const Figures& figures,
                                  const std::string& step) {
  const torch::NoGradGuard guard;
  std::vector<size_t> changed;
  int64_t size = 0;
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (figures.changed[i]) {
      changed.push_back(i);
      size += buffers_[i].numel();
    }
  if (changed.empty()) return;
  RankSum sum({size, torch::kFloat64}, division_, ranks_);
  int64_t filled = 0;  // parts that have items, of all ranks
  size_t own = 0;
  for (int64_t part = 0; part < division_.parts; ++part) {
    const bool has_items = !items_of(batch, part).empty();
    filled += has_items;
    if (part < own_.first || part >= own_.end) continue;
    torch::Tensor flat = sum.room();
    flat.zero_();
    if (has_items) {
      std::vector<torch::Tensor> after;
      for (const size_t i : changed) after.push_back(buffers_after_[own][i]);
      flat.narrow(0, 0, size).copy_(flat_doubles(after));
      ++own;
    }
    sum.add(part, std::move(flat));
  }
  const std::string what = "the buffers of " + step;
  sum.start();
  sum.combine(static_cast<double>(std::max<int64_t>(1, filled)), what);
  const torch::Tensor mean = sum.take(what);
  int64_t at = 0;
  for (const size_t i : changed) {
    buffers_[i].copy_(mean.narrow(0, at, buffers_[i].numel()).view(buffers_[i].sizes()));
    at += buffers_[i].numel();
  }
}

// Copies only what has changed since the last step. The version of a tensor does not tell: batch
// normalisation leaves it as it is.
void DividedGradient::remember_buffers() {
  buffers_before_.resize(buffers_.size());
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (!buffers_before_[i].defined() || !torch::equal(buffers_[i], buffers_before_[i]))
      buffers_before_[i] = buffers_[i].detach().clone();
}

void DividedGradient::restore_buffers() {
  const torch::NoGradGuard guard;
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (!torch::equal(buffers_[i], buffers_before_[i])) buffers_[i].copy_(buffers_before_[i]);
}

}  // namespace fovea::train
