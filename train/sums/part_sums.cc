#include "train/sums/part_sums.h"

#include <torch/torch.h>

#include <algorithm>

#include "train/sums/rank_sum.h"
#include "train/sums/shared_sum.h"

namespace fovea::train {
namespace {

constexpr int64_t kPage = 4096;

}  // namespace

PartSums::PartSums(const std::vector<Addends>& addends, const RoomOfRank& room,
                   const Division& division, Ranks* ranks)
    : ranks_(ranks) {
  // Figures stand first in a region of the shared memory, then each sum, then what else was asked for.
  std::vector<size_t> places = {
      static_cast<size_t>(rounded_up(static_cast<int64_t>(room.figures * sizeof(double)), kPage))};
  const bool on_cpu = std::ranges::all_of(
      addends, [](const Addends& one) { return one.options.device().is_cpu(); });
  if (ranks && division.ordered && on_cpu) {
    for (const Addends& one : addends)
      places.push_back(places.back() + SharedSum::bytes_of(one, division, *ranks));
    room_ = places.back();
    auto [memory, why_not] = SharedMemory::of(*ranks, room_ + room.bytes);
    shared_ = std::move(memory);
    why_they_travel_ = std::move(why_not);
  }
  for (size_t i = 0; i < addends.size(); ++i) {
    if (shared_)
      sums_.push_back(
          std::make_unique<SharedSum>(addends[i], division, *ranks, *shared_, places[i]));
    else
      sums_.push_back(std::make_unique<RankSum>(addends[i], division, ranks));
  }
}

void PartSums::clear() {
  for (const auto& sum : sums_) sum->clear();
}

std::vector<double> PartSums::figures_of_all(const std::vector<double>& own,
                                             const std::string& what) {
  if (!ranks_) return own;
  const auto width = static_cast<int64_t>(own.size()), size = int64_t{ranks_->size()};
  std::vector<double> out(static_cast<size_t>(width * size));
  if (shared_) {
    const auto figures = [&](int rank) { return reinterpret_cast<double*>(shared_->region(rank)); };
    std::copy(own.begin(), own.end(), figures(ranks_->rank()));
    shared_->meet(what);
    for (int rank = 0; rank < size; ++rank)
      std::copy_n(figures(rank), width, out.data() + rank * width);
  } else {
    const torch::Tensor all = torch::from_blob(out.data(), {width * size}, torch::kFloat64);
    ranks_->wait(ranks_->gather(all, torch::tensor(own, torch::kFloat64)), what);
  }
  return out;
}

void PartSums::combine(double divisor, const std::string& what) {
  for (const auto& sum : sums_) sum->combine(divisor, what);
  if (shared_) shared_->meet(what);
}

}  // namespace fovea::train
