#include "train/descent/shared_optimiser.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace fovea::train {
namespace {

size_t in_lines(size_t bytes) {
  return static_cast<size_t>(rounded_up(static_cast<int64_t>(bytes), kLine));
}

std::vector<torch::Tensor> parameters_of(const std::vector<ParameterGroup>& groups) {
  std::vector<torch::Tensor> out;
  for (const ParameterGroup& group : groups)
    out.insert(out.end(), group.parameters.begin(), group.parameters.end());
  return out;
}

// The rank that updates each parameter. The largest come first, each to the rank that has least.
std::vector<int> owners_of(const std::vector<torch::Tensor>& parameters, int ranks) {
  std::vector<size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](size_t i) { return parameters[i].nbytes(); });
  std::vector<int> out(parameters.size());
  std::vector<size_t> bytes(static_cast<size_t>(ranks));
  for (const size_t i : order) {
    const auto least = std::ranges::min_element(bytes);
    *least += parameters[i].nbytes();
    out[i] = static_cast<int>(least - bytes.begin());
  }
  return out;
}

// Tensors in a rank's memory, one after the other.
class Shelf {
 public:
  explicit Shelf(std::byte* at) : at_(at) {}
  torch::Tensor like(const torch::Tensor& tensor) {
    const torch::Tensor shape =
        torch::empty_like(tensor, torch::dtype(tensor.dtype()).device(torch::kMeta));
    return take(tensor.nbytes(), [&](void* at) {
      return torch::from_blob(at, tensor.sizes(), shape.strides(), torch::dtype(tensor.dtype()));
    });
  }
  torch::Tensor number() {
    return take(sizeof(float), [](void* at) { return torch::from_blob(at, {}, torch::kFloat32); });
  }
  std::byte* at() const { return at_; }

 private:
  template <class Make>
  torch::Tensor take(size_t bytes, const Make& make) {
    torch::Tensor out = make(at_);
    at_ += in_lines(bytes);
    return out;
  }
  std::byte* at_;
};

}  // namespace

size_t SharedOptimiser::bytes_of(const std::vector<ParameterGroup>& groups, int ranks) {
  const std::vector<torch::Tensor> parameters = parameters_of(groups);
  const std::vector<int> owners = owners_of(parameters, ranks);
  std::vector<size_t> bytes(static_cast<size_t>(ranks));
  for (size_t i = 0; i < parameters.size(); ++i)  // its value, and slots twice
    bytes[static_cast<size_t>(owners[i])] +=
        5 * in_lines(parameters[i].nbytes()) + 2 * in_lines(sizeof(float));
  return std::ranges::max(bytes);
}

SharedOptimiser::SharedOptimiser(const std::vector<ParameterGroup>& groups, const Recipe& recipe,
                                 PartSums& sums, const Ranks& ranks)
    : sums_(sums), parameters_(parameters_of(groups)) {
  const std::vector<int> owners = owners_of(parameters_, ranks.size());
  std::vector<Shelf> shelves;
  for (int rank = 0; rank < ranks.size(); ++rank) shelves.emplace_back(sums.room(rank));
  const auto shelf_of = [&](size_t i) -> Shelf& { return shelves[static_cast<size_t>(owners[i])]; };
  for (size_t i = 0; i < parameters_.size(); ++i) {
    own_.push_back(owners[i] == ranks.rank());
    values_.push_back(shelf_of(i).like(parameters_[i]));
  }
  std::vector<ParameterGroup> shared = groups;
  size_t next = 0;
  for (ParameterGroup& group : shared)
    for (torch::Tensor& parameter : group.parameters) parameter = values_[next++];
  const Shelf& own = shelves[static_cast<size_t>(ranks.rank())];
  for (size_t side = 0; side < sides_.size(); ++side) {
    own_slots_[side] = own.at();
    size_t i = 0;
    sides_[side].emplace(shared, recipe, [&](const torch::Tensor& value) -> Optimiser::Slots {
      Shelf& shelf = shelf_of(i++);
      return {shelf.like(value), shelf.like(value), shelf.number()};
    });
    own_bytes_ = static_cast<size_t>(own.at() - own_slots_[side]);
  }
}

void SharedOptimiser::zero_grad() {
  for (torch::Tensor& p : parameters_) p.mutable_grad() = torch::Tensor();
}

torch::Tensor SharedOptimiser::norms(const Optimiser& own, const std::string& what) {
  const std::vector<torch::Tensor> found = own.norms();
  std::vector<double> figures(parameters_.size(), -1);  // -1: not this rank's, or no gradient
  size_t next = 0;
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].grad().defined()) figures[i] = found[next++].item<double>();
  const std::vector<double> of_all = sums_.figures_of_all(figures, what);
  std::vector<double> out;
  std::optional<torch::ScalarType> type;
  for (size_t i = 0; i < parameters_.size(); ++i)
    for (size_t at = i; at < of_all.size(); at += parameters_.size()) {
      if (of_all[at] < 0) continue;
      out.push_back(of_all[at]);
      const torch::ScalarType its = parameters_[i].scalar_type();
      type = type ? torch::promoteTypes(*type, its) : its;
    }
  return torch::tensor(out, type.value_or(torch::kFloat32));
}

void SharedOptimiser::make(double rate_factor, double most, const std::string& step) {
  const torch::NoGradGuard guard;
  const size_t after = 1 - side_;
  Optimiser& own = *sides_[after];
  std::memcpy(own_slots_[after], own_slots_[side_], own_bytes_);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!own_[i]) continue;
    values_[i].copy_(parameters_[i]);
    values_[i].mutable_grad() = parameters_[i].grad();
  }
  if (most > 0) own.clip(most, norms(own, "the norms of " + step));
  own.step(rate_factor);
  sums_.meet("the weights of " + step);
  side_ = after;
  for (size_t i = 0; i < values_.size(); ++i) parameters_[i].copy_(values_[i]);
}

std::map<std::string, torch::Tensor> SharedOptimiser::state() const {
  return sides_[side_]->state();
}

// All ranks write the same.
void SharedOptimiser::restore(const std::map<std::string, torch::Tensor>& state) {
  sides_[side_]->restore(state);
}

}  // namespace fovea::train
