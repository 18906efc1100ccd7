#include "train/sums/shared_sum.h"

#include <torch/torch.h>

#include <algorithm>

namespace fovea::train {
namespace {

int64_t bytes_of_place(int64_t count, torch::ScalarType type) {
  return rounded_up(count * static_cast<int64_t>(torch::elementSize(type)), kLine);
}

// Sums of parts that a rank holds at once at most, with the part that is being written.
int64_t places_of(const Division& division, int ranks) {
  int64_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    OrderedSum sum;
    const PartRange range = parts_of_rank(division.parts, rank, ranks);
    for (int64_t part = range.first; part < range.end; ++part) {
      most = std::max(most, static_cast<int64_t>(sum.nodes().size()) + 1);
      sum.add(part, torch::Tensor());
    }
  }
  return most;
}

}  // namespace

size_t SharedSum::bytes_of(const Addends& addends, const Division& division, const Ranks& ranks) {
  const int64_t places = places_of(division, ranks.size()) + 1;  // the last one: the sum, of rank 0
  const int64_t padded = rounded_up(addends.count, ranks.size());
  return static_cast<size_t>(
      places * bytes_of_place(padded, torch::typeMetaToScalarType(addends.options.dtype())));
}

SharedSum::SharedSum(const Addends& addends, const Division& division, const Ranks& ranks,
                     const SharedMemory& memory, size_t first)
    : size_(addends.count),
      padded_(rounded_up(size_, ranks.size())),
      places_(places_of(division, ranks.size())),
      type_(torch::typeMetaToScalarType(addends.options.dtype())),
      division_(division),
      ranks_(ranks),
      memory_(memory),
      first_(first) {}

torch::Tensor SharedSum::at(int rank, int64_t place) const {
  std::byte* const where =
      memory_.region(rank) + first_ + static_cast<size_t>(place * bytes_of_place(padded_, type_));
  return torch::from_blob(where, {padded_}, type_);
}

// Sums of this rank stand at the places 0, 1, …, and the next part behind them. It joins the one before
// it, if at all, so that its place is free again.
torch::Tensor SharedSum::room() {
  return at(ranks_.rank(), static_cast<int64_t>(own_.nodes().size()));
}

// Nobody else reads or writes this rank's slice meanwhile, so that sums of others may be changed.
void SharedSum::combine(double divisor, const std::string&) {
  const int64_t slice = padded_ / ranks_.size(), from = ranks_.rank() * slice;
  OrderedSum all;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    auto nodes = nodes_of(parts_of_rank(division_.parts, rank, ranks_.size()));
    for (size_t place = 0; place < nodes.size(); ++place) {
      nodes[place].sum = at(rank, static_cast<int64_t>(place)).narrow(0, from, slice);
      all.add(std::move(nodes[place]));
    }
  }
  torch::Tensor out = sum().narrow(0, from, slice);
  torch::div_out(out, all.total(), torch::scalar_tensor(divisor));
}

torch::Tensor SharedSum::take(const std::string&) {
  own_.clear();
  return sum().narrow(0, 0, size_);
}

}  // namespace fovea::train
